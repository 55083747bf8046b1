package futures_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

type letter struct{ Customer, Text string }

// TestLaneOfAnInput has the lane of a typed function follow from its input, unless an
// option names another.
func TestLaneOfAnInput(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	client, ctx := cluster.Client, t.Context()
	send := futures.Define[letter, string]("send", futures.Priority(1)).
		InLane("mail", func(l letter) string { return l.Customer })
	_, err := send.Submit(ctx, client, letter{"acme", "x"})
	require.ErrorIs(t, err, futures.ErrNotFound)
	require.NoError(t, client.SetLaneKind(ctx, "mail", futures.LaneSettings{}))
	first, err := send.Submit(ctx, client, letter{"acme", "x"})
	require.NoError(t, err)
	second, err := send.Submit(ctx, client, letter{"acme", "y"})
	require.NoError(t, err)
	other, err := send.Submit(ctx, client, letter{"acme", "z"}, futures.InLane("mail", "else"))
	require.NoError(t, err)
	for _, want := range []struct {
		of     *futures.Typed[string]
		key    string
		inLine bool
	}{{first, "acme", false}, {second, "acme", true}, {other, "else", false}} {
		v, err := client.Get(ctx, want.of.ID())
		require.NoError(t, err)
		require.Equal(t, futures.Lane{Kind: "mail", Key: want.key}, v.Lane)
		require.Equal(t, want.inLine, v.InLine)
		require.Equal(t, futures.Ready, v.State)
	}
	_, err = send.Submit(ctx, client, letter{})
	require.ErrorIs(t, err, futures.ErrBadName)
	_, err = send.Submit(ctx, client, letter{Customer: strings.Repeat("x", 257)})
	require.ErrorIs(t, err, futures.ErrBadName)

	write := futures.Define[string, letter]("write")
	draft, err := write.Submit(ctx, client, "x")
	require.NoError(t, err)
	_, err = futures.Then(ctx, client, draft, send)
	require.ErrorIs(t, err, futures.ErrBadSpec)
	_, err = futures.Then(ctx, client, draft, send, futures.InLane("mail", "drafts"))
	require.NoError(t, err)
	merge := futures.Define[[]letter, letter]("merge").InLane("mail", func([]letter) string { return "all" })
	_, err = futures.Reduce(ctx, client, []*futures.Typed[letter]{draft, draft}, merge, 2)
	require.ErrorIs(t, err, futures.ErrBadSpec)

	cluster.Register(send.Bind(func(_ context.Context, l letter) (string, error) { return "sent " + l.Text, nil }))
	text, err := second.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "sent y", text)
}

func TestKindsOfLanes(t *testing.T) {
	t.Parallel()
	client, ctx := futurestest.New(t).Client, t.Context()
	settings := futures.LaneSettings{Width: 3, Rate: 5, Every: time.Second, Aside: true}
	require.NoError(t, client.SetLaneKind(ctx, "b", settings))
	require.NoError(t, client.SetLaneKind(ctx, "a", futures.LaneSettings{Total: 1}))
	require.NoError(t, client.PauseLaneKind(ctx, "b"))
	require.NoError(t, client.SetLaneKind(ctx, "b", settings), "whoever sets it again resumes nothing")
	kinds, err := client.LaneKinds(ctx)
	require.NoError(t, err)
	want := []futures.LaneKind{{"a", futures.LaneSettings{Width: 1, Total: 1}, false}, {"b", settings, true}}
	require.Equal(t, want, kinds)
	require.NoError(t, client.ResumeLaneKind(ctx, "b"))
	k, err := client.LaneKind(ctx, "b")
	require.NoError(t, err)
	require.False(t, k.Paused)

	for _, key := range []string{"x", "y", "z"} {
		require.NoError(t, client.PauseLane(ctx, futures.Lane{Kind: "b", Key: key}))
	}
	seen := map[string]bool{}
	for after := ""; ; {
		page, err := client.Lanes(ctx, "b", after, 2)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, v := range page {
			require.True(t, v.Paused)
			after, seen[v.Key] = v.Key, true
		}
	}
	require.Len(t, seen, 3)
	require.NoError(t, client.RemoveLaneKind(ctx, "b"), "its lanes are only paused")
	for _, err := range []error{
		client.RemoveLaneKind(ctx, "b"), client.PauseLaneKind(ctx, "b"), client.ResumeLaneKind(ctx, "b"),
		client.PauseLane(ctx, futures.Lane{Kind: "b", Key: "x"}), client.ResumeLane(ctx, futures.Lane{Kind: "b", Key: "x"}),
	} {
		require.ErrorIs(t, err, futures.ErrNotFound)
	}
	_, err = client.Lanes(ctx, "b", "", 0)
	require.ErrorIs(t, err, futures.ErrNotFound)
	_, err = client.Lane(ctx, futures.Lane{Kind: "b", Key: "x"}, 0)
	require.ErrorIs(t, err, futures.ErrNotFound)
	_, err = client.Lane(ctx, futures.Lane{Kind: "a"}, 0)
	require.ErrorIs(t, err, futures.ErrBadName)
	require.ErrorIs(t, client.SetLaneKind(ctx, "a", futures.LaneSettings{Width: -1}), futures.ErrBadConfig)
	require.ErrorIs(t, client.SetLaneKind(ctx, "a b", futures.LaneSettings{}), futures.ErrBadName)
}

// TestPausedWork waits for its queue, or for its function, to be resumed.
func TestPausedWork(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	client, ctx := cluster.Client, t.Context()
	echo := futures.Define[string, string]("echo")
	cluster.Register(echo.Bind(func(_ context.Context, text string) (string, error) { return text, nil }))
	for what, name := range map[string]string{futures.PauseQueue: "default", futures.PauseFunction: "go:echo"} {
		paused, err := client.Pause(ctx, what, name, "why")
		require.NoError(t, err)
		require.Equal(t, "why", paused.Reason)
		f, err := echo.Submit(ctx, client, what)
		require.NoError(t, err)
		cluster.Advance(time.Minute)
		v, err := client.Get(ctx, f.ID())
		require.NoError(t, err)
		require.Equal(t, futures.Ready, v.State)
		list, err := client.Pauses(ctx)
		require.NoError(t, err)
		require.Equal(t, []futures.Pause{paused}, list)
		was, err := client.Resume(ctx, what, name)
		require.NoError(t, err)
		require.True(t, was)
		text, err := f.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, what, text)
	}
}

// TestKindsWithoutOneThatCantBeRead lists the others.
func TestKindsWithoutOneThatCantBeRead(t *testing.T) {
	t.Parallel()
	client, ctx := futurestest.New(t).Client, t.Context()
	require.NoError(t, client.SetLaneKind(ctx, "a", futures.LaneSettings{}))
	_, err := client.Cluster().Transact(ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(client.Cluster().Keys().LaneKind("b"), []byte{layout.RecordVersion + 1, 0x80})
		return nil
	})
	require.NoError(t, err)
	kinds, err := client.LaneKinds(ctx)
	require.ErrorIs(t, err, layout.ErrNewerRecord)
	require.Len(t, kinds, 1)
	require.Equal(t, "a", kinds[0].Name)
}
