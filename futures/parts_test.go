package futures_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

type orderLine struct {
	Item  string
	Count int
}

// orders are a type of actors with parts.
type orders struct {
	cluster *futurestest.Cluster
	order   *futures.Actor[int]
	lines   *futures.Parts[orderLine]
	notes   *futures.Parts[string]
	do      futures.Method[int, int]
	bodies  sync.Map // of calls, by their numbers
	calls   atomic.Int32
}

func newOrders(t *testing.T) *orders {
	o := &orders{cluster: futurestest.New(t), order: futures.DefineActor[int]("order")}
	o.lines, o.notes = futures.DefineParts[orderLine](o.order, "line"), futures.DefineParts[string](o.order, "note")
	o.do = futures.DefineMethod(o.order, "do", func(ctx context.Context, n *int, body int) (int, error) {
		*n++
		fn, _ := o.bodies.Load(body)
		return *n, fn.(func(context.Context, string) error)(ctx, futures.ActorKey(ctx))
	})
	o.cluster.Register(o.do.Bind())
	return o
}

// call runs fn as a call of an order, whose state counts its calls.
func (o *orders) call(ctx context.Context, key string, fn func(ctx context.Context, key string) error,
	options ...futures.Option,
) error {
	body := int(o.calls.Add(1))
	o.bodies.Store(body, fn)
	_, err := o.do.Call(ctx, o.cluster.Client, key, body, options...)
	return err
}

// names returns the names of a page of lines.
func names(page []futures.NamedPart[orderLine]) string {
	all := make([]string, len(page))
	for i := range page {
		all[i] = page[i].Name
	}
	return strings.Join(all, " ")
}

// TestACallSeesThePartsThatItChanges sets, removes and lists parts in calls that come one after the other.
func TestACallSeesThePartsThatItChanges(t *testing.T) {
	t.Parallel()
	o := newOrders(t)
	see := func(ctx context.Context, key string, want ...string) {
		for i, after := range []string{"", "b"} {
			page, next, err := o.lines.List(ctx, key, after, 2)
			require.NoError(t, err)
			require.Equal(t, want[i], names(page)+";"+next)
		}
	}
	require.NoError(t, o.call(t.Context(), "7", func(ctx context.Context, key string) error {
		_, exists, err := o.lines.Get(ctx, key, "a")
		require.NoError(t, err)
		require.False(t, exists)
		for _, name := range []string{"a", "b", "d", "e"} {
			require.NoError(t, o.lines.Set(ctx, key, name, orderLine{name, 1}))
		}
		require.NoError(t, o.lines.Delete(ctx, key, "none"))
		require.NoError(t, o.notes.Set(ctx, key, "c", "a note"))
		see(ctx, key, "a b;b", "d e;")
		return nil
	}))
	require.NoError(t, o.call(t.Context(), "7", func(ctx context.Context, key string) error {
		see(ctx, key, "a b;b", "d e;")
		require.NoError(t, o.lines.Delete(ctx, key, "a"))
		require.NoError(t, o.lines.Set(ctx, key, "b", orderLine{"b", 2}))
		require.NoError(t, o.lines.Set(ctx, key, "c", orderLine{"c", 3}))
		require.NoError(t, o.lines.Set(ctx, key, "f", orderLine{"f", 3}))
		see(ctx, key, "b;b", "c d;d")
		value, exists, err := o.lines.Get(ctx, key, "b")
		require.NoError(t, err)
		require.Equal(t, orderLine{"b", 2}, value)
		require.True(t, exists)
		_, exists, err = o.lines.Get(ctx, key, "a")
		require.NoError(t, err)
		require.False(t, exists)
		return nil
	}))
	value, exists, err := o.lines.Read(t.Context(), o.cluster.Client, "7", "b")
	require.NoError(t, err)
	require.Equal(t, orderLine{"b", 2}, value)
	require.True(t, exists)
	note, exists, err := o.notes.Read(t.Context(), o.cluster.Client, "7", "c")
	require.NoError(t, err)
	require.Equal(t, "a note", note)
	require.True(t, exists)
	_, exists, err = o.notes.Read(t.Context(), o.cluster.Client, "8", "c")
	require.NoError(t, err)
	require.False(t, exists)
	views, next, err := o.cluster.Client.ActorParts(t.Context(), "order", "7", "line/b", 3)
	require.NoError(t, err)
	require.Equal(t, "line/e", next)
	require.Equal(t, []string{"line/c", "line/d", "line/e"}, []string{views[0].Name, views[1].Name, views[2].Name})
}

