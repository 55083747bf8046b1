package steps_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// relinquish ends a claim without a trace in the attempts of the future.
func relinquish(s *modeltest.Stage, f *fdbmodel.ClaimedFuture) {
	require.Equal(s.T, fdbmodel.Applied, s.Finish(s.Worker, fdbmodel.Completion{Future: f, Relinquish: true}))
}

// TestALaterClaimKnowsThatThereAreSteps gives a future back in the one way that leaves no trace.
func TestALaterClaimKnowsThatThereAreSteps(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Submit()
	first := s.Claim(s.Worker)[0]
	require.False(t, first.Steps)
	require.Equal(t, []bool{true, true}, write(s, entry(&first, 1, "charge", true), entry(&first, 2, "ship", true)))
	relinquish(s, &first)
	second := s.Claim(s.Worker)[0]
	require.True(t, second.Steps)
	all, err := steps.Of(s.C).Load(s.Ctx, s.Worker, &second)
	require.NoError(t, err)
	require.Equal(t, 2, all.Last)
	require.Equal(t, "charge", string(all.Steps["charge"].Value))
	require.Equal(t, first.Token, all.Steps["ship"].Token)
	s.RequireSound()
}

// TestWhoLostTheClaimRecordsNothing has the former and the present holder of a future, and one
// that has realized it, record steps in one transaction.
func TestWhoLostTheClaimRecordsNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	first := s.Claim(s.Worker)[0]
	relinquish(s, &first)
	second := s.Claim(s.Worker)[0]
	require.Equal(t, []bool{false, true}, write(s, entry(&first, 1, "old", true), entry(&second, 1, "new", true)))
	require.Equal(t, []string{"new"}, names(s, id))
	ended := entry(&second, 2, "late", false)
	ended.Ended = func() bool { return true }
	require.Equal(t, []bool{false}, write(s, ended))
	s.Finish(s.Worker, fdbmodel.Completion{Future: &second, Exception: &layout.Exception{Kind: layout.KindError}})
	require.Equal(t, []bool{false}, write(s, entry(&second, 2, "late", false)))
	require.Equal(t, []string{"new"}, names(s, id))
	s.Clock.Advance(time.Hour)
	_, _, err := maintenance.Of(s.C).PromoteDue(s.Ctx)
	require.NoError(t, err)
	third := s.Claim(s.Worker)[0]
	s.Finish(s.Worker, fdbmodel.Completion{Future: &third, Result: &layout.Result{Value: []byte("v")}})
	require.Equal(t, []bool{false}, write(s, entry(&third, 2, "after", false)), "a result leaves the claim in place")
	require.Equal(t, []string{"new"}, names(s, id))
	s.RequireSound()
}

// TestTheEndOfAClaimStopsItsSteps has a claim end between the reads and the commit of a step.
func TestTheEndOfAClaimStopsItsSteps(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]fdbmodel.Completion{
		"realized": {Result: &layout.Result{Value: []byte("v")}}, "given back": {Relinquish: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			id := s.Submit()
			f := s.Claim(s.Worker)[0]
			ended := false
			_, err := s.Worker.Under(s.Ctx, kv.Options{}, false, func() []*fdbmodel.ClaimedFuture {
				if ended {
					return []*fdbmodel.ClaimedFuture{nil}
				}
				return []*fdbmodel.ClaimedFuture{&f}
			}, func(_ context.Context, tx kv.Attempt, held []bool) error {
				if !ended {
					ended = true
					end.Future = &f
					s.Finish(s.Worker, end)
					require.Equal(t, []bool{true}, held)
				} else {
					require.Equal(t, []bool{false}, held)
				}
				tx.Set([]byte("effect"), []byte{byte(tx.Number)})
				return nil
			})
			require.NoError(t, err)
			require.NotEqual(t, layout.Claimed, s.State(id))
			require.NoError(t, s.C.View(s.Ctx, func(tx kv.Attempt) error {
				value, err := tx.Get([]byte("effect")).Wait(s.Ctx)
				require.Equal(t, []byte{2}, value, "the first attempt has to conflict")
				return err
			}))
		})
	}
}

func TestStepsGoWithTheirFuture(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	ref, err := steps.Of(s.C).Store(s.Ctx, id, f.Token, "large", make([]byte, 100_000))
	require.NoError(t, err)
	large := entry(&f, 1, "large", true)
	large.Record.Value, large.Record.ValueRef, large.Record.Size = nil, &ref, ref.Size
	write(s, large)
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{Value: []byte("v")},
		Beside: &fdbmodel.Beside{Write: []kv.KeyValue{steps.Of(s.C).Unused(&f, []string{"large"}, false)}}})
	sweep(s)
	all, err := steps.Of(s.C).List(s.Ctx, id)
	require.NoError(t, err)
	require.True(t, all[0].Unused)
	value, err := steps.Of(s.C).Value(s.Ctx, id, &all[0].Record)
	require.NoError(t, err, "the sweep leaves what a step refers to")
	require.Len(t, value, 100_000)
	require.NoError(t, s.C.Discard(s.Ctx, id))
	require.Zero(t, countKeys(s, "steps")+countKeys(s, "chunks"))
	s.RequireSound()
}

