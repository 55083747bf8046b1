package futures_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

// watches is a type of actors that are reminded, for one test.
type watches struct {
	*futurestest.Cluster
	ring futures.Method[string, int] // counts how often
	set  futures.Method[alarm, futures.ID]
}

// alarm is a reminder to set, of another actor if Key is one.
type alarm struct{ Key, Name, Says string }

func newWatches(t *testing.T) *watches {
	w := &watches{Cluster: futurestest.New(t)}
	actor := futures.DefineActor[[]string]("watch")
	w.ring = futures.DefineMethod(actor, "ring", func(_ context.Context, rung *[]string, says string) (int, error) {
		*rung = append(*rung, says)
		return len(*rung), nil
	})
	w.set = futures.DefineMethod(actor, "set", func(ctx context.Context, _ *[]string, a alarm) (futures.ID, error) {
		return w.ring.Remind(ctx, a.Key, a.Name, time.Hour, a.Says)
	})
	w.Register(w.ring.Bind())
	w.Register(w.set.Bind())
	return w
}

// rung returns what an actor was reminded of, after a day.
func (w *watches) rung(t *testing.T, keys ...string) (all []string) {
	w.Elapse(24 * time.Hour)
	w.Run()
	for _, key := range keys {
		rung, _, err := futures.DefineActor[[]string]("watch").Read(t.Context(), w.Client, key)
		require.NoError(t, err)
		all = append(all, key+": "+strings.Join(rung, " "))
	}
	return all
}

// TestRemindersOfANameReplaceEachOther has actors set reminders with equal names, for themselves and for others: the
// last one of each actor and name counts.
func TestRemindersOfANameReplaceEachOther(t *testing.T) {
	t.Parallel()
	w, longest, odd := newWatches(t), strings.Repeat("n", 256), strings.Repeat("\x01", 256)
	for _, a := range []alarm{
		{"a", "tea", "first"}, {"b", "tea", "his"}, {"a", odd, "never"}, {"a", "tea", "last"}, {"a", longest, "long"},
		{"a", odd, "odd"},
	} {
		_, err := w.set.Call(t.Context(), w.Client, "a", a)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"a: last long odd", "b: his"}, w.rung(t, "a", "b"))
	for _, name := range []string{"", longest + "n"} {
		_, err := w.set.Call(t.Context(), w.Client, "a", alarm{"a", name, "never"}, futures.Retries(0))
		require.ErrorContains(t, err, "use a name of 1 to 256 bytes")
	}
}

// TestAReminderThatRunsIsNotReplaced has another actor set a reminder anew while it runs.
func TestAReminderThatRunsIsNotReplaced(t *testing.T) {
	t.Parallel()
	w := newWatches(t)
	actor, again := futures.DefineActor[[]string]("watch"), true
	var slow futures.Method[string, int]
	var begin futures.Method[string, futures.ID]
	slow = futures.DefineMethod(actor, "slow", func(ctx context.Context, rung *[]string, says string) (int, error) {
		if *rung = append(*rung, says); !again {
			return 0, nil
		}
		again = false
		_, err := begin.Call(ctx, w.Client, "b", "second")
		return 0, err
	})
	begin = futures.DefineMethod(actor, "begin", func(ctx context.Context, _ *[]string, says string) (futures.ID, error) {
		return slow.Remind(ctx, "a", "tea", time.Hour, says)
	})
	w.Register(slow.Bind())
	w.Register(begin.Bind())
	_, err := begin.Call(t.Context(), w.Client, "b", "first")
	require.NoError(t, err)
	w.rung(t)
	require.Equal(t, []string{"a: first second"}, w.rung(t, "a"))
}
