package head

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/seam"
)

// spread is a store and a dispatcher of which a test says who has what.
type spread struct {
	batch.Mover
	now     time.Time
	workers []Candidate
	waiting map[string]int // what a worker has not begun
	gone    error          // what Move says of the worker c
	calls   int
	log     []string
}

// called is the spread's dispatcher.
type called struct {
	Dispatcher
	*spread
}

func (s called) Cancel(context.Context, Order, string) error { panic("nobody cancels") }

func (s called) RollCall(context.Context, *batch.Template) ([]Candidate, error) {
	s.calls++
	return append([]Candidate(nil), s.workers...), nil
}

func (s *spread) Move(_ context.Context, from string, to *batch.Chunk, most int) (int, error) {
	if s.gone != nil && to.Worker == "c" {
		return 0, s.gone
	}
	n := min((s.waiting[from]+1)/2, most)
	s.waiting[from] -= n
	s.log = append(s.log, fmt.Sprint(from, ">", to.Worker, " ", n))
	return n, nil
}

func newSpread(nodes int, workers ...Candidate) (*spread, *driver, *batch.Batch) {
	s := &spread{now: time.Unix(1e9, 0), workers: workers, waiting: map[string]int{}}
	h := New(Options{Dispatcher: called{spread: s}, MoveAfter: time.Second, Seam: &seam.Head{
		Now: func() time.Time { return s.now }, Random: zeros{},
	}})
	return s, newDriver(h, "b"), &batch.Batch{ID: "b", Template: batch.Template{Config: batch.Config{Nodes: nodes}}}
}

// loads takes pairs of a worker and a number of items.
func loads(pairs ...any) (list []batch.Load) {
	for pair := range slices.Chunk(pairs, 2) {
		list = append(list, batch.Load{Worker: pair[0].(string), Items: pair[1].(int)})
	}
	return list
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestSpreading moves half of what a worker has not begun to each that has room, up to as many
// as the batch asks for, after a second and not before.
func TestSpreading(t *testing.T) {
	t.Parallel()
	a, b, c, full := Candidate{Worker: "a", Free: 1}, Candidate{Worker: "b", Free: 2}, Candidate{Worker: "c", Free: 1},
		Candidate{Worker: "full"}
	all := []Candidate{a, b, c, full}
	for _, test := range []struct {
		name    string
		nodes   int
		workers []Candidate
		loads   []batch.Load
		waiting map[string]int
		want    []string
		calls   int
	}{
		{"all", -1, all, loads("a", 9), map[string]int{"a": 8}, []string{"a>b 4", "a>c 2"}, 1},
		{"two", 2, all, loads("a", 9), map[string]int{"a": 8}, []string{"a>b 4"}, 1},
		{"one", 1, all, loads("a", 9), map[string]int{"a": 8}, nil, 0},
		{"any one", 0, all, loads("a", 9), map[string]int{"a": 8}, nil, 0},
		{"enough", 2, all, loads("a", 9, "b", 1), map[string]int{"a": 8}, nil, 0},
		{"the longest first", -1, []Candidate{c}, loads("a", 3, "b", 9), map[string]int{"a": 2, "b": 8},
			[]string{"b>c 4"}, 1},
		{"no room", -1, []Candidate{a, full}, loads("a", 9), map[string]int{"a": 8}, nil, 1},
		{"nobody", -1, nil, loads("a", 9), map[string]int{"a": 8}, nil, 1},
		{"one item", -1, all, loads("a", 1), map[string]int{"a": 1}, []string{"a>b 1"}, 1},
		{"bounded", -1, []Candidate{b}, loads("a", 1_000_000), map[string]int{"a": 1_000_000}, []string{"a>b 2000"}, 1},
		{"nothing given", -1, all, nil, nil, nil, 0},
		{"all begun", -1, all, loads("a", 1, "x", 1), map[string]int{}, []string{"a>b 0", "x>b 0"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, d, made := newSpread(test.nodes, test.workers...)
			s.waiting = test.waiting
			for range 2 {
				_, err := d.balance(t.Context(), s, made, test.loads)
				require.NoError(t, err)
				require.Empty(t, s.log)
				require.Zero(t, s.calls, "they were just given out")
			}
			s.now = s.now.Add(time.Second)
			_, err := d.balance(t.Context(), s, made, test.loads)
			require.NoError(t, err)
			require.Equal(t, test.want, s.log)
			require.Equal(t, test.calls, s.calls)
		})
	}
}

// TestWhatHasBegunIsAskedForRarely has all items of a worker run for an hour.
func TestWhatHasBegunIsAskedForRarely(t *testing.T) {
	t.Parallel()
	s, d, made := newSpread(-1, Candidate{Worker: "a"}, Candidate{Worker: "b", Free: 1})
	for range 3600 {
		_, err := d.balance(t.Context(), s, made, []batch.Load{{Worker: "a", Items: 1}})
		require.NoError(t, err)
		s.now = s.now.Add(time.Second)
	}
	require.Less(t, len(s.log), 60)
	require.Greater(t, len(s.log), 40)
	require.Equal(t, len(s.log), s.calls, "no roll call otherwise")
}

// TestWhoIsDoneGetsMore has a worker end its part: it gets items a moment later, though its
// heartbeat does not say yet that it has room.
func TestWhoIsDoneGetsMore(t *testing.T) {
	t.Parallel()
	s, d, made := newSpread(2, Candidate{Worker: "a"}, Candidate{Worker: "b"})
	s.waiting["a"] = 8
	look := func(loads ...batch.Load) time.Time {
		next, err := d.balance(t.Context(), s, made, loads)
		require.NoError(t, err)
		return next
	}
	look(batch.Load{Worker: "a", Items: 9}, batch.Load{Worker: "b", Items: 9})
	next := look(batch.Load{Worker: "a", Items: 9})
	require.Equal(t, s.now.Add(250*time.Millisecond), next)
	require.Empty(t, s.log)
	s.now = next
	look(batch.Load{Worker: "a", Items: 9})
	require.Equal(t, []string{"a>b 4"}, s.log)
}

// TestMovingCanBeOff asks nobody.
func TestMovingCanBeOff(t *testing.T) {
	t.Parallel()
	s, d, made := newSpread(-1, Candidate{Worker: "b", Free: 1})
	d.head.options.MoveAfter = -1
	for range 10 {
		next, err := d.balance(t.Context(), s, made, []batch.Load{{Worker: "a", Items: 5}})
		require.NoError(t, err)
		require.Zero(t, next)
		s.now = s.now.Add(time.Hour)
	}
	require.Zero(t, s.calls)
}

// TestAWorkerThatHasGoneIsPassedOver: the next one gets items.
func TestAWorkerThatHasGoneIsPassedOver(t *testing.T) {
	t.Parallel()
	for _, gone := range []error{batch.ErrNotFound, layout.ErrUnfit, batch.ErrState} {
		s, d, made := newSpread(-1, Candidate{Worker: "c", Free: 9}, Candidate{Worker: "b", Free: 1})
		s.gone, s.waiting["a"] = gone, 8
		for range 2 {
			_, err := d.balance(t.Context(), s, made, loads("a", 9))
			require.NoError(t, err)
			s.now = s.now.Add(time.Second)
		}
		var want []string
		if gone != batch.ErrState { // the batch is over
			want = []string{"a>b 4"}
		}
		require.Equal(t, want, s.log, gone)
	}
}
