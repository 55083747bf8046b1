package names_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/names"
	"github.com/futura-run/futura/internal/storetest"
)

// unique has a submission be the only one with a key.
func unique(u fdbmodel.Unique) func(*fdbmodel.Submission) {
	if u.Key == "" && len(u.By) == 0 {
		u.Key = "k"
	}
	return func(s *fdbmodel.Submission) {
		own := u
		s.Unique = &own
	}
}

// trySubmit submits one future, which may be refused.
func trySubmit(s *modeltest.Stage, change ...func(*fdbmodel.Submission)) (fdbmodel.Submitted, error) {
	sub := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Session: "session"}, Args: []byte("x")}
	for _, fn := range change {
		fn(&sub)
	}
	got, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{sub})
	if err != nil {
		return fdbmodel.Submitted{}, err
	}
	return got[0], nil
}

// The other future of a conflict: 0 is one that was removed.
var otherStates = append(layout.States(), 0)

// TestUniqueConflicts submits a unique future while another one with its key is in each
// state, for each time that this keeps the key, and each answer to the conflict.
func TestUniqueConflicts(t *testing.T) {
	t.Parallel()
	untils := map[string]fdbmodel.Unique{
		"end": {}, "claim": {Until: layout.UntilClaim}, "ever": {Until: layout.UntilEver},
		"period": {For: time.Minute}, "claim and period": {Until: layout.UntilClaim, For: time.Minute},
		"period over": {For: time.Millisecond}, "claim and period over": {Until: layout.UntilClaim, For: time.Millisecond},
	}
	for name, u := range untils {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conflicts := []fdbmodel.Conflict{fdbmodel.ConflictRefuse, fdbmodel.ConflictReturn, fdbmodel.ConflictReplace}
			for i, state := range otherStates {
				// On a server, each state is met by one of them.
				for n := range storetest.Fewer(len(conflicts), 1) {
					playConflict(t, u, state, false, conflicts[(i+n+len(name))%len(conflicts)])
					if state == layout.Ready || state == layout.Delayed {
						playConflict(t, u, state, true, conflicts[(i+n+len(name))%len(conflicts)])
					}
				}
			}
		})
	}
}

func playConflict(t *testing.T, u fdbmodel.Unique, state layout.State, begun bool, conflict fdbmodel.Conflict) {
	s := modeltest.NewStage(t)
	other := uniqueBegun(s, u, state, begun)
	s.Clock.Advance(time.Second)
	over := state == 0 || state.Terminal()
	waits := !over && state != layout.Claimed && !begun
	holds := u.Until == layout.UntilEver || u.For > time.Second || waits || !over && u.Until == ""
	u.OnConflict = conflict
	got, err := trySubmit(s, unique(u), func(sub *fdbmodel.Submission) { sub.Args = []byte("y") })
	about := fmt.Sprintf("%+v while the other is %v, and has begun: %v", u, state, begun)
	var refused *fdbmodel.NotUniqueError
	switch {
	case !holds:
		require.NoError(t, err, about)
		require.NotEqual(t, other, got.ID, about)
		require.False(t, got.Existed, about)
	case conflict == fdbmodel.ConflictReturn:
		require.NoError(t, err, about)
		require.Equal(t, other, got.ID, about)
		require.True(t, got.Existed, about)
		require.Equal(t, state, got.State, about)
		require.Equal(t, state != 0, got.Differs != "", about)
	case conflict == fdbmodel.ConflictReplace && waits:
		require.NoError(t, err, about)
		require.Equal(t, other, got.Replaced, about)
		row, err := s.C.Get(s.Ctx, other)
		require.NoError(t, err)
		require.Equal(t, layout.KindCancelled, row.Exception.Kind, about)
		require.Contains(t, row.Exception.Message, got.ID.String(), about)
	default:
		require.ErrorAs(t, err, &refused, about)
		require.ErrorIs(t, err, fdbmodel.ErrNotUnique, about)
		require.True(t, fdbmodel.IsMistake(err))
		require.Equal(t, other, refused.ID, about)
		require.Equal(t, state, refused.State, about)
		require.Contains(t, err.Error(), other.String())
		require.Equal(t, state != 0, refused.Differs != "", about)
	}
	if state != 0 && !(conflict == fdbmodel.ConflictReplace && holds && waits) {
		require.Equal(t, state, s.State(other), about)
	}
	s.RequireSound()
}

