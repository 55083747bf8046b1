package futures_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

// TestActorsWithoutTheirGoType calls, lists and removes actors by the names of type and method alone.
func TestActorsWithoutTheirGoType(t *testing.T) {
	t.Parallel()
	_, cluster := newBankCluster(t)
	c, ctx := cluster.Client, t.Context()
	cluster.Run() // registers the worker
	for i := range 3 {
		f, err := c.CallActor(ctx, "account", "a/b %", "deposit", futures.Task{Args: []byte("2")})
		require.NoError(t, err)
		got, err := f.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(2*i+2), string(got.Value))
	}
	f, err := c.CallActor(ctx, "account", "bob", "deposit", futures.Task{})
	require.NoError(t, err)
	_, err = f.Await(ctx)
	require.NoError(t, err, "the input is null")
	types, err := c.ActorTypes(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"account"}, types)
	v, err := c.ActorState(ctx, "account", "a/b %")
	require.NoError(t, err)
	require.Equal(t, int64(3), v.Version)
	require.Equal(t, "account/a/b %", v.String())
	text, is := v.JSON()
	require.True(t, is)
	require.JSONEq(t, `{"Balance": 6, "Calls": null}`, string(text))
	for _, codec := range []string{futures.CodecRaw, futures.CodecJSON, futures.CodecMsgpack} {
		broken := futures.ActorView{Codec: codec, Value: []byte{0xc1}}
		_, is = broken.JSON()
		require.False(t, is, codec)
	}
	require.NoError(t, c.DeleteActor(ctx, "account", "a/b %"))
	require.ErrorIs(t, c.DeleteActor(ctx, "account", "a/b %"), futures.ErrNotFound)
	_, err = c.ActorState(ctx, "account", "a/b %")
	require.ErrorIs(t, err, futures.ErrNotFound)
	list, next, err := c.Actors(ctx, "account", "", 0)
	require.NoError(t, err)
	require.Empty(t, next)
	require.Empty(t, list, "no call has left bob a state")
}

// TestCallsByWrongNamesAreRefused has calls that no worker runs not hold up others.
func TestCallsByWrongNamesAreRefused(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	c, ctx := cluster.Client, t.Context()
	cluster.Run() // registers the worker
	call := func(name, key, method string) error {
		_, err := c.CallActor(ctx, name, key, method, futures.Task{Args: []byte("1")})
		return err
	}
	require.ErrorIs(t, call("account", "alice", ""), futures.ErrBadName)
	require.ErrorIs(t, call("account", "", "deposit"), futures.ErrBadName)
	require.ErrorIs(t, call("account", "alice", "de posit"), futures.ErrBadName)
	require.ErrorIs(t, call("no/type", "alice", "deposit"), futures.ErrBadName)
	err := call("account", "alice", "depositt")
	require.ErrorIs(t, err, futures.ErrNotFound)
	require.ErrorContains(t, err, "the workers know of actors of type account: deposit, pay, withdraw")
	err = call("order", "7", "ship")
	require.ErrorIs(t, err, futures.ErrNotFound)
	require.ErrorContains(t, err, "none has been called yet, and no worker knows go:order.ship")
	kinds, err := c.LaneKinds(ctx)
	require.NoError(t, err)
	require.Empty(t, kinds, "a wrong name makes no kind of lanes")
	_, err = c.CallActor(ctx, "account", "alice", "deposit", futures.Task{Args: []byte("{")})
	require.ErrorIs(t, err, futures.ErrBadSpec)
	require.NoError(t, call("account", "alice", "deposit"))
	cluster.Run()
	require.Equal(t, 1, b.balance(t, c, "alice"))

	// While no worker of a type runs, calls wait for one.
	other, ctx := futurestest.New(t), t.Context()
	require.NoError(t, other.Client.SetLaneKind(ctx, "actor.account", futures.LaneSettings{Width: 1}))
	_, err = other.Client.CallActor(ctx, "account", "alice", "deposit", futures.Task{})
	require.NoError(t, err)
}

// TestCallsOfModulesNameAStoredOne, for a type that nothing else has.
func TestCallsOfModulesNameAStoredOne(t *testing.T) {
	t.Parallel()
	cluster, ctx := futurestest.New(t), t.Context()
	c := cluster.Client
	m, err := modules.Of(c.Cluster()).Put(ctx, []byte("a module"), "count")
	require.NoError(t, err)
	for _, method := range []string{"wasm:none", "wasm:none/add", "wasm:", "wasm:count/a b"} {
		_, err := c.ActorTask(ctx, "counter", "visits", method, futures.Task{})
		require.Error(t, err, method)
	}
	_, err = c.ActorTask(ctx, "counter", "visits", "wasm:none", futures.Task{})
	require.ErrorIs(t, err, futures.ErrNotFound)
	kinds, err := c.LaneKinds(ctx)
	require.NoError(t, err)
	require.Empty(t, kinds, "a wrong name makes no kind of lanes")
	task, err := c.ActorTask(ctx, "counter", "visits", "wasm:count/add", futures.Task{Args: []byte("1")})
	require.NoError(t, err)
	require.Equal(t, "wasm:"+m.CID+"/add", task.Function)
	require.Equal(t, futures.Lane{Kind: "actor.counter", Key: "visits"}, task.Lane)
	kinds, err = c.LaneKinds(ctx)
	require.NoError(t, err)
	require.Len(t, kinds, 1)
}

