package names_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/names"
)

// TestUniqueTwiceInOneCall submits futures with one key in one transaction: what the later one asks for becomes of it.
func TestUniqueTwiceInOneCall(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	refuse := unique(fdbmodel.Unique{})
	_, err := together(s, func(*fdbmodel.Submission) {}, refuse, refuse)
	var refused *fdbmodel.NotUniqueError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 2, refused.Task)
	require.EqualError(t, err,
		`not unique: task 2 of the same call has the key "k", with other arguments: submit one of them`)
	require.Zero(t, s.Counted(layout.Ready))

	back := unique(fdbmodel.Unique{OnConflict: fdbmodel.ConflictReturn})
	got, err := together(s, back, back)
	require.NoError(t, err)
	require.Equal(t, got[0].ID, got[1].ID)
	require.True(t, got[1].Existed)
	require.EqualValues(t, 1, s.Counted(layout.Ready))
	s.RequireSound()
}

// TestATaskReplacesAnEarlierOneOfItsCall as it would that of an earlier call: the last one counts.
func TestATaskReplacesAnEarlierOneOfItsCall(t *testing.T) {
	t.Parallel()
	later := func(s *modeltest.Stage) func(*fdbmodel.Submission) {
		return func(sub *fdbmodel.Submission) { sub.NotBefore = s.Clock.Now().Add(time.Hour) }
	}
	for name, u := range map[string]fdbmodel.Unique{
		"end": {}, "claim": {Until: layout.UntilClaim}, "ever": {Until: layout.UntilEver}, "period": {For: time.Hour},
	} {
		u.OnConflict = fdbmodel.ConflictReplace
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			before, input := s.Submit(unique(u)), s.Submit()
			got, err := together(s, unique(u), func(sub *fdbmodel.Submission) { unique(u)(sub); later(s)(sub) },
				func(sub *fdbmodel.Submission) { unique(u)(sub); sub.Inputs = []layout.ID{input} }, unique(u))
			require.NoError(t, err)
			replaced := before
			for i := range got {
				require.Equal(t, replaced, got[i].Replaced)
				row, err := s.C.Get(s.Ctx, replaced)
				require.NoError(t, err)
				require.Equal(t, layout.KindCancelled, row.Exception.Kind)
				require.Contains(t, row.Exception.Message, got[i].ID.String())
				require.Equal(t, i < len(got)-1, got[i].State == layout.Failed)
				replaced = got[i].ID
			}
			require.EqualValues(t, 2, s.Counted(layout.Ready))
			name := fdbmodel.UniqueNameOf(&fdbmodel.Submission{Unique: &fdbmodel.Unique{Key: "k"}})
			holder, err := names.Of(s.C).Holder(s.Ctx, name)
			require.NoError(t, err)
			require.Equal(t, replaced, holder.ID)
			s.RequireSound()
		})
	}
}

// TestATaskThatOthersTakeIsNotReplacedInItsCall: the call is refused, rather than one of its tasks
// left without an input.
func TestATaskThatOthersTakeIsNotReplacedInItsCall(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	ids, err := s.C.DrawIDs(1)
	require.NoError(t, err)
	replace := unique(fdbmodel.Unique{OnConflict: fdbmodel.ConflictReplace})
	first := func(sub *fdbmodel.Submission) { replace(sub); sub.ID = ids[0] }
	takes := func(sub *fdbmodel.Submission) { sub.Inputs = ids }
	for _, call := range [][]func(*fdbmodel.Submission){
		{first, takes, replace}, {first, func(sub *fdbmodel.Submission) { replace(sub); takes(sub) }},
	} {
		_, err := together(s, call...)
		require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
		require.ErrorContains(t, err, "task 1 of the same call")
		require.Zero(t, s.Counted(layout.Ready))
	}
	s.RequireSound()
}

// TestATaskIsCountedOverTransactions, of which a large call has several.
func TestATaskIsCountedOverTransactions(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	call := make([]func(*fdbmodel.Submission), layout.MaxSubmit+20)
	for i := range call {
		call[i] = unique(fdbmodel.Unique{Key: fmt.Sprint(min(i, layout.MaxSubmit+10))})
	}
	answers, err := together(s, call...)
	require.ErrorContains(t, err, fmt.Sprintf("task %d of the same call", layout.MaxSubmit+11))
	require.Len(t, answers, layout.MaxSubmit)
	s.RequireSound()
}

