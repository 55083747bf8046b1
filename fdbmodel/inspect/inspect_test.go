package inspect_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// kindsIn counts the items by kind.
func kindsIn(found []inspect.Item) map[string]int {
	kinds := map[string]int{}
	for i := range found {
		kinds[found[i].Kind]++
	}
	return kinds
}

func TestInspectShowsWhatBelongsToAFuture(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	p.Enrich(t)
	for id, want := range map[layout.ID]struct {
		state layout.State
		kinds map[string]int
	}{
		p.IDs[layout.Ready]:   {layout.Ready, map[string]int{"spec": 1, "subscriber": 1, "ready": 1}},
		p.Middle:              {layout.Ready, map[string]int{"spec": 1, "args": 1, "pins": 1, "ready": 1}},
		p.IDs[layout.Delayed]: {layout.Delayed, map[string]int{"spec": 1, "attempts": 1, "delayed": 1}},
		p.IDs[layout.Claimed]: {layout.Claimed, map[string]int{
			"spec": 1, "claim": 1, "cancel": 1, "subscriber": 1, "alive": 1, "heartbeat": 1, "claims": 1, "cancelled": 1,
			"progress": 1, "has steps": 1, "step": 2, "unused steps": 1, "chunk": 2,
		}},
		p.IDs[layout.Realized]: {layout.Realized, map[string]int{"spec": 1, "claim": 1, "result": 1, "done": 1, "mail": 1}},
		p.IDs[layout.Failed]: {layout.Failed, map[string]int{"spec": 1, "attempts": 1, "exception": 1, "history": 1,
			"mail": 2, "listed failed": 1, "has forks": 1, "fork": 1}},
		p.Large: {layout.Realized, map[string]int{"spec": 1, "claim": 1, "result": 1, "done": 1, "mail": 1,
			"chunk": 5}},
	} {
		state, found, err := inspect.Future(context.Background(), p.C, id)
		require.NoError(t, err)
		require.Equal(t, want.state, state)
		require.Equal(t, want.kinds, kindsIn(found), "%v", want.state)
		for i := range found {
			require.Empty(t, found[i].Problem)
			require.Empty(t, found[i].Value.Problem)
		}
	}
	_, _, err := inspect.Future(context.Background(), p.C, modeltest.GoldenID)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

func TestInspectShowsDamage(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	id := p.IDs[layout.Claimed]
	p.Write(t, func(tx kv.Tx) {
		tx.Set(p.C.Keys().Spec(id), []byte{layout.RecordVersion + 1, 0xff})
		tx.Set(p.C.Keys().State(id, "unheard"), []byte("x"))
	})
	state, found, err := inspect.Future(context.Background(), p.C, id)
	require.NoError(t, err)
	require.Equal(t, layout.Claimed, state)
	kinds := kindsIn(found)
	require.Equal(t, 1, kinds[""])
	require.Equal(t, 1, kinds["alive"])
	require.Contains(t, found[0].Value.Problem, "newer version")
	_, err = inspect.CLICommands(context.Background(), p.C, id)
	require.NoError(t, err)
}

// TestInspectKeysPages checks that every page size lists the same keys, and
// that each key of the cluster is in the list of its subspace.
func TestInspectKeysPages(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	p.Enrich(t)
	ctx := context.Background()
	total := 0
	_, subspaces := keyspace.Table().Names()
	for _, sub := range subspaces {
		whole, next, err := inspect.Keys(ctx, p.C, sub, nil, 0)
		require.NoError(t, err)
		require.Nil(t, next)
		total += len(whole)
		for _, size := range []int{1, 3} {
			var paged []inspect.Item
			var after []byte
			for {
				part, next, err := inspect.Keys(ctx, p.C, sub, after, size)
				require.NoError(t, err)
				require.LessOrEqual(t, len(part), size)
				paged = append(paged, part...)
				if after = next; next == nil {
					break
				}
			}
			require.Equal(t, whole, paged, sub)
		}
	}
	require.Equal(t, len(p.Items(t)), total)
	copies, _, err := inspect.Keys(ctx, p.C, layout.SubResults, nil, 0)
	require.NoError(t, err)
	require.Equal(t, map[string]int{layout.KeyCopy: 1}, kindsIn(copies))
	results, _, err := inspect.Keys(ctx, p.C, layout.StateResult, nil, 0)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"result": 5}, kindsIn(results))
	beats, _, err := inspect.Keys(ctx, p.C, "heartbeat", nil, 0)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"heartbeat": 1}, kindsIn(beats))
	_, _, err = inspect.Keys(ctx, p.C, "nothing", nil, 0)
	require.ErrorIs(t, err, layout.ErrBadName)
}