// TestPartsOfACallThatFails are not written, nor are those of an attempt before the one that counts.
func TestPartsOfACallThatFails(t *testing.T) {
	t.Parallel()
	o := newOrders(t)
	attempts := 0
	require.NoError(t, o.call(t.Context(), "7", func(ctx context.Context, key string) error {
		require.NoError(t, o.lines.Set(ctx, key, fmt.Sprint(attempts), orderLine{}))
		if attempts++; attempts < 3 {
			return errOnce
		}
		return nil
	}))
	views, _, err := o.cluster.Client.ActorParts(t.Context(), "order", "7", "", 0)
	require.NoError(t, err)
	require.Len(t, views, 1)
	require.Equal(t, "line/2", views[0].Name)
}

// TestATurnRunsAgainIfAPartChanges has another call change a part of an actor while a function runs that has read
// its state. One that only reads counts if all that it has read is of one time.
func TestATurnRunsAgainIfAPartChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		writes bool
		late   time.Duration // longer than a second after the claim, a part is read at a newer time
		runs   int
	}{{true, 0, 2}, {true, 2 * time.Second, 2}, {false, 0, 1}, {false, 2 * time.Second, 2}} {
		o := newOrders(t)
		set := func(ctx context.Context, options ...futures.Option) error {
			return o.call(ctx, "7", func(ctx context.Context, key string) error {
				value, _, err := o.lines.Get(ctx, key, "a")
				require.NoError(t, err)
				return o.lines.Set(ctx, key, "a", orderLine{"a", value.Count + 1})
			}, options...)
		}
		runs := 0
		look := futures.Define[string, int]("look", futures.Retries(0))
		o.cluster.Register(look.Bind(func(ctx context.Context, key string) (int, error) {
			_, err := o.order.States(ctx, key, "other") // of two, none comes from memory
			require.NoError(t, err)
			if runs++; runs == 1 {
				require.NoError(t, set(ctx, futures.Delay(c.late)))
			}
			value, _, err := o.lines.Get(ctx, key, "a")
			require.NoError(t, err)
			if c.writes {
				err = o.notes.Set(ctx, "of it", "n", "seen")
			}
			return value.Count, err
		}))
		require.NoError(t, set(t.Context()))
		got, err := look.Call(t.Context(), o.cluster.Client, "7")
		require.NoError(t, err)
		require.Equal(t, c.runs, got, "the part is that of the last run")
		require.Equal(t, c.runs, runs)
	}
}

// TestReadersSeePartsOfTheirState has a call change a part while a reader runs.
func TestReadersSeePartsOfTheirState(t *testing.T) {
	t.Parallel()
	o := newOrders(t)
	fill := func(ctx context.Context) error {
		return o.call(ctx, "7", func(ctx context.Context, key string) error {
			n, err := o.order.State(ctx, key)
			require.NoError(t, err)
			return o.lines.Set(ctx, key, "a", orderLine{"a", *n})
		})
	}
	read := futures.DefineReader(o.order, "read", func(ctx context.Context, n int, key string) (int, error) {
		require.NoError(t, fill(ctx))
		a, _, err := o.lines.Get(ctx, key, "a")
		require.NoError(t, err)
		page, _, err := o.lines.List(ctx, key, "", 0)
		require.NoError(t, err)
		require.Equal(t, a, page[0].Value)
		require.Equal(t, n, a.Count)
		require.ErrorContains(t, o.lines.Set(ctx, key, "b", orderLine{}), "make it a method")
		require.ErrorContains(t, o.lines.Delete(ctx, key, "a"), "make it a method")
		_, exists, err := o.lines.Get(ctx, "other", "a")
		require.NoError(t, err)
		require.False(t, exists)
		return n, nil
	})
	o.cluster.Register(read.Bind())
	require.NoError(t, fill(t.Context()))
	got, err := read.Call(t.Context(), o.cluster.Client, "7", "7")
	require.NoError(t, err)
	require.Equal(t, 1, got)
}

