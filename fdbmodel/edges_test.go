package fdbmodel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/storetest"
)

// after submits a future that takes the results of others.
func after(s *modeltest.Stage, inputs ...layout.ID) layout.ID {
	return s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = inputs })
}

// submitMany submits n futures.
func submitMany(s *modeltest.Stage, n int, inputs ...layout.ID) []layout.ID {
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}, Inputs: inputs}
	}
	answers, err := s.C.Submit(s.Ctx, subs)
	require.NoError(s.T, err)
	ids := make([]layout.ID, n)
	for i := range answers {
		ids[i] = answers[i].ID
	}
	return ids
}

func endAll(s *modeltest.Stage, end func(*fdbmodel.ClaimedFuture) fdbmodel.Completion) int {
	return s.EndAll(end)
}

func realize(f *fdbmodel.ClaimedFuture) fdbmodel.Completion { return modeltest.Realize(f) }

func failForGood(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	return fdbmodel.Completion{Future: f, Permanent: true,
		Exception: &layout.Exception{Kind: layout.KindError, Message: "the origin"}}
}

func requireSound(s *modeltest.Stage) audit.Report { return s.RequireSound() }

func resolveAll(s *modeltest.Stage) {
	for more := true; more; {
		var err error
		_, more, err = s.C.ResolveEdges(s.Ctx)
		require.NoError(s.T, err)
	}
	requireResolved(s)
}

func requireResolved(s *modeltest.Stage) { s.RequireResolved() }

func TestInputsOfADiamond(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	top := s.Submit()
	left, right := after(s, top), after(s, top)
	bottom := after(s, left, right, left)
	row, err := s.C.Get(s.Ctx, bottom)
	require.NoError(t, err)
	require.Equal(t, 2, row.Spec.CountInputs(), "each counts once")
	require.Equal(t, int64(3), s.Counted(layout.Blocked))
	e, err := inspect.Explain(s.Ctx, s.C, bottom)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonBlocked, e.Reason)
	require.Contains(t, e.Text, left.String()+" (go:f, blocked)")
	for _, want := range []int{1, 2, 1} {
		claimed := s.Claim(s.Worker)
		require.Len(t, claimed, want)
		requireSound(s)
		for i := range claimed {
			s.Finish(s.Worker, realize(&claimed[i]))
		}
	}
	require.Equal(t, layout.Realized, s.State(bottom))
	require.Equal(t, int64(4), s.Counted(layout.Realized))
	notices, _, err := s.Box.Listen(s.Ctx)
	require.NoError(t, err)
	require.Len(t, notices, 4)
	requireResolved(s)
	for _, id := range []layout.ID{bottom, left, right, top} {
		require.NoError(t, s.C.Discard(s.Ctx, id))
	}
	require.Zero(t, requireSound(s).Futures)
}

func TestRealizedInputsBlockNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	endAll(s, realize)
	id := after(s, input)
	require.Equal(t, layout.Ready, s.State(id))
	require.ErrorIs(t, s.C.Discard(s.Ctx, input), fdbmodel.ErrTransition, "it is used")
	s.Clock.Advance(2 * s.C.Config().Retention)
	for range 3 {
		_, _, err := maintenance.Of(s.C).ExpireDone(s.Ctx)
		require.NoError(t, err)
	}
	require.Equal(t, layout.Realized, s.State(input))
	n, err := s.C.DiscardMany(s.Ctx, []layout.ID{input})
	require.NoError(t, err)
	require.Zero(t, n)
	requireSound(s)
	endAll(s, realize)
	s.Clock.Advance(2 * s.C.Config().Retention)
	for range 3 {
		_, _, err := maintenance.Of(s.C).ExpireDone(s.Ctx)
		require.NoError(t, err)
	}
	require.Zero(t, s.State(input), "it is used no more, and expires")
	requireSound(s)
}

