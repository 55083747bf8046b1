package inspect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// readKeys is a store that counts the keys that ranges return.
type readKeys struct {
	kv.Database
	n atomic.Int64
}

// Begin implements kv.Database.
func (s *readKeys) Begin(o kv.Options) kv.Tx { return readKeysTx{s.Database.Begin(o), s} }

type readKeysTx struct {
	kv.Tx
	of *readKeys
}

// GetRange implements kv.Tx.
func (t readKeysTx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return t.of.count(t.Tx, r, o)
}

// Snapshot implements kv.Tx.
func (t readKeysTx) Snapshot() kv.Reader { return readKeysSnapshot{t.Tx.Snapshot(), t.of} }

type readKeysSnapshot struct {
	kv.Reader
	of *readKeys
}

// GetRange implements kv.Reader.
func (t readKeysSnapshot) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return t.of.count(t.Reader, r, o)
}

func (s *readKeys) count(from kv.Reader, r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	pending := from.GetRange(r, o)
	return kv.Later(func(ctx context.Context) (kv.Page, error) {
		page, err := pending.Wait(ctx)
		s.n.Add(int64(len(page.Items)))
		return page, err
	})
}

// listed is a cluster whose futures are listed.
type listed struct {
	*testing.T
	c      *fdbmodel.Cluster
	clock  *clock.Virtual
	store  *readKeys
	worker *fdbmodel.Registration
}

func newListed(t *testing.T, shards int) *listed {
	l := &listed{T: t, clock: clock.NewVirtual(time.UnixMilli(1_800_000_000_000))}
	l.store = &readKeys{Database: embedded.OpenMemory(embedded.Options{})}
	t.Cleanup(func() { require.NoError(t, l.store.Close()) })
	var err error
	l.c, err = fdbmodel.Open(t.Context(), l.store, "list", fdbmodel.Options{
		Clock: l.clock, Config: layout.Config{Shards: shards},
	})
	require.NoError(t, err)
	require.NoError(t, lanes.Of(l.c).SetKind(t.Context(), "k", layout.LaneKind{Width: 2}))
	l.worker, err = l.c.Register(t.Context(), layout.WorkerInfo{
		Functions: []string{"go:f", "go:g"}, Queues: []string{"default", "q"}, Capacity: layout.Resources{Slots: 1000},
	})
	require.NoError(t, err)
	return l
}

func (l *listed) submit(s fdbmodel.Submission) layout.ID {
	answers, err := l.c.Submit(l.Context(), []fdbmodel.Submission{s})
	require.NoError(l, err)
	return answers[0].ID
}

// claim claims up to n futures; one look may find fewer.
func (l *listed) claim(n int) (all []fdbmodel.ClaimedFuture) {
	for looks := 0; len(all) < n && looks < 20; looks++ {
		left := n - len(all)
		answer, err := l.worker.Claim(l.Context(), fdbmodel.ClaimRequest{Free: layout.Resources{Slots: left}, Max: left})
		require.NoError(l, err)
		all = append(all, answer.Futures...)
	}
	return all
}

// end ends up to n futures, those whose turn it is with a failure.
func (l *listed) end(n int, fails func(int) bool) {
	claimed := l.claim(n)
	var done []fdbmodel.Completion
	for i := range claimed {
		c := fdbmodel.Completion{Future: &claimed[i], Result: &layout.Result{}}
		if fails(i) {
			c.Result, c.Exception = nil, &layout.Exception{Kind: layout.KindError}
		}
		done = append(done, c)
	}
	_, err := l.worker.Finish(l.Context(), done)
	require.NoError(l, err)
}

// pages lists everything in pages.
func (l *listed) pages(f inspect.Filter, limit int) (ids []layout.ID) {
	for cursor := []byte(nil); ; {
		rows, next, err := inspect.List(l.Context(), l.c, f, cursor, limit)
		require.NoError(l, err)
		require.LessOrEqual(l, len(rows), limit)
		for i := range rows {
			ids = append(ids, rows[i].ID)
		}
		if cursor = next; len(cursor) == 0 {
			return ids
		}
		require.Len(l, rows, limit, "there was room for more")
	}
}