// TestATransactionThatSubmitsTwiceNamesNoFuture that is not made, because it can't commit.
func TestATransactionThatSubmitsTwiceNamesNoFuture(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	sub := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}}
	unique(fdbmodel.Unique{})(&sub)
	_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
		if _, err := s.C.SubmitTx(s.Ctx, tx, []fdbmodel.Submission{sub}); err != nil {
			return err
		}
		_, err := s.C.SubmitTx(s.Ctx, tx, []fdbmodel.Submission{sub})
		return err
	})
	var refused *fdbmodel.NotUniqueError
	require.ErrorAs(t, err, &refused)
	require.Zero(t, refused.ID)
	require.ErrorContains(t, err, `an earlier task of the same transaction has the key "k": submit one of them`)
	require.Zero(t, s.Counted(layout.Ready))
}

// sends are the ends of two attempts that each send a future of one name.
func sends(s *modeltest.Stage, conflict fdbmodel.Conflict) (done []fdbmodel.Completion, sent []layout.ID) {
	s.Submit()
	s.Submit()
	claimed := s.Claim(s.Worker)
	require.Len(s.T, claimed, 2)
	for i := range claimed {
		sub := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}}
		unique(fdbmodel.Unique{OnConflict: conflict})(&sub)
		subs, err := s.C.Prepare(s.Ctx, []fdbmodel.Submission{sub})
		require.NoError(s.T, err)
		end := modeltest.Realize(&claimed[i])
		end.Beside = &fdbmodel.Beside{Submits: subs}
		done, sent = append(done, end), append(sent, subs[0].ID)
	}
	return done, sent
}

// TestSendsOfTwoAttemptsWithOneName end in one transaction: the later one replaces what the other sends, or fails and
// names it.
func TestSendsOfTwoAttemptsWithOneName(t *testing.T) {
	t.Parallel()
	for _, conflict := range []fdbmodel.Conflict{fdbmodel.ConflictRefuse, fdbmodel.ConflictReplace} {
		s := modeltest.NewStage(t)
		done, sent := sends(s, conflict)
		_, err := s.Worker.Finish(s.Ctx, done)
		require.NoError(t, err)
		if conflict == fdbmodel.ConflictReplace {
			require.Equal(t, layout.Failed, s.State(sent[0]))
			require.Equal(t, layout.Ready, s.State(sent[1]))
			require.Equal(t, layout.Realized, s.State(done[1].Future.ID))
			s.RequireSound()
			continue
		}
		require.Equal(t, layout.Ready, s.State(sent[0]))
		row, err := s.C.Get(s.Ctx, done[1].Future.ID)
		require.NoError(t, err)
		require.Contains(t, row.Exception.Message, "future "+sent[0].String()+" (ready) has the key")
		s.RequireSound()
	}
}

// TestAnIDTwiceInOneCall answers each task with a future that exists, and refuses other content.
func TestAnIDTwiceInOneCall(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	back := unique(fdbmodel.Unique{OnConflict: fdbmodel.ConflictReturn})
	holder := s.Submit(back)
	same := func(sub *fdbmodel.Submission) { back(sub); sub.Key, sub.Args = "same", nil }
	got, err := together(s, same, same)
	require.NoError(t, err)
	for _, one := range got {
		require.Equal(t, holder, one.ID, "the future of the key is not made")
		require.True(t, one.Existed)
	}

	old := func(sub *fdbmodel.Submission) { sub.Key, sub.Args = "old", nil }
	id := s.Submit(old)
	_, _, err = s.C.Cancel(s.Ctx, id, "")
	require.NoError(t, err)
	got, err = together(s, old, old)
	require.NoError(t, err)
	require.Equal(t, []layout.State{layout.Failed, layout.Failed}, []layout.State{got[0].State, got[1].State})

	large := func(b byte) fdbmodel.Submission {
		return fdbmodel.Submission{Key: "large", Spec: layout.Spec{Function: "go:f"},
			Args: bytes.Repeat([]byte{b}, layout.MaxArgsInKey)}
	}
	_, err = s.C.Submit(s.Ctx, []fdbmodel.Submission{large(1), large(2)})
	require.ErrorIs(t, err, fdbmodel.ErrIDInUse)
	one, other := large(1), large(2)
	one.Key, other.Key = "", ""
	one.Unique = &fdbmodel.Unique{Key: "large", OnConflict: fdbmodel.ConflictReturn}
	other.Unique = one.Unique
	got, err = s.C.Submit(s.Ctx, []fdbmodel.Submission{one, other})
	require.NoError(t, err)
	require.Equal(t, "arguments", got[1].Differs)
	got, err = s.C.Submit(s.Ctx, []fdbmodel.Submission{large(1), large(1)})
	require.NoError(t, err)
	require.Equal(t, []bool{false, true}, []bool{got[0].Existed, got[1].Existed})
	s.RequireSound()
}