func TestFailureUpstreamNamesTheChain(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	origin := s.Submit()
	chain := []layout.ID{origin}
	for range 40 {
		chain = append(chain, after(s, chain[len(chain)-1]))
	}
	endAll(s, failForGood)
	resolveAll(s)
	last := chain[len(chain)-1]
	row, err := s.C.Get(s.Ctx, last)
	require.NoError(t, err)
	require.Equal(t, layout.Failed, row.State())
	require.Equal(t, layout.KindUpstream, row.Exception.Kind)
	require.Contains(t, row.Exception.Message, "input "+chain[len(chain)-2].String()+" (go:f) failed: ")
	require.True(t, strings.HasSuffix(row.Exception.Message, "error: the origin"), row.Exception.Message)
	require.Less(t, len(row.Exception.Message), 3<<10)
	require.Equal(t, int64(41), s.Counted(layout.Failed))

	born := after(s, last)
	require.Equal(t, layout.Failed, s.State(born), "its input has failed already")
	require.NoError(t, s.C.Retry(s.Ctx, born))
	require.Equal(t, layout.Failed, s.State(born), "and has still failed")

	for _, id := range chain {
		require.NoError(t, s.C.Retry(s.Ctx, id))
	}
	require.Equal(t, int64(40), s.Counted(layout.Blocked))
	require.Equal(t, 41, endAll(s, realize))
	resolveAll(s)
	require.Equal(t, layout.Realized, s.State(last))
}

func TestCancelledInput(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	id := after(s, input)
	other := after(s, id)
	_, _, err := s.C.Cancel(s.Ctx, other, "not wanted")
	require.NoError(t, err)
	require.Equal(t, layout.Failed, s.State(other))
	requireSound(s)
	_, _, err = s.C.Cancel(s.Ctx, input, "nor this")
	require.NoError(t, err)
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, layout.KindUpstream, row.Exception.Kind)
	require.Contains(t, row.Exception.Message, "cancelled: nor this")
	requireResolved(s)
}

// TestManyInputs links more inputs than a spec holds, and cuts off what resolves
// edges now and then: a janitor does the rest.
func TestManyInputs(t *testing.T) {
	t.Parallel()
	n := storetest.Fewer(1200, 200)
	for name, end := range map[string]func(*fdbmodel.ClaimedFuture) fdbmodel.Completion{
		"realized": realize, "failed": failForGood,
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewStage(t)
			inputs := submitMany(s, n)
			want := layout.Realized
			s.Faults.FailNext(faultkv.UnknownLate, func(tag string) bool { return tag == "futura-resolve" })
			id := after(s, inputs...)
			require.Equal(t, layout.Blocked, s.State(id))
			if endAll(s, end) == n+1 {
				require.Equal(t, "realized", name)
			}
			resolveAll(s)
			if name == "failed" {
				want = layout.Failed
			}
			endAll(s, realize)
			require.Equal(t, want, s.State(id))
			resolveAll(s)
			for _, input := range inputs {
				require.NoError(t, s.C.Discard(s.Ctx, input))
			}
		})
	}
}

func TestManyDependants(t *testing.T) {
	t.Parallel()
	n := storetest.Fewer(5000, 1000)
	s := modeltest.NewStage(t)
	input := s.Submit()
	submitMany(s, n, input)
	require.Equal(t, int64(n), s.Counted(layout.Blocked))
	claimed := s.Claim(s.Worker)
	require.Len(t, claimed, 1)
	s.Finish(s.Worker, realize(&claimed[0]))
	turn := fdbmodel.ResolveRounds * fdbmodel.MaxPiece
	require.Equal(t, n > turn, s.Counted(layout.Blocked) > 0, "of more than 1,024 others tell the rest")
	require.ErrorIs(t, s.C.Discard(s.Ctx, input), fdbmodel.ErrTransition)
	resolveAll(s)
	require.Equal(t, n, endAll(s, realize))
	requireResolved(s)
}

