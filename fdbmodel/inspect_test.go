package fdbmodel

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// kindsIn counts what was found by kind.
func kindsIn(found []Inspected) map[string]int {
	kinds := map[string]int{}
	for i := range found {
		kinds[found[i].Kind]++
	}
	return kinds
}

func TestInspectShowsWhatBelongsToAFuture(t *testing.T) {
	t.Parallel()
	p := populate(t)
	p.enrich(t)
	for id, want := range map[ID]struct {
		state State
		kinds map[string]int
	}{
		p.ids[Ready]:   {Ready, map[string]int{"spec": 1, "subscriber": 1, "ready": 1}},
		p.middle:       {Ready, map[string]int{"spec": 1, "args": 1, "ready": 1}},
		p.ids[Delayed]: {Delayed, map[string]int{"spec": 1, "attempts": 1, "delayed": 1}},
		p.ids[Claimed]: {Claimed, map[string]int{
			"spec": 1, "claim": 1, "cancel": 1, "subscriber": 1, "alive": 1, "heartbeat": 1, "claims": 1, "cancelled": 1,
		}},
		p.ids[Realized]: {Realized, map[string]int{"spec": 1, "claim": 1, "result": 1, "done": 1, "mail": 1}},
		p.ids[Failed]:   {Failed, map[string]int{"spec": 1, "attempts": 1, "exception": 1, "mail": 1}},
		p.large:         {Realized, map[string]int{"spec": 1, "claim": 1, "result": 1, "done": 1, "mail": 1, "chunk": 5}},
	} {
		state, found, err := p.c.Inspect(context.Background(), id)
		require.NoError(t, err)
		require.Equal(t, want.state, state)
		require.Equal(t, want.kinds, kindsIn(found), "%v", want.state)
		for i := range found {
			require.Empty(t, found[i].Problem)
			require.Empty(t, found[i].Value.Problem)
		}
	}
	_, _, err := p.c.Inspect(context.Background(), goldenID)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestInspectShowsDamage(t *testing.T) {
	t.Parallel()
	p := populate(t)
	id := p.ids[Claimed]
	p.write(t, func(tx kv.Tx) {
		tx.Set(p.c.keys.spec(id), []byte{recordVersion + 1, 0xff})
		tx.Set(p.c.keys.state(id, "unheard"), []byte("x"))
	})
	state, found, err := p.c.Inspect(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, Claimed, state)
	kinds := kindsIn(found)
	require.Equal(t, 1, kinds[""])
	require.Equal(t, 1, kinds["alive"])
	require.Contains(t, found[0].Value.Problem, "newer version")
	_, err = p.c.CLICommands(context.Background(), id)
	require.NoError(t, err)
}

// TestInspectKeysPages has every page size list the same keys, and each key of
// the cluster stand in the list of its subspace.
func TestInspectKeysPages(t *testing.T) {
	t.Parallel()
	p := populate(t)
	p.enrich(t)
	ctx := context.Background()
	total := 0
	_, subspaces := KeyKinds()
	for _, sub := range subspaces {
		whole, next, err := p.c.InspectKeys(ctx, sub, nil, 0)
		require.NoError(t, err)
		require.Nil(t, next)
		total += len(whole)
		for _, size := range []int{1, 3} {
			var paged []Inspected
			var after []byte
			for {
				part, next, err := p.c.InspectKeys(ctx, sub, after, size)
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
	require.Equal(t, len(p.items(t)), total)
	results, _, err := p.c.InspectKeys(ctx, subResults, nil, 0)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"result": 2}, kindsIn(results))
	beats, _, err := p.c.InspectKeys(ctx, "heartbeat", nil, 0)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"heartbeat": 1}, kindsIn(beats))
	_, _, err = p.c.InspectKeys(ctx, "nothing", nil, 0)
	require.ErrorIs(t, err, ErrBadName)
}

func TestInspectAnyKeys(t *testing.T) {
	t.Parallel()
	p := populate(t)
	ctx := context.Background()
	p.write(t, func(tx kv.Tx) {
		tx.Set([]byte("other/1"), []byte("one"))
		tx.Set([]byte("other/2"), []byte("two"))
	})
	found, next, err := p.c.InspectPrefix(ctx, []byte("other/"), nil, 1)
	require.NoError(t, err)
	require.Equal(t, []byte("other/1"), next)
	require.Equal(t, problemForeign, found[0].Problem)
	found, next, err = p.c.InspectPrefix(ctx, []byte("other/"), next, 1)
	require.NoError(t, err)
	require.Nil(t, next)
	require.Equal(t, "other/2", found[0].Escaped)
	found, _, err = p.c.InspectPrefix(ctx, p.c.keys.prefix, nil, 0)
	require.NoError(t, err)
	require.Len(t, found, len(p.items(t)))
	for _, bad := range []string{"", "\xff", strings.Repeat("x", kv.MaxKeySize+1)} {
		_, _, err = p.c.InspectPrefix(ctx, []byte(bad), nil, 1)
		require.ErrorIs(t, err, ErrBadSpec)
	}
	one, err := p.c.InspectKey(ctx, p.c.keys.config())
	require.NoError(t, err)
	require.Equal(t, "config", one.Kind)
	_, err = p.c.InspectKey(ctx, []byte("nothing"))
	require.ErrorIs(t, err, ErrNotFound)
}

// TestCLICommandsNameKeys has each key in a command be one that is there, or the
// bounds of a range that is not empty.
func TestCLICommandsNameKeys(t *testing.T) {
	t.Parallel()
	p := populate(t)
	ctx := context.Background()
	absent := map[State][]string{
		Ready: {stateClaim, stateResult}, Delayed: {stateClaim, stateResult}, Claimed: {stateResult},
		Failed: {stateClaim, stateResult},
	}
	for state, id := range p.ids {
		commands, err := p.c.CLICommands(ctx, id)
		require.NoError(t, err)
		missing := 0
		for _, command := range commands {
			words := strings.Fields(command.Command)
			key, err := UnescapeKey(words[1])
			require.NoError(t, err)
			if words[0] == "get" {
				if _, err = p.c.InspectKey(ctx, key); err != nil {
					require.ErrorIs(t, err, ErrNotFound)
					missing++
				}
				continue
			}
			end, err := UnescapeKey(words[2])
			require.NoError(t, err)
			found, _, err := p.c.inspectPage(ctx, kv.Range{Begin: key, End: end}, 1)
			require.NoError(t, err)
			if state != Ready {
				require.NotEmpty(t, found, command.Command)
			}
		}
		require.Equal(t, len(absent[state]), missing, "%v", state)
	}
	commands, err := p.c.CLICommands(ctx, p.large)
	require.NoError(t, err)
	require.Contains(t, commands[len(commands)-1].Command, "getrangekeys")
	_, err = p.c.CLICommands(ctx, goldenID)
	require.ErrorIs(t, err, ErrNotFound)
}