// TestUniqueByParts has two futures differ in one part, and be unique by others.
func TestUniqueByParts(t *testing.T) {
	t.Parallel()
	changes := map[string]struct {
		part   fdbmodel.UniquePart
		change func(*fdbmodel.Submission)
	}{
		"function":  {fdbmodel.UniqueFunction, func(s *fdbmodel.Submission) { s.Spec.Function = "go:g" }},
		"queue":     {fdbmodel.UniqueQueue, func(s *fdbmodel.Submission) { s.Spec.Queue = "q" }},
		"arguments": {fdbmodel.UniqueArguments, func(s *fdbmodel.Submission) { s.Args = []byte("y") }},
		"large": {fdbmodel.UniqueArguments, func(s *fdbmodel.Submission) {
			s.Args = make([]byte, layout.MaxArgsInKey+1)
		}},
		"codec":    {fdbmodel.UniqueArguments, func(s *fdbmodel.Submission) { s.Spec.Codec = layout.CodecMsgpack }},
		"argv":     {fdbmodel.UniqueArguments, func(s *fdbmodel.Submission) { s.Spec.Argv = []string{"a"} }},
		"variable": {fdbmodel.UniqueArguments, func(s *fdbmodel.Submission) { s.Spec.Env = map[string]string{"A": "b"} }},
		"priority": {"", func(s *fdbmodel.Submission) { s.Spec.Priority = 3 }},
	}
	for _, by := range [][]fdbmodel.UniquePart{nil, {fdbmodel.UniqueFunction}, {fdbmodel.UniqueQueue},
		{fdbmodel.UniqueArguments}, {fdbmodel.UniqueArguments, fdbmodel.UniqueFunction}} {
		for _, key := range []string{"", "k"} {
			parts := by
			if by == nil && key == "" {
				parts = []fdbmodel.UniquePart{fdbmodel.UniqueFunction, fdbmodel.UniqueQueue, fdbmodel.UniqueArguments}
			}
			s := modeltest.NewStage(t)
			have := func(sub *fdbmodel.Submission) { sub.Unique = &fdbmodel.Unique{Key: key, By: by} }
			first := s.Submit(have)
			_, err := trySubmit(s, have)
			require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
			for name, c := range changes {
				_, err := trySubmit(s, have, c.change)
				require.Equal(t, !slices.Contains(parts, c.part), err != nil, "%q by %v with another %s: %v", key, by, name, err)
			}
			_, err = trySubmit(s, func(sub *fdbmodel.Submission) { sub.Unique = &fdbmodel.Unique{Key: "other", By: by} })
			require.NoError(t, err)
			require.Equal(t, layout.Ready, s.State(first))
			s.RequireSound()
		}
	}
}

// TestOfIsTheNameThatASubmitTakes, with what a submission leaves open, and for an alias.
func TestOfIsTheNameThatASubmitTakes(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	_, err := modules.Of(s.C).Put(s.Ctx, []byte("module"), "shout")
	require.NoError(t, err)
	for i, change := range []func(*fdbmodel.Submission){
		func(*fdbmodel.Submission) {},
		func(sub *fdbmodel.Submission) { sub.Spec.Queue = "q" },
		func(sub *fdbmodel.Submission) { sub.Spec.Codec = layout.CodecMsgpack },
		func(sub *fdbmodel.Submission) { sub.Spec.Function = "wasm:shout" },
	} {
		sub := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Session: "session"}, Args: []byte("x")}
		change(&sub)
		sub.Unique = &fdbmodel.Unique{By: []fdbmodel.UniquePart{
			fdbmodel.UniqueFunction, fdbmodel.UniqueQueue, fdbmodel.UniqueArguments,
		}}
		name, err := names.Of(s.C).Of(s.Ctx, sub)
		require.NoError(t, err, i)
		_, err = names.Of(s.C).Holder(s.Ctx, name)
		require.ErrorIs(t, err, fdbmodel.ErrNotFound, i)
		got, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{sub})
		require.NoError(t, err, i)
		holder, err := names.Of(s.C).Holder(s.Ctx, name)
		require.NoError(t, err, i)
		require.Equal(t, got[0].ID, holder.ID, i)
	}
}

