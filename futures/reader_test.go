package futures_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// TestReadersRunBesideCalls has a call of an actor run while readers of it, and of others, end.
func TestReadersRunBesideCalls(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	c := cluster.Client
	has := futures.DefineReader(b.account, "has", func(_ context.Context, s account, amount int) (bool, error) {
		s.Balance -= amount
		return s.Balance >= 0, nil
	})
	slow := futures.DefineMethod(b.account, "slow", func(ctx context.Context, s *account, _ int) (bool, error) {
		s.Balance = 0
		return has.Call(ctx, c, futures.ActorKey(ctx), 3)
	})
	cluster.Register(has.Bind())
	cluster.Register(slow.Bind())
	_, err := b.deposit.Call(t.Context(), c, "alice", 3)
	require.NoError(t, err)
	before, err := slow.Call(t.Context(), c, "alice", 0)
	require.NoError(t, err)
	require.True(t, before, "a call that has not ended is not seen")
	for key, want := range map[string]bool{"alice": false, "nobody": false} {
		got, err := has.Call(t.Context(), c, key, 3)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := has.Call(t.Context(), c, "alice", 0)
	require.NoError(t, err)
	require.True(t, got)
	require.Zero(t, b.balance(t, c, "alice"), "it has changed nothing")
	_, exists, err := b.account.Read(t.Context(), c, "nobody")
	require.NoError(t, err)
	require.False(t, exists)

	f, err := c.CallActor(t.Context(), "account", "alice", "has", futures.Task{Args: []byte("1")})
	require.NoError(t, err)
	result, err := f.Await(t.Context())
	require.NoError(t, err)
	require.JSONEq(t, "false", string(result.Value))
	_, err = has.Call(t.Context(), c, "", 1)
	require.ErrorIs(t, err, layout.ErrBadName)
	task, err := has.Task("alice", 0)
	require.NoError(t, err)
	require.True(t, task.Lane.IsZero())
}
