package futures_test

import (
	"context"
	"errors"
	"strings"
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

// TestReadersOfABadKey are refused where they are called, and fail for good if they are called by their name.
func TestReadersOfABadKey(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	read := futures.DefineReader(b.account, "read", func(context.Context, account, int) (int, error) { return 0, nil })
	cluster.Register(read.Bind())
	_, err := read.Task("", 1)
	require.ErrorIs(t, err, futures.ErrBadName)
	_, err = read.Call(t.Context(), cluster.Client, "", 1)
	require.ErrorIs(t, err, futures.ErrBadName)
	_, err = read.Definition.Call(t.Context(), cluster.Client, futures.Reading[int]{In: 1})
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Contains(t, failed.Message, "a key of 0 bytes")
	require.Equal(t, 1, failed.Attempt)
}

// TestReadersChangeNothing refuses what a method may do, and gives a reader its key.
func TestReadersChangeNothing(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	tries := map[string]func(context.Context) error{
		"state": func(ctx context.Context) error {
			s, err := b.account.State(ctx, "victim")
			if err == nil {
				s.Balance = 0
			}
			return err
		},
		"own state": func(ctx context.Context) error {
			_, err := b.account.State(ctx, futures.ActorKey(ctx))
			return err
		},
		"delete": func(ctx context.Context) error { return b.account.Delete(ctx, "victim") },
		"send":   func(ctx context.Context) error { _, err := b.deposit.Send(ctx, "victim", 1); return err },
		"task": func(ctx context.Context) error {
			_, err := futures.Send(ctx, futures.Task{Function: "go:nobody"})
			return err
		},
		"key": func(ctx context.Context) error { return errors.New("a reader only reads " + futures.ActorKey(ctx)) },
	}
	evil := futures.DefineReader(b.account, "evil", func(ctx context.Context, _ account, what string) (int, error) {
		return 0, tries[what](ctx)
	}, futures.Retries(0))
	cluster.Register(evil.Bind())
	_, err := b.deposit.Call(t.Context(), cluster.Client, "victim", 3)
	require.NoError(t, err)
	for what := range tries {
		_, err := evil.Call(t.Context(), cluster.Client, "thief", what)
		require.ErrorContains(t, err, "a reader only reads", what)
		require.True(t, what != "key" || strings.HasSuffix(err.Error(), " thief"), err)
	}
	require.Equal(t, 3, b.balance(t, cluster.Client, "victim"))
}