// TestPartsAreRemovedWithTheirActor deletes an actor in a turn, and one without.
func TestPartsAreRemovedWithTheirActor(t *testing.T) {
	t.Parallel()
	o := newOrders(t)
	fill := func(ctx context.Context, key string) error { return o.lines.Set(ctx, key, "a", orderLine{}) }
	require.NoError(t, o.call(t.Context(), "7", fill))
	require.NoError(t, o.call(t.Context(), "8", fill))
	require.NoError(t, o.call(t.Context(), "7", func(ctx context.Context, key string) error {
		require.NoError(t, fill(ctx, key))
		return o.order.Delete(ctx, key)
	}))
	require.NoError(t, o.cluster.Client.DeleteActor(t.Context(), "order", "8"))
	for _, key := range []string{"7", "8"} {
		views, _, err := o.cluster.Client.ActorParts(t.Context(), "order", key, "", 0)
		require.NoError(t, err)
		require.Empty(t, views)
	}
}

func TestAPartMigrates(t *testing.T) {
	t.Parallel()
	o := newOrders(t)
	newer := futures.DefineParts[int](o.order, "line").Migrate(2, func(from int, part []byte) (int, error) {
		require.Zero(t, from)
		var old orderLine
		err := futures.DecodeState(part, &old)
		return old.Count * 100, err
	})
	require.NoError(t, o.call(t.Context(), "7", func(ctx context.Context, key string) error {
		return o.lines.Set(ctx, key, "a", orderLine{"a", 5})
	}))
	for range 2 {
		require.NoError(t, o.call(t.Context(), "7", func(ctx context.Context, key string) error {
			got, exists, err := newer.Get(ctx, key, "a")
			require.NoError(t, err)
			require.True(t, exists)
			require.Equal(t, 500, got)
			return newer.Set(ctx, key, "a", got)
		}))
	}
	_, _, err := o.lines.Read(t.Context(), o.cluster.Client, "7", "a")
	require.ErrorContains(t, err, "actor order/7 has a part line/a of schema 2, and this code knows 0")
	other := futures.DefineParts[orderLine](o.order, "line").Migrate(2, nil)
	_, _, err = other.Read(t.Context(), o.cluster.Client, "7", "a")
	require.ErrorContains(t, err, "does not decode as futures_test.orderLine")
}

func TestPartsHaveLimits(t *testing.T) {
	t.Parallel()
	o := newOrders(t)
	require.ErrorIs(t, o.lines.Set(t.Context(), "7", "a", orderLine{}), futures.ErrOutsideFunction)
	_, _, err := o.lines.Get(t.Context(), "7", "a")
	require.ErrorIs(t, err, futures.ErrOutsideFunction)
	for key, name := range map[string]string{"": "a", "7": "", "8": "\xff", "9": strings.Repeat("n", 252)} {
		_, _, err := o.lines.Read(t.Context(), o.cluster.Client, key, name)
		require.ErrorIs(t, err, futures.ErrBadName)
	}
	_, _, err = futures.DefineParts[orderLine](o.order, "a/b").Read(t.Context(), o.cluster.Client, "7", "a")
	require.ErrorIs(t, err, futures.ErrBadName)
	require.NoError(t, o.call(t.Context(), "7", func(ctx context.Context, key string) error {
		require.ErrorIs(t, o.notes.Set(ctx, key, "a", strings.Repeat("x", futures.MaxActorPart)), futures.ErrTooLarge)
		for i := range futures.MaxTurnParts {
			require.NoError(t, o.lines.Set(ctx, key, fmt.Sprint(i), orderLine{}))
		}
		require.NoError(t, o.lines.Set(ctx, key, "0", orderLine{}))
		require.ErrorIs(t, o.lines.Delete(ctx, key, "another"), futures.ErrTooLarge)
		return nil
	}))
	err = o.call(t.Context(), "8", func(ctx context.Context, key string) error {
		for i := range 16 {
			require.NoError(t, o.notes.Set(ctx, key, fmt.Sprint(i), strings.Repeat("x", 65_000)))
		}
		return nil
	})
	require.ErrorContains(t, err, "have it send the rest to a call of its own")
	_, _, err = o.lines.List(t.Context(), "7", "", 0)
	require.ErrorIs(t, err, futures.ErrOutsideFunction)
	for after, views := "", 0; ; {
		page, next, err := o.cluster.Client.ActorParts(t.Context(), "order", "7", after, 0)
		require.NoError(t, err)
		if views, after = views+len(page), next; next == "" {
			require.Equal(t, futures.MaxTurnParts, views)
			return
		}
	}
}
