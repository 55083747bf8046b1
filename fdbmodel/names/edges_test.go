package names_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/names"
)

// together submits futures with one name in one transaction, on conflict each as it says.
func together(s *modeltest.Stage, change ...func(*fdbmodel.Submission)) ([]fdbmodel.Submitted, error) {
	subs := make([]fdbmodel.Submission, len(change))
	for i, fn := range change {
		subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}, Args: []byte{byte(i)}}
		fn(&subs[i])
	}
	return s.C.Submit(s.Ctx, subs)
}

// TestANameIsTakenByOneOfATransaction also if it was free only for that one.
func TestANameIsTakenByOneOfATransaction(t *testing.T) {
	t.Parallel()
	replace := unique(fdbmodel.Unique{OnConflict: fdbmodel.ConflictReplace})
	t.Run("by replacing", func(t *testing.T) {
		t.Parallel()
		s := modeltest.NewStage(t)
		s.Submit(unique(fdbmodel.Unique{}))
		_, err := together(s, replace, unique(fdbmodel.Unique{}))
		require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
	})
	t.Run("after one that ends at once", func(t *testing.T) {
		t.Parallel()
		s := modeltest.NewStage(t)
		failed := s.Submit()
		f := s.Claim(s.Worker)
		s.Finish(s.Worker, failForGood(&f[0]))
		_, err := together(s, func(sub *fdbmodel.Submission) {
			unique(fdbmodel.Unique{})(sub)
			sub.Inputs = []layout.ID{failed}
		}, unique(fdbmodel.Unique{}), unique(fdbmodel.Unique{}))
		require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
	})
	for name, first := range map[string]int{
		"before a user of what it replaces": 0, "after a user of what it replaces": 1,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			other := s.Submit(unique(fdbmodel.Unique{}))
			both := make([]func(*fdbmodel.Submission), 2)
			both[first], both[1-first] = replace, func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{other} }
			got, err := together(s, both...)
			require.NoError(t, err)
			require.Equal(t, other, got[first].Replaced)
			require.Equal(t, layout.Failed, s.State(other))
			s.C.ResolveMarked(s.Ctx)
			require.Equal(t, layout.Failed, s.State(got[1-first].ID), "it does not wait for ever")
			require.Empty(t, s.Problems())
		})
	}
}

// TestANameIsTakenByOneOfTwoProcesses that see nothing of each other.
func TestANameIsTakenByOneOfTwoProcesses(t *testing.T) {
	t.Parallel()
	sub := func() []fdbmodel.Submission {
		sub := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}}
		unique(fdbmodel.Unique{})(&sub)
		return []fdbmodel.Submission{sub}
	}
	s := modeltest.NewStage(t)
	c := s.Interrupted("futura-submit", func() {
		_, err := s.C.Submit(s.Ctx, sub())
		require.NoError(t, err)
	})
	_, err := c.Submit(s.Ctx, sub())
	require.ErrorIs(t, err, fdbmodel.ErrNotUnique)

	f := s.Claim(s.Worker)
	s.Finish(s.Worker, failForGood(&f[0]))
	c = s.Interrupted("futura-retry", func() {
		_, err := s.C.Submit(s.Ctx, sub())
		require.NoError(t, err)
	})
	require.ErrorIs(t, c.Retry(s.Ctx, f[0].ID), fdbmodel.ErrNotUnique)
	require.Empty(t, s.Problems())
}

// TestNamesOfAPeriodAreFreedOnce whatever becomes of a commit, and not of a future that
// starts over meanwhile.
func TestNamesOfAPeriodAreFreedOnce(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"once": false, "starts over": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			s.Submit(unique(fdbmodel.Unique{For: time.Minute}))
			f := s.Claim(s.Worker)
			s.Finish(s.Worker, failForGood(&f[0]))
			s.Clock.Advance(2 * time.Minute)
			c, want := s.C, 1
			if !again {
				s.Faults.FailNext(faultkv.UnknownLost, func(tag string) bool { return tag == "futura-unique" })
			} else {
				want = 0
				c = s.Interrupted("futura-unique", func() { require.NoError(t, s.C.Retry(s.Ctx, f[0].ID)) })
			}
			freed, _, err := names.Of(c).Free(s.Ctx)
			require.NoError(t, err)
			require.Equal(t, want, freed)
			_, err = names.Of(s.C).Holder(s.Ctx, f[0].Spec.Unique.Name)
			require.Equal(t, again, err == nil, "%v", err)
			require.Empty(t, s.Problems())
		})
	}
}

func TestANameThatIsReleasedIsNotDue(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Submit(unique(fdbmodel.Unique{For: time.Hour}))
	f := s.Claim(s.Worker)
	s.Finish(s.Worker, failForGood(&f[0]))
	_, next, err := names.Of(s.C).Free(s.Ctx)
	require.NoError(t, err)
	require.False(t, next.IsZero())
	_, err = names.Of(s.C).Release(s.Ctx, f[0].Spec.Unique.Name)
	require.NoError(t, err)
	_, next, err = names.Of(s.C).Free(s.Ctx)
	require.NoError(t, err)
	require.True(t, next.IsZero())
}

// TestNamesKeepPartsApart has the same words in other places.
func TestNamesKeepPartsApart(t *testing.T) {
	t.Parallel()
	id := layout.ID([]byte("0123456789abcdef"))
	names := map[layout.UniqueName]bool{}
	for _, sub := range []fdbmodel.Submission{
		{Spec: layout.Spec{Argv: []string{"a", "b"}}}, {Spec: layout.Spec{Env: map[string]string{"a": "b"}}},
		{Spec: layout.Spec{Env: map[string]string{string(id[:]): string(id[:])}}}, {Inputs: []layout.ID{id, id}},
		{Spec: layout.Spec{Argv: []string{"", ""}}}, {Spec: layout.Spec{Argv: []string{""}}}, {},
	} {
		sub.Unique = &fdbmodel.Unique{}
		names[fdbmodel.UniqueNameOf(&sub)] = true
	}
	require.Len(t, names, 7)
}