func TestInspectAnyKeys(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	ctx := context.Background()
	p.Write(t, func(tx kv.Tx) {
		tx.Set([]byte("other/1"), []byte("one"))
		tx.Set([]byte("other/2"), []byte("two"))
	})
	found, next, err := inspect.Prefix(ctx, p.C, []byte("other/"), nil, 1)
	require.NoError(t, err)
	require.Equal(t, []byte("other/1"), next)
	require.Equal(t, layout.ProblemForeign, found[0].Problem)
	found, next, err = inspect.Prefix(ctx, p.C, []byte("other/"), next, 1)
	require.NoError(t, err)
	require.Nil(t, next)
	require.Equal(t, "other/2", found[0].Escaped)
	found, _, err = inspect.Prefix(ctx, p.C, p.C.Keys().Prefix, nil, 0)
	require.NoError(t, err)
	require.Len(t, found, len(p.Items(t)))
	for _, bad := range []string{"", "\xff", strings.Repeat("x", kv.MaxKeySize+1)} {
		_, _, err = inspect.Prefix(ctx, p.C, []byte(bad), nil, 1)
		require.ErrorIs(t, err, layout.ErrBadKey)
		_, err = inspect.Key(ctx, p.C, []byte(bad))
		require.ErrorIs(t, err, layout.ErrBadKey)
	}
	one, err := inspect.Key(ctx, p.C, p.C.Keys().Config())
	require.NoError(t, err)
	require.Equal(t, "config", one.Kind)
	_, err = inspect.Key(ctx, p.C, []byte("nothing"))
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

// TestCLICommandsNameKeys checks that each key in a command exists, or bounds a
// range that is not empty.
func TestCLICommandsNameKeys(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	ctx := context.Background()
	has := map[layout.State]int{layout.Claimed: 1, layout.Realized: 2} // claim and result
	for state, id := range p.IDs {
		commands, err := inspect.CLICommands(ctx, p.C, id)
		require.NoError(t, err)
		missing := 0
		for _, command := range commands {
			words := strings.Fields(command.Command)
			key, err := layout.UnescapeKey(words[1])
			require.NoError(t, err)
			if words[0] == "get" {
				if _, err = inspect.Key(ctx, p.C, key); err != nil {
					require.ErrorIs(t, err, fdbmodel.ErrNotFound)
					missing++
				}
				continue
			}
			end, err := layout.UnescapeKey(words[2])
			require.NoError(t, err)
			found, _, err := inspect.ReadPage(ctx, p.C, kv.Range{Begin: key, End: end}, 1)
			require.NoError(t, err)
			if state != layout.Ready {
				require.NotEmpty(t, found, command.Command)
			}
		}
		require.Equal(t, 2-has[state], missing, "%v", state)
	}
	commands, err := inspect.CLICommands(ctx, p.C, p.Large)
	require.NoError(t, err)
	require.Contains(t, commands[len(commands)-1].Command, "getrangekeys")
	_, err = inspect.CLICommands(ctx, p.C, modeltest.GoldenID)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

// TestInspectShowsTheEndOfAnObject finds the list of finished futures that names one whose result is an object: its
// copy has the first order within their transaction.
func TestInspectShowsTheEndOfAnObject(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Object()
	f := s.Claim(s.Worker)[0]
	s.Finish(s.Worker, modeltest.KeepObject(&f))
	_, found, err := inspect.Future(s.Ctx, s.C, id)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"spec": 1, "claim": 1, "result": 1, "done": 1, "mail": 1}, kindsIn(found))
}