// TestUniqueRequests are refused before anything is written.
func TestUniqueRequests(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	_, err := trySubmit(s, unique(fdbmodel.Unique{Key: string(make([]byte, layout.MaxUniqueKey+1))}))
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	for _, u := range []fdbmodel.Unique{
		{Until: "later"}, {For: -1}, {For: layout.MaxUniqueFor + 1}, {Until: layout.UntilEver, For: time.Second},
		{OnConflict: "ignore"}, {By: []fdbmodel.UniquePart{"label"}},
	} {
		_, err := trySubmit(s, unique(u))
		require.ErrorIs(t, err, layout.ErrBadSpec, "%+v", u)
	}
	_, err = trySubmit(s, unique(fdbmodel.Unique{}), func(sub *fdbmodel.Submission) { sub.Spec.Owner = "batch" })
	require.ErrorIs(t, err, layout.ErrBadSpec)
	require.Zero(t, s.Counted(layout.Ready))
}

// TestUniqueRetry retries a future whose key another one has taken since, and once
// that has ended.
func TestUniqueRetry(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]fdbmodel.Unique{"end": {}, "claim": {Until: layout.UntilClaim},
		"period": {For: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			first := uniqueOther(s, u, layout.Failed)
			s.Clock.Advance(2 * time.Minute)
			second := s.Submit(unique(u))
			var refused *fdbmodel.NotUniqueError
			require.ErrorAs(t, s.C.Retry(s.Ctx, first), &refused)
			require.Equal(t, second, refused.ID)
			outcomes, err := s.C.RetryMany(s.Ctx, []layout.ID{first})
			require.NoError(t, err)
			require.Equal(t, []fdbmodel.Outcome{fdbmodel.Refused}, outcomes)
			require.Equal(t, layout.Failed, s.State(first))
			s.RequireSound()

			_, _, err = s.C.Cancel(s.Ctx, second, "")
			require.NoError(t, err)
			s.Clock.Advance(2 * time.Minute)
			require.NoError(t, s.C.Retry(s.Ctx, first))
			require.Equal(t, layout.Ready, s.State(first))
			s.RequireSound()
			_, err = trySubmit(s, unique(u))
			require.ErrorAs(t, err, &refused)
			require.Equal(t, first, refused.ID)
			outcomes, err = s.C.RetryMany(s.Ctx, []layout.ID{first, second})
			require.NoError(t, err)
			require.NotContains(t, outcomes, fdbmodel.Applied)
			f := s.Claim(s.Worker)
			s.Finish(s.Worker, modeltest.Realize(&f[0]))
			s.RequireSound()
			_, err = trySubmit(s, unique(u))
			require.NoError(t, err)
		})
	}
}

// TestUniqueOfTwoRetries retries two futures with one key in one call: one starts over.
func TestUniqueOfTwoRetries(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	ids := []layout.ID{uniqueOther(s, fdbmodel.Unique{}, layout.Failed), uniqueOther(s, fdbmodel.Unique{}, layout.Failed)}
	outcomes, err := s.C.RetryMany(s.Ctx, ids)
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Refused}, outcomes)
	s.RequireSound()
}

// TestUniqueNamesAreFreed looks at what is left of keys once their time has passed.
func TestUniqueNamesAreFreed(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	left := func() (n int) {
		for _, sub := range []string{layout.SubUnique, layout.SubUniqueDue} {
			for shard := range s.C.Config().Shards {
				require.NoError(t, s.C.EachKey(s.Ctx, kv.Prefix(s.C.Keys().Shard(shard, sub)), func(kv.KeyValue) error {
					n++
					return nil
				}))
			}
		}
		return n
	}
	outlives := uniqueOther(s, fdbmodel.Unique{Key: "outlives its future", For: time.Hour}, 0)
	uniqueOther(s, fdbmodel.Unique{Key: "ends", For: time.Minute}, layout.Realized)
	uniqueOther(s, fdbmodel.Unique{Key: "runs", For: time.Minute}, layout.Claimed)
	uniqueOther(s, fdbmodel.Unique{Key: "over"}, layout.Failed)
	retried := uniqueOther(s, fdbmodel.Unique{Key: "retried", For: time.Minute}, layout.Failed)
	require.NoError(t, s.C.Retry(s.Ctx, retried))
	require.Equal(t, 2+2+1+0+1, left())
	freed, next, err := names.Of(s.C).Free(s.Ctx)
	require.NoError(t, err)
	require.Zero(t, freed)
	require.WithinDuration(t, s.Clock.Now().Add(time.Minute), next, time.Second)
	s.Clock.Advance(2 * time.Minute)
	freed, next, err = names.Of(s.C).Free(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, 1, freed)
	require.WithinDuration(t, s.Clock.Now().Add(58*time.Minute), next, time.Minute)
	require.Equal(t, 2+1+1, left())
	s.RequireSound()

	holder, err := names.Of(s.C).Holder(s.Ctx, fdbmodel.UniqueNameOf(&fdbmodel.Submission{
		Unique: &fdbmodel.Unique{Key: "outlives its future"}}))
	require.NoError(t, err)
	require.Equal(t, outlives, holder.ID)
	s.Clock.Advance(time.Hour)
	for freed = 1; freed > 0; {
		freed, _, err = names.Of(s.C).Free(s.Ctx)
		require.NoError(t, err)
	}
	require.Equal(t, 1+1, left())
	s.RequireSound()
}