// TestNewestComeFirst compares lists of all kinds, in pages of all sizes, with what a
// sort of everything finds.
func TestNewestComeFirst(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 4} {
		l := newListed(t, shards)
		random := rand.New(rand.NewPCG(uint64(shards), 1))
		begin := l.clock.Now()
		for n := range 150 {
			s := fdbmodel.Submission{Spec: layout.Spec{Function: []string{"go:f", "go:g"}[random.IntN(2)],
				Queue: []string{"default", "q"}[random.IntN(2)]}}
			switch random.IntN(6) {
			case 0:
				s.NotBefore = l.clock.Now().Add(time.Hour)
			case 1:
				s.Spec.Owner = "batch"
			}
			if random.IntN(3) == 0 {
				s.Key = fmt.Sprint("key ", n)
			}
			if s.Spec.Owner == "" && random.IntN(4) == 0 {
				s.Spec.Lane = layout.Lane{Kind: "k", Key: []string{"x", "y"}[random.IntN(2)]}
			}
			for _, tag := range []string{"a", "b:1", "c"} {
				if random.IntN(4) == 0 {
					s.Spec.Tags = append(s.Spec.Tags, tag, tag)
				}
			}
			l.submit(s)
			if random.IntN(4) > 0 {
				l.clock.Advance(time.Duration(random.IntN(3000)) * time.Millisecond)
			}
			if random.IntN(5) == 0 {
				l.end(random.IntN(8)+1, func(i int) bool { return i%2 == 0 })
			}
		}
		l.claim(9)
		all, next, err := inspect.List(t.Context(), l.c, inspect.Filter{}, nil, inspect.MaxList)
		require.NoError(t, err)
		require.Empty(t, next)
		slices.SortFunc(all, func(a, b layout.Row) int {
			return layout.AgeOf(b.ID, b.Spec).Compare(layout.AgeOf(a.ID, a.Spec))
		})
		third, half := begin.Add(l.clock.Now().Sub(begin)/3), begin.Add(l.clock.Now().Sub(begin)/2)
		for range 300 {
			f := inspect.Filter{
				Newest: true, LeftOut: new(int), State: layout.State(random.IntN(len(layout.States()) + 1)),
				Queue:    []string{"", "", "q"}[random.IntN(3)],
				Function: []string{"", "", "go:g"}[random.IntN(3)], Tag: []string{"", "", "a", "b:1"}[random.IntN(4)],
				Lane:   []layout.Lane{{}, {}, {Kind: "k", Key: "x"}}[random.IntN(3)],
				Worker: []layout.WorkerID{"", "", l.worker.ID()}[random.IntN(3)],
			}
			if random.IntN(3) == 0 {
				f.Since = []time.Time{third, begin.Add(10 * 365 * 24 * time.Hour)}[random.IntN(2)]
			}
			if random.IntN(3) == 0 {
				f.Until = []time.Time{half, begin, begin.Add(-time.Hour)}[random.IntN(3)]
			}
			var want []layout.ID
			for i := range all {
				r := &all[i]
				at := time.UnixMilli(layout.AgeOf(r.ID, r.Spec).Millis)
				if (f.State == 0 || r.State() == f.State) && (f.Queue == "" || r.Spec.Queue == f.Queue) && !r.Spec.Held() &&
					(f.Function == "" || r.Spec.Function == f.Function) && (f.Tag == "" || slices.Contains(r.Spec.Tags, f.Tag)) &&
					(f.Lane.IsZero() || r.Spec.Lane == f.Lane) && (f.Worker == "" || r.Claim != nil || r.Exception != nil) &&
					(f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || at.Before(f.Until)) {
					want = append(want, r.ID)
				}
			}
			require.Equal(t, want, l.pages(f, 1+random.IntN(40)), "%+v", f)
		}
		report, err := audit.Check(t.Context(), l.c, audit.Options{})
		require.NoError(t, err)
		require.Empty(t, report.Problems)
	}
}

// TestListsReadWhatTheyList: the others cost nothing, however many they are.
func TestListsReadWhatTheyList(t *testing.T) {
	t.Parallel()
	others := 3000
	if testing.Short() {
		others = 1500
	}
	few := func(s *fdbmodel.Submission) { s.Spec.Function = "go:g" }
	cost := func(others int) map[string]int64 {
		l := newListed(t, 4)
		put := func(n int, change func(*fdbmodel.Submission)) {
			for range n {
				s := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}}
				change(&s)
				l.submit(s)
				l.clock.Advance(time.Second)
			}
		}
		put(5, func(s *fdbmodel.Submission) { few(s); s.Spec.Tags = []string{"t"} })
		l.end(5, func(int) bool { return true })
		put(5, func(s *fdbmodel.Submission) { few(s); s.NotBefore = l.clock.Now().Add(9999 * time.Hour) })
		put(5, few)
		l.claim(5)
		for range others / 100 {
			put(100, func(*fdbmodel.Submission) {})
			l.end(100, func(int) bool { return false })
		}
		put(5, few)
		read := map[string]int64{}
		for name, f := range map[string]inspect.Filter{
			"tag": {Tag: "t"}, "failed": {State: layout.Failed}, "claimed": {State: layout.Claimed},
			"delayed": {State: layout.Delayed}, "ready": {State: layout.Ready}, "time": {Until: l.clock.Now().Add(
				-time.Duration(others+10) * time.Second)}, "nothing": {Tag: "none"},
		} {
			f.Newest, f.LeftOut = true, new(int)
			before := l.store.n.Load()
			rows, next, err := inspect.List(l.Context(), l.c, f, nil, 100)
			require.NoError(t, err)
			require.Empty(t, next, name)
			want := map[string]int{"time": 10, "nothing": 0}
			if n, known := want[name]; known && name == "nothing" {
				require.Len(t, rows, n)
			} else if !known {
				require.Len(t, rows, 5, name)
			}
			read[name] = l.store.n.Load() - before
		}
		return read
	}
	small, large := cost(100), cost(others)
	t.Logf("keys read beside 100 others %v, beside %d %v", small, others, large)
	for name, n := range large {
		require.LessOrEqual(t, n, small[name]+20, name)
	}
}

func TestListsRefuseWhatTheyCanNotRead(t *testing.T) {
	t.Parallel()
	l := newListed(t, 1)
	for _, f := range []inspect.Filter{{Tag: "a b"}, {Tag: string(make([]byte, 99))}} {
		_, _, err := inspect.List(t.Context(), l.c, f, nil, 1)
		require.ErrorIs(t, err, layout.ErrBadName)
	}
	_, _, err := inspect.List(t.Context(), l.c, inspect.Filter{Newest: true, Tag: "t"}, []byte("cursor"), 1)
	require.ErrorIs(t, err, layout.ErrBadCursor)
}
