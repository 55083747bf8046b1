package lanes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// together runs fn in a transaction of its own.
func (s laneStage) together(fn func(submit func(...fdbmodel.Submission) []fdbmodel.Submitted) error) error {
	_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
		return fn(func(subs ...fdbmodel.Submission) []fdbmodel.Submitted {
			answers, err := s.C.SubmitTx(s.Ctx, tx, subs)
			require.NoError(s.T, err)
			return answers
		})
	})
	return err
}

// endOneByOne ends futures each of which is the next one of the lane, or waits for those before it.
func (s laneStage) endOneByOne(ids []layout.ID) {
	for _, want := range ids {
		require.Equal(s.T, []layout.ID{want}, s.end())
		_, _, err := s.C.ResolveEdges(s.Ctx)
		require.NoError(s.T, err)
		s.check()
	}
}

// TestATransactionUsesWhatItPutInLine has a transaction of the caller put a future in line, which it can't read
// then, and submit others that depend on it.
func TestATransactionUsesWhatItPutInLine(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	first := s.submit("x")
	ids, err := s.C.DrawIDs(3)
	require.NoError(t, err)
	lined, user := s.inLanes("x")[0], fdbmodel.Submission{ID: ids[1], Spec: layout.Spec{Function: "go:f"}}
	lined.ID, user.Inputs = ids[0], ids[:1]
	after := s.inLanes("x")[0]
	after.ID, after.Inputs = ids[2], ids[:2]
	require.NoError(t, s.together(func(submit func(...fdbmodel.Submission) []fdbmodel.Submitted) error {
		require.False(t, submit(lined)[0].Existed)
		require.Equal(t, layout.Blocked, submit(user)[0].State)
		again := submit(lined, user)
		require.True(t, again[0].Existed && again[1].Existed)
		require.Equal(t, layout.Ready, again[0].State)
		require.Equal(t, layout.Blocked, submit(after)[0].State)
		return nil
	}))
	s.check()
	require.Equal(t, ids[:1], s.line("x"))
	s.endOneByOne(append([]layout.ID{first}, ids...))
}

// TestUnknownResultOfATransactionThatSubmitsTwice has another attempt find, or not, what the first has put in line.
func TestUnknownResultOfATransactionThatSubmitsTwice(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{})
			first := s.submit("x")
			ids, err := s.C.DrawIDs(2)
			require.NoError(t, err)
			lined, user := s.inLanes("x")[0], fdbmodel.Submission{ID: ids[1], Spec: layout.Spec{Function: "go:f"}}
			lined.ID, user.Inputs = ids[0], ids[:1]
			attempts := 0
			s.Faults.FailNext(fault, func(string) bool { return true })
			require.NoError(t, s.together(func(submit func(...fdbmodel.Submission) []fdbmodel.Submitted) error {
				attempts++
				submit(lined)
				require.Equal(t, layout.Blocked, submit(user)[0].State)
				return nil
			}))
			require.Greater(t, attempts, 1)
			s.Faults.Flush()
			s.check()
			require.Equal(t, ids[:1], s.line("x"))
			s.endOneByOne(append([]layout.ID{first}, ids...))
		})
	}
}

// TestATransactionNamesWhatItPutInLine submits unique futures in one transaction, of which the first is in line.
func TestATransactionNamesWhatItPutInLine(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	s.submit("x")
	named := func(on fdbmodel.Conflict) fdbmodel.Submission {
		sub := s.inLanes("x")[0]
		sub.Unique = &fdbmodel.Unique{Key: "u", OnConflict: on}
		return sub
	}
	for _, on := range []fdbmodel.Conflict{fdbmodel.ConflictRefuse, fdbmodel.ConflictReplace} {
		_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
			if _, err := s.C.SubmitTx(s.Ctx, tx, []fdbmodel.Submission{named(on)}); err != nil {
				return err
			}
			_, err := s.C.SubmitTx(s.Ctx, tx, []fdbmodel.Submission{named(on)})
			return err
		})
		require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
		require.Empty(t, s.line("x"))
	}
	require.NoError(t, s.together(func(submit func(...fdbmodel.Submission) []fdbmodel.Submitted) error {
		one, two := submit(named(fdbmodel.ConflictReturn))[0], submit(named(fdbmodel.ConflictReturn))[0]
		require.Equal(t, one.ID, two.ID)
		require.True(t, two.Existed)
		return nil
	}))
	require.Len(t, s.line("x"), 1)
	s.check()
}

// TestATransactionWithARefusedSubmitCannotCommit, though its function does not say so: the first of the futures that
// were refused together may be written.
func TestATransactionWithARefusedSubmitCannotCommit(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	unique := func() fdbmodel.Submission {
		return fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"},
			Unique: &fdbmodel.Unique{Key: "u", OnConflict: fdbmodel.ConflictRefuse}}
	}
	s.Submit(func(sub *fdbmodel.Submission) { *sub = unique() })
	before := s.Counted(layout.Ready)
	both := []fdbmodel.Submission{s.inLanes("x")[0], unique()}
	_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
		_, err := s.C.SubmitTx(s.Ctx, tx, both)
		require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
		return nil
	})
	require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
	tx := s.C.Database().Begin(kv.Options{})
	_, err = s.C.SubmitTx(s.Ctx, tx, both)
	require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
	_, err = tx.Commit(s.Ctx)
	require.ErrorIs(t, err, kv.ErrKeyTooLarge)
	require.Equal(t, before, s.Counted(layout.Ready))
	s.check()
}

// TestATransactionEndsFuturesTwice has two submits of one transaction end others: what each of them lists is there.
func TestATransactionEndsFuturesTwice(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	var before []layout.ID
	named := func(i int) fdbmodel.Submission {
		return fdbmodel.Submission{
			Spec:   layout.Spec{Function: "go:f"},
			Unique: &fdbmodel.Unique{Key: fmt.Sprint(i), OnConflict: fdbmodel.ConflictReplace},
		}
	}
	const n = 20 // some of the same shard
	for i := range n {
		before = append(before, s.Submit(func(sub *fdbmodel.Submission) { *sub = named(i) }))
	}
	require.NoError(t, s.together(func(submit func(...fdbmodel.Submission) []fdbmodel.Submitted) error {
		for i := range n {
			require.Equal(t, before[i], submit(named(i))[0].Replaced)
		}
		return nil
	}))
	s.check()
}

// TestLanesWaitForTheirTurnAndNotForTheRateOfAnother has a transaction of the caller free the slot of a total width by
// replacing a future of a lane that has used up its rate.
func TestLanesWaitForTheirTurnAndNotForTheRateOfAnother(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 2, Total: 1, Rate: 1, Every: time.Hour})
	u := &fdbmodel.Unique{Key: "u", OnConflict: fdbmodel.ConflictReplace}
	s.submit("x", func(sub *fdbmodel.Submission) { sub.Unique = u })
	waits := s.submit("y")
	require.NoError(t, s.together(func(submit func(...fdbmodel.Submission) []fdbmodel.Submitted) error {
		next := s.inLanes("x")[0]
		ids, err := s.C.DrawIDs(1)
		next.ID, next.Unique = ids[0], u
		require.NotZero(t, submit(next)[0].Replaced)
		return err
	}))
	s.admit()
	require.Equal(t, []layout.ID{waits}, s.end())
	s.check()
}