// TestLargeValuesOfNoStepAreSwept has an attempt store a value, and end before it records the step.
func TestLargeValuesOfNoStepAreSwept(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	_, err := steps.Of(s.C).Store(s.Ctx, id, f.Token, "large", make([]byte, 100_000))
	require.NoError(t, err)
	sweep(s)
	require.NotZero(t, countKeys(s, "chunks"), "its attempt may yet record it")
	relinquish(s, &f)
	sweep(s)
	require.Zero(t, countKeys(s, "chunks"))
}

// TestLargeValuesOfFormerAttemptsAreSwept has two attempts store a value for one step, of which the second records it.
func TestLargeValuesOfFormerAttemptsAreSwept(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	var f fdbmodel.ClaimedFuture
	var ref layout.ChunkRef
	for n := range 2 {
		if n > 0 {
			relinquish(s, &f)
		}
		f = s.Claim(s.Worker)[0]
		var err error
		ref, err = steps.Of(s.C).Store(s.Ctx, id, f.Token, "large", make([]byte, 100_000))
		require.NoError(t, err)
	}
	stored := countKeys(s, "chunks")
	large := entry(&f, 1, "large", true)
	large.Record.Value, large.Record.ValueRef, large.Record.Size = nil, &ref, ref.Size
	write(s, large)
	sweep(s)
	require.Equal(t, stored/2, countKeys(s, "chunks"))
	all, err := steps.Of(s.C).List(s.Ctx, id)
	require.NoError(t, err)
	value, err := steps.Of(s.C).Value(s.Ctx, id, &all[0].Record)
	require.NoError(t, err)
	require.Len(t, value, 100_000)
	s.RequireSound()
}

func sweep(s *modeltest.Stage) {
	for shard := range s.C.Config().Shards {
		for cursor, more := []byte(nil), true; more; more = cursor != nil {
			var err error
			cursor, _, err = maintenance.Of(s.C).SweepChunks(s.Ctx, shard, cursor)
			require.NoError(s.T, err)
		}
	}
}

func countKeys(s *modeltest.Stage, subspace string) (n int) {
	require.NoError(s.T, s.C.EachKey(s.Ctx, s.C.Keys().All(), func(item kv.KeyValue) error {
		if strings.Contains(string(item.Key), "\x02"+subspace+"\x00") {
			n++
		}
		return nil
	}))
	return n
}

// TestARetryKeepsStepsUnlessItStartsOver fails a future for good, and retries it both ways.
func TestARetryKeepsStepsUnlessItStartsOver(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	fail := func(f *fdbmodel.ClaimedFuture) {
		s.Finish(s.Worker, fdbmodel.Completion{Future: f, Permanent: true,
			Exception: &layout.Exception{Kind: layout.KindError}})
	}
	f := s.Claim(s.Worker)[0]
	write(s, entry(&f, 1, "charge", true))
	fail(&f)
	require.NoError(t, s.C.Retry(s.Ctx, id))
	require.ErrorIs(t, steps.Of(s.C).StartOver(s.Ctx, id), fdbmodel.ErrTransition)
	f = s.Claim(s.Worker)[0]
	require.True(t, f.Steps)
	require.Equal(t, []string{"charge"}, names(s, id))
	fail(&f)
	require.NoError(t, steps.Of(s.C).StartOver(s.Ctx, id))
	require.Empty(t, names(s, id))
	f = s.Claim(s.Worker)[0]
	require.False(t, f.Steps)
	write(s, entry(&f, 1, "charge", true))
	require.Equal(t, []string{"charge"}, names(s, id))
	s.RequireSound()
}

// TestWhoseNameIsTakenDoesNotStartOver keeps the steps of a failed future while another one has its name.
func TestWhoseNameIsTakenDoesNotStartOver(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	named := func(sub *fdbmodel.Submission) { sub.Unique = &fdbmodel.Unique{Key: "order"} }
	id := s.Submit(named)
	f := s.Claim(s.Worker)[0]
	write(s, entry(&f, 1, "charge", true))
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Permanent: true,
		Exception: &layout.Exception{Kind: layout.KindError}})
	s.Submit(named)
	require.ErrorIs(t, steps.Of(s.C).StartOver(s.Ctx, id), fdbmodel.ErrNotUnique)
	require.Equal(t, layout.Failed, s.State(id))
	require.Equal(t, []string{"charge"}, names(s, id))
	s.RequireSound()
}