// TestPagesOfActors lists actors in pages, with their states and without.
func TestPagesOfActors(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	c, ctx := cluster.Client, t.Context()
	many := futures.Define[int, int]("many")
	cluster.Register(many.Bind(func(ctx context.Context, n int) (int, error) {
		for i := range n {
			s, err := b.account.State(ctx, fmt.Sprint("k", i))
			if err != nil {
				return 0, err
			}
			s.Balance = i + 1
		}
		return n, nil
	}))
	_, err := many.Call(ctx, c, 25)
	require.NoError(t, err)
	for name, list := range map[string]func(context.Context, string, string, int) ([]futures.ActorView, string, error){
		"heads": c.Actors, "states": c.ActorStates,
	} {
		var keys []string
		for after, pages := "", 0; ; pages++ {
			page, next, err := list(ctx, "account", after, 5)
			require.NoError(t, err)
			require.Len(t, page, 5)
			for i := range page {
				require.Equal(t, name == "states", len(page[i].Value) > 0)
				keys = append(keys, page[i].Key)
			}
			if after = next; next == "" {
				require.Equal(t, 4, pages)
				break
			}
		}
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(keys))), 25)
	}
	_, _, err = c.Actors(ctx, "a/b", "", 5)
	require.ErrorIs(t, err, futures.ErrBadName)
}

// TestAFullMailboxRefusesCalls has a call of an actor send more calls to another one than may wait.
func TestAFullMailboxRefusesCalls(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	c, ctx := cluster.Client, t.Context()
	require.NoError(t, c.SetLaneKind(ctx, "actor.account", futures.LaneSettings{MaxWaiting: 2}))
	attempts := 0
	pour := futures.DefineMethod(b.account, "pour", func(ctx context.Context, s *account, n int) (int, error) {
		attempts++
		s.Balance += n
		for range n {
			if _, err := b.deposit.Send(ctx, "bob", 1); err != nil {
				return 0, err
			}
		}
		return n, nil
	}, futures.Retries(1))
	cluster.Register(pour.Bind())
	_, err := pour.Call(ctx, c, "alice", 4)
	require.ErrorContains(t, err, "actor.account/bob: the lane is full")
	require.Equal(t, 2, attempts, "its retries decide")
	for _, key := range []string{"alice", "bob"} {
		_, err = c.ActorState(ctx, "account", key)
		require.ErrorIs(t, err, futures.ErrNotFound, "a refused turn changes and sends nothing")
	}
	_, err = pour.Call(ctx, c, "alice", 3)
	require.NoError(t, err)
	cluster.Run()
	bob, _, err := b.account.Read(ctx, c, "bob")
	require.NoError(t, err)
	require.Equal(t, 3, bob.Balance)
	v, err := c.ActorState(ctx, "account", "bob")
	require.NoError(t, err)
	require.Equal(t, [2]int{0, 2}, [2]int{v.Waiting, v.MaxWaiting})
}

// TestAnActorSaysWhatItIsAbout has a call run while others wait.
func TestAnActorSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	c, ctx := cluster.Client, t.Context()
	var seen futures.ActorView
	var self futures.ID
	look := futures.DefineMethod(b.account, "look", func(ctx context.Context, s *account, _ int) (int, error) {
		for range 3 {
			if _, err := c.CallActor(t.Context(), "account", "alice", "deposit", futures.Task{}); err != nil {
				return 0, err
			}
		}
		var err error
		seen, err = c.ActorState(ctx, "account", "alice")
		s.Balance++
		return 0, err
	})
	cluster.Register(look.Bind())
	_, err := b.deposit.Call(ctx, c, "alice", 5)
	require.NoError(t, err)
	f, err := look.Submit(ctx, c, "alice", 0)
	require.NoError(t, err)
	self = f.ID()
	_, err = f.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, self, seen.Running)
	require.Equal(t, 3, seen.Waiting)
	require.NotEqual(t, self, seen.Call)
	cluster.Run()
	after, err := c.ActorState(ctx, "account", "alice")
	require.NoError(t, err)
	require.Equal(t, self, after.Call)
	require.Zero(t, after.Waiting)
	require.True(t, after.Running.IsZero())
	_, err = b.deposit.Submit(ctx, c, "alice", 1)
	require.NoError(t, err)
	after, err = c.ActorState(ctx, "account", "alice")
	require.NoError(t, err)
	require.True(t, after.Running.IsZero(), "it has its turn, and no worker has it yet")
}

// TestActorsThatAreDamaged are named in lists, and so are their parts.
func TestActorsThatAreDamaged(t *testing.T) {
	t.Parallel()
	o := newOrders(t)
	c, ctx := o.cluster.Client, t.Context()
	for _, key := range []string{"7", "8"} {
		require.NoError(t, o.call(ctx, key, func(ctx context.Context, key string) error {
			return errors.Join(o.lines.Set(ctx, key, "a", orderLine{"a", 5}), o.lines.Set(ctx, key, "b", orderLine{"b", 5}))
		}))
	}
	keys := actors.Keys(c.Cluster().Keys())
	_, err := c.Cluster().Transact(ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(keys.Head(actors.Ref{Type: "order", Key: "8"}), []byte{1})
		tx.Set(keys.Part(actors.Ref{Type: "order", Key: "7"}, "line/a"), []byte{1})
		return nil
	})
	require.NoError(t, err)
	list, _, err := c.Actors(ctx, "order", "", 0)
	require.NoError(t, err)
	require.Len(t, list, 2)
	for i := range list {
		require.Equal(t, list[i].Key == "8", list[i].Problem != "", list[i].Problem)
	}
	parts, _, err := c.ActorParts(ctx, "order", "7", "", 0)
	require.NoError(t, err)
	require.Len(t, parts, 2)
	require.NotEmpty(t, parts[0].Problem)
	require.Empty(t, parts[1].Problem)
}
