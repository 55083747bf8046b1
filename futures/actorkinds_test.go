package futures_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
)

// TestCallsMakeTheirKindOfLanesAgain has an operator remove the kind of lanes of a type of actors between its calls.
func TestCallsMakeTheirKindOfLanesAgain(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	c, ctx := cluster.Client, t.Context()
	tell := futures.Define[int, futures.ID]("tell")
	cluster.Register(tell.Bind(func(ctx context.Context, n int) (futures.ID, error) {
		return b.deposit.Send(ctx, "alice", n)
	}))
	task := func() []futures.Task {
		call, err := b.deposit.Task("alice", 1)
		require.NoError(t, err)
		return []futures.Task{call}
	}
	await := func(f *futures.Future, err error) error {
		if err == nil {
			_, err = f.Await(ctx)
		}
		return err
	}
	calls := []func() error{
		func() error { _, err := b.deposit.Call(ctx, c, "alice", 1); return err },
		func() error {
			return await(c.CallActor(ctx, "account", "alice", "deposit", futures.Task{Args: []byte("1")}))
		},
		func() error {
			fs, err := c.SubmitMany(ctx, task())
			if err != nil {
				return err
			}
			return await(fs[0], nil)
		},
		func() error {
			cluster.Elapse(time.Minute) // its failure would not be this client's to see
			_, err := tell.Call(ctx, c, 1)
			cluster.Run()
			return err
		},
	}
	for i, call := range calls {
		require.NoError(t, call(), "%d", i)
		require.Equal(t, 2*i+1, b.balance(t, c, "alice"), "%d", i)
		require.NoError(t, c.RemoveLaneKind(ctx, "actor.account"), "%d", i)
		require.NoError(t, call(), "%d", i)
		require.Equal(t, 2*i+2, b.balance(t, c, "alice"), "%d", i)
	}
	cluster.Elapse(time.Minute)
	submit := func() (f *futures.Future, err error) {
		_, err = kv.Transact(ctx, cluster.Store, kv.Retry{}, func(tx kv.Attempt) error {
			s, err := c.SubmitTx(ctx, tx, task())
			if err == nil {
				f = s.Futures[0]
			}
			return err
		})
		return f, err
	}
	require.NoError(t, c.RemoveLaneKind(ctx, "actor.account"))
	_, err := submit()
	require.ErrorIs(t, err, futures.ErrNotFound, "the transaction is the caller's, who repeats it")
	require.NoError(t, await(submit()))
}
