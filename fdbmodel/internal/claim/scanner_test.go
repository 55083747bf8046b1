package claim

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/storetest"
)

// TestClassesAreFewAndForgotten meets more classes than are remembered, and none
// for a while.
func TestClassesAreFewAndForgotten(t *testing.T) {
	t.Parallel()
	keys := layout.NewKeyspace("c")
	keys.Shards = 1
	s, now := NewScanner(keys, func(int) int { return 0 }), time.Unix(1_900_000_000, 0)
	for n := range 2 * maxClasses {
		s.remember("q", fmt.Appendf(nil, "%03d", n), now)
	}
	require.Len(t, s.classes["q"], maxClasses)
	tx := storetest.New(t).Begin(kv.Options{})
	defer tx.Cancel()
	for _, step := range []struct {
		after time.Duration
		left  int
	}{{classLifetime, maxClasses}, {classLifetime + 1, 0}} {
		require.NoError(t, s.Discover(t.Context(), tx, 0, "q", now.Add(step.after)))
		require.Len(t, s.classes["q"], step.left)
	}
}

// TestAMalformedKeyHidesNoFuture has a key that is none of the ready index before one that is.
func TestAMalformedKeyHidesNoFuture(t *testing.T) {
	t.Parallel()
	keys := layout.NewKeyspace("c")
	keys.Shards = 1
	db := storetest.New(t)
	id := layout.ID{1}
	ready, malformed := keys.Ready(id, &layout.Spec{Queue: "q"}), tuple.AppendString(keys.ReadyQueue(0, "q"), "x")
	require.Negative(t, bytes.Compare(malformed, ready))
	write := db.Begin(kv.Options{})
	write.Set(malformed, nil)
	write.Set(ready, []byte("f"))
	_, err := write.Commit(t.Context())
	require.NoError(t, err)

	s, now := NewScanner(keys, func(int) int { return 0 }), time.Unix(1_900_000_000, 0)
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	require.NoError(t, s.Discover(t.Context(), tx, 0, "q", now))
	require.Len(t, s.classes["q"], 1)
	look := s.Ask(tx, 0, Want{Queue: "q", Free: layout.Resources{Slots: 1}, Page: 1})
	found, err := s.Collect(t.Context(), tx, look, now, 1)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, id, found[0].ID)
}

// TestALookPassesWhatLooksFromThereHaveSeen has a look give up that begins at the second of two classes: one from the
// beginning still finds what is at the end of the first.
func TestALookPassesWhatLooksFromThereHaveSeen(t *testing.T) {
	t.Parallel()
	keys := layout.NewKeyspace("c")
	keys.Shards = 1
	db := storetest.New(t)
	for _, class := range []struct {
		cpu int64
		n   int
	}{{1, 32 * MaxPage}, {2, 4 * MaxPage}} {
		spec := &layout.Spec{Queue: "q", Requirements: layout.Requirements{CPU: class.cpu}}
		write := db.Begin(kv.Options{})
		for n := range class.n {
			write.Set(keys.Ready(layout.ID{byte(n >> 8), byte(n)}, spec), []byte("others"))
		}
		if class.cpu == 1 {
			write.Set(keys.Ready(layout.ID{0xff}, spec), []byte("mine"))
		}
		_, err := write.Commit(t.Context())
		require.NoError(t, err)
	}

	var picks []int
	s, now := NewScanner(keys, func(int) int {
		first := picks[0]
		picks = picks[1:]
		return first
	}), time.Unix(1_900_000_000, 0)
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	require.NoError(t, s.Discover(t.Context(), tx, 0, "q", now))
	require.Len(t, s.classes["q"], 2)
	look := func(choose ...int) []layout.ReadyEntry {
		picks = choose
		a := s.Ask(tx, 0, Want{Queue: "q", Free: layout.Resources{Slots: 1, CPU: 9}, Page: 1,
			Runs: func(function string) bool { return function == "mine" }})
		found, err := s.Collect(t.Context(), tx, a, now, 1)
		require.NoError(t, err)
		return found
	}
	require.Empty(t, look(0, 1))
	found := look(1)
	require.Len(t, found, 1)
	require.Equal(t, layout.ID{0xff}, found[0].ID)
}
