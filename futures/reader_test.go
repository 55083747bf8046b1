package futures_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
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
		f, err := c.CallActor(ctx, "account", futures.ActorKey(ctx), "has", futures.Task{Args: []byte("3")})
		if err != nil {
			return false, err
		}
		byName, err := f.Await(ctx)
		if err != nil || string(byName.Value) != "true" {
			return false, fmt.Errorf("by name: %s, %w", byName.Value, err)
		}
		return has.Call(ctx, c, futures.ActorKey(ctx), 3)
	}, futures.Retries(0))
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

	_, err = has.Call(t.Context(), c, "", 1)
	require.ErrorIs(t, err, layout.ErrBadName)
	task, err := has.Task("alice", 0)
	require.NoError(t, err)
	require.True(t, task.Lane.IsZero())
}

// TestReadersWithoutTheirType calls readers by their names, with results of other futures, and what is none of them.
func TestReadersWithoutTheirType(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	c := cluster.Client
	sum := futures.DefineReader(b.account, "sum", func(ctx context.Context, s account, more []int) (string, error) {
		for _, n := range more {
			s.Balance += n
		}
		return fmt.Sprint(futures.ActorKey(ctx), s.Balance), nil
	})
	cluster.Register(sum.Bind())
	three, err := b.deposit.Submit(t.Context(), c, "bob", 3)
	require.NoError(t, err)
	_, err = three.Await(t.Context())
	require.NoError(t, err)
	number, err := c.CallActor(t.Context(), "account", "carl", "deposit", futures.Task{Args: []byte("4")})
	require.NoError(t, err)
	call := func(key, args string) string {
		f, err := c.CallActor(t.Context(), "account", key, "sum", futures.Task{Args: []byte(args)})
		require.NoError(t, err)
		result, err := f.Await(t.Context())
		require.NoError(t, err)
		row, err := c.Cluster().Get(t.Context(), f.ID())
		require.NoError(t, err)
		require.True(t, row.Spec.Lane.IsZero())
		return string(result.Value)
	}
	require.Equal(t, `"bob3"`, call("bob", ""))
	require.JSONEq(t, `"a/<&\">0"`, call(`a/<&">`, "null"))
	require.Equal(t, `"bob8"`, call("bob", `[1, {"$future": "`+number.ID().String()+`"}]`))
	_, err = c.CallActor(t.Context(), "account", "bob", "sum", futures.Task{Args: []byte("[1")})
	require.ErrorIs(t, err, futures.ErrBadSpec)

	// In the lane of its actor, a reader waits as methods do; a method runs nowhere else.
	f, err := c.Submit(t.Context(), futures.Task{Function: "go:account.sum", Codec: futures.CodecJSON, Args: []byte("[2]"),
		Lane: futures.Lane{Kind: "actor.account", Key: "bob"}})
	require.NoError(t, err)
	result, err := f.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, `"bob5"`, string(result.Value))
	f, err = c.Submit(t.Context(), futures.Task{Function: "go:account.deposit", Codec: futures.CodecJSON,
		Args: []byte(`{"Key": "bob", "In": 2}`)})
	require.NoError(t, err)
	_, err = f.Await(t.Context())
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Contains(t, failed.Message, "go:account.deposit is a method of actors here, and no reader of them")
	require.Equal(t, 4, failed.Attempt, "others may have newer code")
	require.Equal(t, 3, b.balance(t, c, "bob"))
}

// TestAMethodThatBecomesAReader is called in line until all workers that have it have it as a reader.
func TestAMethodThatBecomesAReader(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	c := cluster.Client
	_, err := b.deposit.Call(t.Context(), c, "bob", 1)
	require.NoError(t, err)
	register := func(readers ...string) *fdbmodel.Registration {
		r, err := c.Cluster().Register(t.Context(), layout.WorkerInfo{Functions: []string{"go:account.balance"},
			Readers: readers, Capacity: layout.Resources{Slots: 1}})
		require.NoError(t, err)
		return r
	}
	inLine := func() bool {
		task, err := c.ActorTask(t.Context(), "account", "bob", "balance", futures.Task{})
		require.NoError(t, err)
		require.Equal(t, task.Lane.IsZero(), string(task.Args) != "null")
		return !task.Lane.IsZero()
	}
	old := register()
	require.True(t, inLine())
	register("go:account.balance")
	cluster.Advance(10 * time.Second)
	require.True(t, inLine(), "the older worker would refuse it")
	require.NoError(t, old.Leave(t.Context()))
	require.True(t, inLine(), "what is known counts for ten seconds")
	cluster.Advance(10 * time.Second)
	require.False(t, inLine())
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
