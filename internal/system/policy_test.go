package system

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// TestPolicyOfACluster has typed calls and batches of a paced function that ask
// for nothing or for too much, and a batch that is cancelled while it waits for
// its pace.
func TestPolicyOfACluster(t *testing.T) {
	t.Parallel()
	db, err := kvopen.Open(t.Context(), "memory:", kvopen.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = admin.Configure(t.Context(), plantOn(t, db, "limited").client.Cluster(), func(c *layout.Config) {
		c.Policy = layout.Policy{DefaultTimeout: 300 * time.Millisecond, MaxTimeout: time.Second, MaxOutput: 20}
	})
	require.NoError(t, err)
	p := plantOn(t, db, "limited")
	fetch := futures.Define[[]string, string]("fetch", futures.Retries(0))
	name, run := fetch.Bind(func(ctx context.Context, in []string) (string, error) {
		if strings.Contains(in[0], "stuck") {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return strings.Repeat("x", len(in[0])), nil
	})
	p.start(workers.Options{Slots: 4}, map[string]workers.Function{name: run})
	h := p.head()

	_, err = fetch.Submit(p.ctx, p.client, []string{"a"}, futures.Timeout(time.Minute))
	require.ErrorIs(t, err, futures.ErrBadSpec)
	require.ErrorContains(t, err, "at most 1s")
	_, err = fetch.Call(p.ctx, p.client, []string{"stuck"})
	requireKind(t, layout.KindTimeout, err)
	_, err = fetch.Call(p.ctx, p.client, []string{strings.Repeat("long", 10)})
	requireKind(t, layout.KindTooLarge, err)
	text, err := fetch.Call(p.ctx, p.client, []string{"a"})
	require.NoError(t, err)
	require.Equal(t, "x", text)

	order := func(c batch.Config, arguments ...[]string) (batch.Batch, error) {
		made, _, err := h.Submit(p.ctx, batch.Request{
			Template: batch.Template{FunctionID: "go:fetch", Config: c}, Arguments: arguments, MaxAttempts: 1,
		})
		return made, err
	}
	_, err = order(batch.Config{Timeout: 60}, []string{"a"})
	require.ErrorIs(t, err, batch.ErrBadBatch)
	require.ErrorContains(t, err, "at most 1s")
	made, err := order(batch.Config{Concurrency: 4, RatePerHost: 20},
		[]string{"http://h/ok"}, []string{"http://h/stuck"}, []string{"http://h/fine"})
	require.NoError(t, err)
	p.awaitBatch(h, made.ID, func(b batch.Batch, _ batch.Progress) bool { return b.Status.Over() })
	items, err := h.Store().Items(p.ctx, made.ID, 0, 3)
	require.NoError(t, err)
	require.Equal(t, batch.Done, items[0].Status)
	require.Equal(t, batch.PermanentlyFailed, items[1].Status)
	require.Contains(t, items[1].Reason, "ran longer than its timeout of 300ms")
	require.Equal(t, batch.Done, items[2].Status)

	made, err = order(batch.Config{Concurrency: 4, RatePerHost: 0.001},
		[]string{"http://slow/1"}, []string{"http://slow/2"})
	require.NoError(t, err)
	p.awaitBatch(h, made.ID, func(_ batch.Batch, progress batch.Progress) bool {
		return progress[batch.Done] == 1 && progress[batch.InProgress] == 1
	})
	require.NoError(t, h.Cancel(p.ctx, made.ID, "enough"))
	b := p.awaitBatch(h, made.ID, func(_ batch.Batch, progress batch.Progress) bool { return progress.Over(2) })
	require.Equal(t, "enough", b.Reason)
	p.check()
}

func requireKind(t *testing.T, kind layout.FailureKind, err error) {
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, kind, failed.Kind)
}