func TestInvalidInputs(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	drawn, err := s.C.DrawIDs(2)
	require.NoError(t, err)
	spec := layout.Spec{Function: "go:f"}
	assigned, cut := ahead(100, ""), ahead(100, "")
	assigned.Assigned = s.Worker.ID()
	cut.Spec.InputsRef.Size--
	for name, c := range map[string]struct {
		subs []fdbmodel.Submission
		want error
		says string
	}{
		"none":   {[]fdbmodel.Submission{{Spec: spec, Inputs: drawn[:1]}}, layout.ErrBadSpec, "does not exist"},
		"itself": {[]fdbmodel.Submission{{ID: drawn[0], Spec: spec, Inputs: drawn[:1]}}, layout.ErrBadSpec, "own input"},
		"a later one": {[]fdbmodel.Submission{{ID: drawn[0], Spec: spec, Inputs: drawn[1:]}, {ID: drawn[1], Spec: spec}},
			layout.ErrBadSpec, "submit it first"},
		"of a batch": {[]fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Owner: "g"},
			Inputs: []layout.ID{input}}}, layout.ErrBadSpec, "batch"},
		"assigned": {[]fdbmodel.Submission{{Spec: spec, Assigned: s.Worker.ID(), Inputs: []layout.ID{input}}},
			layout.ErrBadSpec, "assigned"},
		"too many": {[]fdbmodel.Submission{{Spec: spec, Inputs: distinct(layout.MaxInputs + 1)}}, fdbmodel.ErrTooLarge,
			"100000"},
		"too few ahead": {[]fdbmodel.Submission{ahead(layout.MaxInputsInSpec, "")}, layout.ErrBadSpec,
			"reference to 64 inputs"},
		"too many ahead": {[]fdbmodel.Submission{ahead(layout.MaxInputs+1, "")}, layout.ErrBadSpec,
			"100000 of them"},
		"ahead and assigned":      {[]fdbmodel.Submission{assigned}, layout.ErrBadSpec, "assigned"},
		"ahead of another length": {[]fdbmodel.Submission{cut}, layout.ErrBadSpec, "does not fit"},
		"ahead with arguments": {[]fdbmodel.Submission{ahead(100, layout.CodecInputs)}, layout.ErrBadSpec,
			"no other arguments"},
	} {
		_, err := s.C.Submit(s.Ctx, c.subs)
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.says, name)
	}
	require.Equal(t, int64(1), requireSound(s).Futures, "nothing was written")
	answers, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{{ID: drawn[1], Drawn: true, Spec: spec},
		{ID: drawn[0], Drawn: true, Spec: spec, Inputs: drawn[1:]}})
	require.NoError(t, err)
	require.Equal(t, layout.Ready, answers[0].State)
	require.Equal(t, layout.Blocked, answers[1].State)
	_, err = s.C.Submit(s.Ctx, []fdbmodel.Submission{{ID: drawn[0], Spec: spec, Inputs: []layout.ID{input}}})
	require.ErrorIs(t, err, fdbmodel.ErrIDInUse)
	require.ErrorContains(t, err, "other inputs")
}

// ahead is a submission with arguments that refers to n inputs.
func ahead(n int, codec string) fdbmodel.Submission {
	size := int64(n * len(layout.ID{}))
	ref := &layout.ChunkRef{Kind: layout.ChunkInputs, Size: size, Count: layout.Pieces(size)}
	return fdbmodel.Submission{Args: []byte("a"), Spec: layout.Spec{Function: "go:f", Codec: codec, InputsRef: ref}}
}

func distinct(n int) []layout.ID {
	ids := make([]layout.ID, n)
	for i := range ids {
		copy(ids[i][:], fmt.Sprintf("%016d", i))
	}
	return ids
}

func TestBlockedAndDelayed(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	submit := func(wait time.Duration) layout.ID {
		return s.Submit(func(sub *fdbmodel.Submission) {
			sub.Inputs, sub.NotBefore = []layout.ID{input}, s.C.Now().Add(wait)
		})
	}
	soon, later := submit(time.Second), submit(time.Hour)
	require.Equal(t, layout.Blocked, s.State(soon))
	s.Clock.Advance(time.Minute)
	_, _, err := maintenance.Of(s.C).PromoteDue(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, layout.Blocked, s.State(soon))
	claimed := s.Claim(s.Worker)
	require.Len(t, claimed, 1)
	s.Finish(s.Worker, realize(&claimed[0]))
	require.Equal(t, layout.Ready, s.State(soon))
	require.Equal(t, layout.Delayed, s.State(later))
	requireSound(s)
}