// TestAnItemOfABatchIsNotStartedOver is left to its batch.
func TestAnItemOfABatchIsNotStartedOver(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Owner = "batch" })
	_, _, err := s.C.Cancel(s.Ctx, id, "")
	require.NoError(t, err)
	require.ErrorIs(t, steps.Of(s.C).StartOver(s.Ctx, id), fdbmodel.ErrTransition)
	require.Equal(t, layout.Failed, s.State(id))
}

// TestManyLargeStepsAreReadInPart loads more bytes of values than are kept in memory.
func TestManyLargeStepsAreReadInPart(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	const count = 300
	var entries []steps.Entry
	for i := range count {
		e := entry(&f, i+1, fmt.Sprintf("step %03d", i), i == 0)
		e.Record.Value = make([]byte, steps.MaxInline)
		e.Record.Size = steps.MaxInline
		entries = append(entries, e)
	}
	write(s, entries...)
	relinquish(s, &f)
	f = s.Claim(s.Worker)[0]
	all, err := steps.Of(s.C).Load(s.Ctx, s.Worker, &f)
	require.NoError(t, err)
	require.Len(t, all.Steps, count)
	require.Equal(t, count, all.Last)
	left := 0
	for name, record := range all.Steps {
		if record.Value == nil {
			left++
			whole, err := steps.Of(s.C).Reload(s.Ctx, id, name)
			require.NoError(t, err)
			require.Len(t, whole.Value, steps.MaxInline)
		}
	}
	require.Equal(t, count-1<<20/steps.MaxInline, left)
	_, err = steps.Of(s.C).Reload(s.Ctx, id, "none")
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

func TestStepsAreBounded(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Submit()
	f := s.Claim(s.Worker)[0]
	for name, valid := range map[string]bool{
		"charge": true, "a b/c": true, "#": true, "a#b": true, strings.Repeat("x", 194): true,
		"": false, "a#2": false, "\n": false, "\xff": false, strings.Repeat("x", 195): false,
	} {
		require.Equal(t, valid, steps.CheckName(name) == nil, name)
	}
	require.Equal(t, "a", steps.Numbered("a", 1))
	require.Equal(t, "a#2", steps.Numbered("a", 2))
	for _, change := range []func(*steps.Entry){
		func(e *steps.Entry) { e.Record.Value = make([]byte, steps.MaxInline+1) },
		func(e *steps.Entry) { e.Record.Number = 0 },
		func(e *steps.Entry) { e.Record.Number = steps.Max + 1 },
		func(e *steps.Entry) { e.Record.Attempt = 0 },
		func(e *steps.Entry) { e.Name = strings.Repeat("x", steps.MaxName+1) },
	} {
		e := entry(&f, 1, "charge", true)
		change(&e)
		_, _, err := steps.Of(s.C).Write(s.Ctx, s.Worker, []steps.Entry{e})
		require.Error(t, err)
	}
	_, err := steps.Of(s.C).Store(s.Ctx, f.ID, f.Token, "large", make([]byte, layout.MaxPut+1))
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	_, err = steps.Of(s.C).List(s.Ctx, modeltest.GoldenID)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

// TestUnusedStepsAreThoseOfTheLastEnd marks steps as unused, and ends another attempt that asks
// for all.
func TestUnusedStepsAreThoseOfTheLastEnd(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.MaxRetries = 5 })
	unused := func() (list []string) {
		all, err := steps.Of(s.C).List(s.Ctx, id)
		require.NoError(t, err)
		for i := range all {
			if all[i].Unused {
				list = append(list, all[i].Name)
			}
		}
		return list
	}
	f := s.Claim(s.Worker)[0]
	write(s, entry(&f, 1, "b", true), entry(&f, 2, "a", false))
	mark := steps.Of(s.C).Unused(&f, []string{"b", "a"}, false)
	_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(mark.Key, mark.Value)
		return nil
	})
	require.NoError(t, err)
	relinquish(s, &f)
	require.Equal(t, []string{"b", "a"}, unused())
	sum, err := steps.Of(s.C).Summary(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, sum.Unused, "by name")
	f = s.Claim(s.Worker)[0]
	all, err := steps.Of(s.C).Load(s.Ctx, s.Worker, &f)
	require.NoError(t, err)
	require.True(t, all.Unused)
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{},
		Beside: &fdbmodel.Beside{Write: []kv.KeyValue{steps.Of(s.C).Unused(&f, nil, false)}}})
	require.Empty(t, unused())
	require.Nil(t, steps.Of(s.C).Unused(&f, nil, false).Value, "nothing is kept of an attempt that asked for all")
	s.RequireSound()
}