// TestUniqueNamesAreReleased releases keys that are kept for ever or for a period.
func TestUniqueNamesAreReleased(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	name := fdbmodel.UniqueNameOf(&fdbmodel.Submission{Unique: &fdbmodel.Unique{Key: "k"}})
	_, err := names.Of(s.C).Release(s.Ctx, name)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	for _, u := range []fdbmodel.Unique{{Until: layout.UntilEver}, {For: time.Hour}} {
		for _, state := range otherStates {
			id := uniqueOther(s, u, state)
			holder, err := names.Of(s.C).Release(s.Ctx, name)
			if state != 0 && !state.Terminal() {
				require.ErrorIs(t, err, fdbmodel.ErrTransition)
				_, _, err = s.C.Cancel(s.Ctx, id, "")
				require.NoError(t, err)
				if state == layout.Claimed {
					require.NoError(t, s.Worker.Leave(s.Ctx))
					s.Worker, err = s.C.Register(s.Ctx, s.Info())
					require.NoError(t, err)
				}
				_, err = names.Of(s.C).Release(s.Ctx, name)
				require.NoError(t, err)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, id, holder.ID)
			s.RequireSound()
		}
	}
}

// TestUniqueForEverOutlivesItsKey submits a future with an idempotency key again after
// it was removed: its unique key is still taken.
func TestUniqueForEverOutlivesItsKey(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	again := func(sub *fdbmodel.Submission) {
		sub.Key, sub.Unique = "key", &fdbmodel.Unique{Key: "k", Until: layout.UntilEver}
	}
	id := s.Submit(again)
	require.Equal(t, id, s.Submit(again), "the same id is the same future")
	f := s.Claim(s.Worker)
	s.Finish(s.Worker, modeltest.Realize(&f[0]))
	require.Equal(t, id, s.Submit(again))
	require.NoError(t, s.C.Discard(s.Ctx, id))
	_, err := trySubmit(s, again)
	var refused *fdbmodel.NotUniqueError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, id, refused.ID)
	require.Zero(t, refused.State)
}

// TestReplacedInput replaces a future that others take the result of: they fail, also
// one that the same call submits, and the new one if it takes the result itself.
func TestReplacedInput(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	old := s.Submit(unique(fdbmodel.Unique{}))
	before := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{old} })
	replacing := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}, Inputs: []layout.ID{old},
		Unique: &fdbmodel.Unique{Key: "k", OnConflict: fdbmodel.ConflictReplace}}
	plain := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}, Inputs: []layout.ID{old}}
	got, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{plain, replacing, plain})
	require.NoError(t, err)
	for more := true; more; {
		_, more, err = s.C.ResolveEdges(s.Ctx)
		require.NoError(t, err)
	}
	for _, id := range []layout.ID{old, before, got[0].ID, got[1].ID, got[2].ID} {
		require.Equal(t, layout.Failed, s.State(id))
	}
	s.RequireSound()
}

