package results_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
)

// TestPins keep a future from a discard and from its retention, until all are gone.
func TestPins(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	require.NoError(t, results.Of(s.C).Pin(s.Ctx, id, "report", ""))
	require.NoError(t, results.Of(s.C).Pin(s.Ctx, id, "report", ""))
	require.Equal(t, 1, s.EndAll(func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		return fdbmodel.Completion{Future: f, Result: &layout.Result{Value: []byte("v")}}
	}))
	require.NoError(t, results.Of(s.C).Pin(s.Ctx, id, "audit", ""))
	pins, err := results.Of(s.C).Pins(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, []string{"audit", "report"}, pins)
	err = s.C.Discard(s.Ctx, id)
	require.ErrorIs(t, err, fdbmodel.ErrTransition)
	require.ErrorContains(t, err, "is pinned by audit")
	n, err := s.C.DiscardMany(s.Ctx, []layout.ID{id})
	require.NoError(t, err)
	require.Zero(t, n)
	expire := func() (total int) {
		s.Clock.Advance(s.C.Config().Retention + time.Millisecond)
		for range 3 {
			n, _, err := maintenance.Of(s.C).ExpireDone(s.Ctx)
			require.NoError(t, err)
			total += n
		}
		return total
	}
	require.Zero(t, expire())
	require.NoError(t, results.Of(s.C).Unpin(s.Ctx, id, "audit"))
	require.NoError(t, results.Of(s.C).Unpin(s.Ctx, id, "audit"))
	require.Zero(t, expire())
	s.RequireSound()
	require.NoError(t, results.Of(s.C).Unpin(s.Ctx, id, "report"))
	require.Equal(t, 1, expire())
	require.ErrorIs(t, results.Of(s.C).Pin(s.Ctx, id, "report", ""), fdbmodel.ErrNotFound)
	s.RequireSound()
}

// TestWhatIsKeptIsListedOnce has two janitors expire a pinned future at the same time, and one that is listed often.
func TestWhatIsKeptIsListedOnce(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	db := &modeltest.BeforeCommits{Database: s.Faults, Call: map[string]func(){}}
	other, err := fdbmodel.Open(s.Ctx, db, "unknown", fdbmodel.Options{Clock: s.Clock, Config: s.C.Config()})
	require.NoError(t, err)
	id := s.Submit()
	_, _, err = s.C.Cancel(s.Ctx, id, "")
	require.NoError(t, err)
	require.NoError(t, results.Of(s.C).Pin(s.Ctx, id, "report", ""))
	listed := func() (n int) {
		for shard := range s.C.Config().Shards {
			done := kv.Prefix(s.C.Keys().DoneOf(shard))
			require.NoError(t, s.C.EachKey(s.Ctx, done, func(item kv.KeyValue) error {
				var entry layout.DoneEntry
				err := layout.Decode(item.Key, item.Value, &entry)
				n += len(layout.UnpackIDs(entry.IDs))
				return err
			}))
		}
		return n
	}
	for range 3 {
		s.Clock.Advance(s.C.Config().Retention + time.Millisecond)
		db.Call["futura-expire"] = func() {
			_, _, err := maintenance.Of(s.C).ExpireDone(s.Ctx)
			require.NoError(t, err)
		}
		_, _, err := maintenance.Of(other).ExpireDone(s.Ctx)
		require.NoError(t, err)
		require.Equal(t, 1, listed())
	}
	for range 20 { // listed again and again, by whatever fault
		_, err := s.C.Change(s.Ctx, kv.Options{}, func(_ kv.Attempt, w *fdbmodel.WriteSet) error { w.Keep(id); return nil })
		require.NoError(t, err)
	}
	require.Equal(t, 21, listed())
	s.Clock.Advance(s.C.Config().Retention + time.Millisecond)
	_, next, err := maintenance.Of(s.C).ExpireDone(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, s.C.Now(), next)
	require.Equal(t, 1, listed())
	s.Clock.Advance(s.C.Config().Retention + time.Millisecond)
	_, next, err = maintenance.Of(s.C).ExpireDone(s.Ctx)
	require.NoError(t, err)
	require.Zero(t, next, "what stays does not keep the janitor busy")
}

// TestPinsOfASession end with it.
func TestPinsOfASession(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	require.NoError(t, results.Of(s.C).Pin(s.Ctx, id, "client", "session"))
	_, _, err := s.C.Cancel(s.Ctx, id, "")
	require.NoError(t, err)
	require.ErrorIs(t, s.C.Discard(s.Ctx, id), fdbmodel.ErrTransition)
	require.NoError(t, mailbox.Open(s.C, "session").Close(s.Ctx))
	pins, err := results.Of(s.C).Pins(s.Ctx, id)
	require.NoError(t, err)
	require.Empty(t, pins)
	require.NoError(t, s.C.Discard(s.Ctx, id))
	s.RequireSound()
}

func TestPinsThatCannotBe(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	for _, name := range []string{"", "a b", "a\n", "a/b", strings.Repeat("n", 65), "\xff"} {
		require.ErrorIs(t, results.Of(s.C).Pin(s.Ctx, id, name, ""), layout.ErrBadName, "%q", name)
	}
	for i := range layout.MaxPins {
		require.NoError(t, results.Of(s.C).Pin(s.Ctx, id, fmt.Sprint("p", i), ""))
	}
	require.ErrorIs(t, results.Of(s.C).Pin(s.Ctx, id, "one more", ""), layout.ErrBadName)
	err := results.Of(s.C).Pin(s.Ctx, id, "another", "")
	require.ErrorIs(t, err, fdbmodel.ErrTransition)
	require.ErrorContains(t, err, "has 64 pins, of p0, p1, p10, p11, p12 and 59 more")
	held := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Owner = "g" })
	require.ErrorIs(t, results.Of(s.C).Pin(s.Ctx, held, "p", ""), fdbmodel.ErrTransition)
	s.RequireSound()
}

// TestDamagedPins have no text for the sessions of some holders.
func TestDamagedPins(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	s.Store(s.C.Keys().State(id, layout.StatePins), layout.Encode(&layout.PinsRecord{Holders: []string{"a", "b"}}))
	pins, err := results.Of(s.C).Pins(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, pins)
}
