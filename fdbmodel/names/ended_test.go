package names_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestANameOfAFutureThatFailsAtOnce submits two futures with one name, of which the first
// fails at once and keeps the name for a while.
func TestANameOfAFutureThatFailsAtOnce(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	_, _, err := s.C.Cancel(s.Ctx, input, "not wanted")
	require.NoError(t, err)
	both := []fdbmodel.Submission{
		{Spec: layout.Spec{Function: "go:f"}, Inputs: []layout.ID{input}}, {Spec: layout.Spec{Function: "go:f"}},
	}
	for i := range both {
		unique(fdbmodel.Unique{For: time.Hour})(&both[i])
	}
	_, err = s.C.Submit(s.Ctx, both)
	var refused *fdbmodel.NotUniqueError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, layout.Failed, refused.State)
	require.WithinDuration(t, s.Clock.Now().Add(time.Hour), refused.FreeAt, time.Second)
	require.NotContains(t, err.Error(), "until it is over")
}

// TestAReplacedFutureIsDiscarded discards one whose users were still to be told.
func TestAReplacedFutureIsDiscarded(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	old := s.Submit(unique(fdbmodel.Unique{}))
	by := []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}}}
	unique(fdbmodel.Unique{OnConflict: fdbmodel.ConflictReplace})(&by[0])
	_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
		_, err := s.C.SubmitTx(s.Ctx, tx, by)
		return err
	})
	require.NoError(t, err)
	require.NoError(t, s.C.Discard(s.Ctx, old))
	s.RequireSound()
}

// TestAnIDIsUsedAgainWithoutItsName removes a future that keeps its name for a while, and
// submits another one with its id and without the name.
func TestAnIDIsUsedAgainWithoutItsName(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	named := unique(fdbmodel.Unique{For: time.Hour})
	id := s.Submit(named)
	_, _, err := s.C.Cancel(s.Ctx, id, "not wanted")
	require.NoError(t, err)
	require.NoError(t, s.C.Discard(s.Ctx, id))
	s.Submit(func(sub *fdbmodel.Submission) { sub.ID = id })
	s.RequireSound()
	_, err = trySubmit(s, named)
	require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
	s.Clock.Advance(time.Hour)
	s.Submit(named)
	s.RequireSound()
}

func failForGood(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	return fdbmodel.Completion{Future: f, Permanent: true, Exception: &layout.Exception{Kind: layout.KindError}}
}