// TestOneOfManyIsUnique has many submit at once: one of their futures exists.
func TestOneOfManyIsUnique(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	var wg sync.WaitGroup
	made := make([]bool, 32)
	for i := range made {
		wg.Go(func() {
			_, err := trySubmit(s, unique(fdbmodel.Unique{}))
			if made[i] = err == nil; !made[i] {
				require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, s.Counted(layout.Ready))
	require.Len(t, slices.DeleteFunc(made, func(is bool) bool { return !is }), 1)
	s.RequireSound()
}

// TestUnknownResultsOfUniqueFutures is TestUnknownResults for them.
func TestUnknownResultsOfUniqueFutures(t *testing.T) {
	t.Parallel()
	u := fdbmodel.Unique{}
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-submit": func(s *modeltest.Stage, strike func()) {
			strike()
			id := s.Submit(unique(u))
			s.Faults.Flush()
			require.Equal(s.T, layout.Ready, s.State(id))
			require.EqualValues(s.T, 1, s.Counted(layout.Ready))
		},
		"futura-submit that replaces": func(s *modeltest.Stage, strike func()) {
			old := s.Submit(unique(u))
			strike()
			id := s.Submit(unique(fdbmodel.Unique{OnConflict: fdbmodel.ConflictReplace}))
			s.Faults.Flush()
			require.Equal(s.T, layout.Ready, s.State(id))
			require.Equal(s.T, layout.Failed, s.State(old))
		},
		"futura-submit of one that replaces another of its call": func(s *modeltest.Stage, strike func()) {
			replace := unique(fdbmodel.Unique{OnConflict: fdbmodel.ConflictReplace})
			strike()
			got, err := together(s, replace, replace)
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.Equal(s.T, layout.Failed, s.State(got[0].ID))
			require.Equal(s.T, layout.Ready, s.State(got[1].ID))
			require.EqualValues(s.T, 1, s.Counted(layout.Ready))
		},
		"futura-submit of what is there and of another": func(s *modeltest.Stage, strike func()) {
			s.Submit(unique(u))
			strike()
			both := []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}}, {Spec: layout.Spec{Function: "go:f"}}}
			unique(fdbmodel.Unique{OnConflict: fdbmodel.ConflictReturn})(&both[0])
			_, err := s.C.Submit(s.Ctx, both)
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.EqualValues(s.T, 2, s.Counted(layout.Ready))
		},
		"futura-finish": func(s *modeltest.Stage, strike func()) {
			s.Submit(unique(u))
			f := s.Claim(s.Worker)
			strike()
			s.Finish(s.Worker, modeltest.Realize(&f[0]))
			s.Faults.Flush()
			s.Submit(unique(u))
		},
		"futura-finish whose sends replace each other": func(s *modeltest.Stage, strike func()) {
			done, sent := sends(s, fdbmodel.ConflictReplace)
			strike()
			_, err := s.Worker.Finish(s.Ctx, done)
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.Equal(s.T, layout.Failed, s.State(sent[0]))
			require.Equal(s.T, layout.Ready, s.State(sent[1]))
			require.EqualValues(s.T, 1, s.Counted(layout.Ready))
		},
		"futura-retry": func(s *modeltest.Stage, strike func()) {
			id := uniqueOther(s, u, layout.Failed)
			strike()
			require.NoError(s.T, s.C.Retry(s.Ctx, id))
			s.Faults.Flush()
			require.Equal(s.T, layout.Ready, s.State(id))
			_, err := trySubmit(s, unique(u))
			require.ErrorIs(s.T, err, fdbmodel.ErrNotUnique)
		},
		"futura-unique": func(s *modeltest.Stage, strike func()) {
			uniqueOther(s, fdbmodel.Unique{For: time.Second}, layout.Failed)
			s.Clock.Advance(time.Minute)
			strike()
			_, _, err := names.Of(s.C).Free(s.Ctx)
			require.NoError(s.T, err)
			s.Faults.Flush()
			s.Submit(unique(u))
		},
	})
}

// TestUniqueNamesOfWordsAndVariables has words that look like variables.
func TestUniqueNamesOfWordsAndVariables(t *testing.T) {
	t.Parallel()
	words, variables := fdbmodel.Submission{Unique: &fdbmodel.Unique{}}, fdbmodel.Submission{Unique: &fdbmodel.Unique{}}
	words.Spec.Argv = []string{"", "x", "y", "z"}
	variables.Spec.Env = map[string]string{"x": "y", "z": ""}
	require.NotEqual(t, fdbmodel.UniqueNameOf(&words), fdbmodel.UniqueNameOf(&variables))
}