func TestSubmitTxWithInputs(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	var answers []fdbmodel.Submitted
	result, err := kv.Transact(s.Ctx, s.C.Database(), s.C.RetryPolicy(kv.Options{}), func(tx kv.Attempt) (err error) {
		answers, err = s.C.SubmitTx(s.Ctx, tx, []fdbmodel.Submission{
			{Spec: layout.Spec{Function: "go:f"}, Inputs: []layout.ID{input}}})
		return err
	})
	require.NoError(t, err)
	s.C.Wake(s.Ctx, result.Version, answers)
	require.Equal(t, layout.Blocked, s.State(answers[0].ID))
	_, err = s.C.SubmitTx(context.Background(), nil, []fdbmodel.Submission{
		{Spec: layout.Spec{Function: "go:f"}, Inputs: distinct(layout.MaxInputsInSpec + 1)}})
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	endAll(s, realize)
	require.Equal(t, layout.Realized, s.State(answers[0].ID))
}

// TestRemovedBeforeItsEdgesAreResolved has a future cancelled and removed while its edges
// are to be resolved, by a process that died before it did.
func TestRemovedBeforeItsEdgesAreResolved(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := after(s, s.Submit())
	mark := s.C.Keys().Resolve(id)
	_, err := kv.Transact(s.Ctx, s.C.Database(), s.C.RetryPolicy(kv.Options{}), func(tx kv.Attempt) error {
		tx.Set(mark, layout.Encode(&layout.ResolveRecord{}))
		return nil
	})
	require.NoError(t, err)
	_, _, err = s.C.Cancel(s.Ctx, id, "")
	require.NoError(t, err)
	require.NoError(t, s.C.Discard(s.Ctx, id))
	requireSound(s)
}

// TestDamagedListsOfInputs are of no inputs, and of fewer than none are linked: who resolves dependencies lives on, and
// resolves others.
func TestDamagedListsOfInputs(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	keys := s.C.Keys()
	input := s.Submit()
	empty, negative, sound := after(s, input), after(s, input), after(s, input)
	row, err := s.C.Get(s.Ctx, empty)
	require.NoError(t, err)
	row.Spec.Inputs, row.Spec.InputsRef = nil, &layout.ChunkRef{Kind: layout.ChunkInputs, Token: "t"}
	s.Store(keys.Spec(empty), layout.Encode(row.Spec))
	s.Store(keys.State(negative, layout.StateBlocked), layout.Encode(&layout.BlockedRecord{Linked: -1}))
	for _, id := range []layout.ID{empty, negative, sound} {
		s.Store(keys.Resolve(id), layout.Encode(&layout.ResolveRecord{}))
	}
	resolved, _, err := s.C.ResolveEdges(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, 2, resolved)
	require.NotNil(t, s.Read(keys.Resolve(empty)), "it is left to an operator")
	require.Nil(t, s.Read(keys.Resolve(sound)))
}

// TestDiscardCountsWhatItRemoved counts none of a transaction that fails, because of another one that can't be read.
func TestDiscardCountsWhatItRemoved(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	ids := []layout.ID{s.Submit(), s.Submit()}
	for _, id := range ids {
		_, _, err := s.C.Cancel(s.Ctx, id, "")
		require.NoError(t, err)
	}
	s.Store(s.C.Keys().State(ids[1], layout.StateException), []byte{0})
	removed, err := s.C.DiscardMany(s.Ctx, ids)
	require.ErrorIs(t, err, layout.ErrBadRecord)
	require.Zero(t, removed)
	require.Equal(t, layout.Failed, s.State(ids[0]), "it is still there")
}

// TestRetriesOfAnUnknownCommit count the futures that an attempt has made ready whose result was unknown.
func TestRetriesOfAnUnknownCommit(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	failed, ready := s.Submit(), s.Submit()
	_, _, err := s.C.Cancel(s.Ctx, failed, "")
	require.NoError(t, err)
	s.Faults.FailNext(faultkv.UnknownCommitted, func(tag string) bool { return tag == "futura-retry" })
	outcomes, err := s.C.RetryMany(s.Ctx, []layout.ID{failed, ready})
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Refused}, outcomes)
	require.Equal(t, layout.Ready, s.State(failed))
}
