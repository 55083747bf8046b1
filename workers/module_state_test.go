package workers

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

var visits = actors.Ref{Type: "counter", Key: "visits"}

// callModule has a module called as a method of an actor, as often as n.
func (b *bed) callModule(n int, change ...func(*fdbmodel.Submission)) []layout.ID {
	b.t.Helper()
	require.NoError(b.t, lanes.Of(b.cluster).EnsureKind(b.ctx, actors.LaneKind(visits.Type), layout.LaneKind{Width: 1}))
	function, subs := b.module(), make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i] = b.describe(function, append(change, func(s *fdbmodel.Submission) { s.Spec.Lane = visits.Lane() })...)
	}
	return b.submit(subs...)
}

func (b *bed) visits() actors.State {
	b.t.Helper()
	s, err := actors.Of(b.cluster).Read(b.ctx, visits)
	require.NoError(b.t, err)
	return s
}

// visit adds 1 to the state as a module does.
func visit(ctx context.Context, host ModuleHost) (string, error) {
	state, exists, err := host(ctx, "state_get", "", nil)
	if err != nil {
		return "", err
	}
	n := 0
	if exists {
		if n, err = strconv.Atoi(string(state)); err != nil {
			return "", err
		}
	}
	memory := strconv.AppendInt(nil, int64(n+1), 10)
	sum := string(memory)
	_, _, err = host(ctx, "state_put", "", memory)
	clear(memory) // as its memory may be another's from then on
	return sum, err
}

// TestCallsOfAModuleChangeTheStateOnce has many calls of an actor, on two workers.
func TestCallsOfAModuleChangeTheStateOnce(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	for range 2 {
		b.start(Options{Slots: 4, Modules: asking(visit)}, nil)
	}
	const n = 60
	ids := b.callModule(n)
	b.awaitOver(ids...)
	for i, id := range ids {
		require.Equal(t, strconv.Itoa(i+1), string(b.row(id).Result.Value))
	}
	s := b.visits()
	require.Equal(t, "60", string(s.Value))
	require.Equal(t, layout.CodecJSON, s.Head.Codec)
	require.Equal(t, int64(n), s.Head.Version)
	b.check()
}

// TestWhatAModuleLeavesOfItsActor has a module keep, remove and not change a state, see what it has changed, and fail.
func TestWhatAModuleLeavesOfItsActor(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	type asks func(function, value string) (answer string, exists bool)
	var run func(asks) layout.FailureKind
	modules := moduleFunc(func(ctx context.Context, call ModuleCall) (out ModuleOutcome, err error) {
		out.Kind = run(func(function, value string) (string, bool) {
			answer, exists, err := call.Host(ctx, function, "", []byte(value))
			require.NoError(t, err)
			return string(answer), exists
		})
		return out, nil
	})
	b.start(Options{Slots: 1, Modules: modules}, nil)
	call := func(f func(asks) layout.FailureKind) actors.State {
		run = f
		b.awaitOver(b.callModule(1)...)
		return b.visits()
	}
	s := call(func(ask asks) layout.FailureKind {
		_, exists := ask("state_get", "")
		require.False(t, exists)
		ask("state_put", "a text")
		state, exists := ask("state_get", "")
		require.Equal(t, "a text true", state+" "+strconv.FormatBool(exists))
		return ""
	})
	require.Equal(t, "a text", string(s.Value))
	require.Equal(t, layout.CodecRaw, s.Head.Codec)
	s = call(func(ask asks) layout.FailureKind {
		ask("state_put", "a text")
		return ""
	})
	require.Equal(t, int64(1), s.Head.Version, "it is the same")
	s = call(func(ask asks) layout.FailureKind {
		ask("state_delete", "")
		_, exists := ask("state_get", "")
		require.False(t, exists)
		ask("state_put", "")
		return ""
	})
	require.True(t, s.Exists() && s.Head.Version == 2 && len(s.Value) == 0)
	s = call(func(ask asks) layout.FailureKind {
		ask("state_put", "lost")
		return layout.KindExit
	})
	require.Equal(t, int64(2), s.Head.Version)
	s = call(func(ask asks) layout.FailureKind {
		ask("state_delete", "")
		return ""
	})
	require.False(t, s.Exists())
	b.check()
}

// TestAStateThatChangesMeanwhileRunsTheModuleAgain without an attempt that counts.
func TestAStateThatChangesMeanwhileRunsTheModuleAgain(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	runs := 0
	b.start(Options{Slots: 1, Modules: asking(func(ctx context.Context, host ModuleHost) (string, error) {
		sum, err := visit(ctx, host)
		if runs++; runs == 2 { // the second call
			require.NoError(t, actors.Of(b.cluster).Delete(ctx, visits))
		}
		return sum, err
	})}, nil)
	ids := b.callModule(2)
	b.awaitOver(ids...)
	require.Equal(t, 3, runs)
	require.Equal(t, "1", string(b.row(ids[1]).Result.Value))
	require.Zero(t, b.row(ids[1]).Attempts.Failed)
	s := b.visits()
	require.Equal(t, "1", string(s.Value))
}

// TestMiddlewareThatCallsAModuleTwiceChangesItsActorOnce and drops what a call that failed has changed.
func TestMiddlewareThatCallsAModuleTwiceChangesItsActorOnce(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	fails := false
	around := func(next Call) Call {
		return func(ctx context.Context, args []byte) ([]byte, error) {
			value, err := next(ctx, args)
			if err != nil {
				return []byte("saved"), nil
			}
			if !fails {
				return next(ctx, args)
			}
			return value, nil
		}
	}
	b.start(Options{Slots: 1, Middleware: []Middleware{around},
		Modules: moduleFunc(func(ctx context.Context, call ModuleCall) (out ModuleOutcome, err error) {
			sum, err := visit(ctx, call.Host)
			if out.Stdout = []byte(sum); fails {
				out.Kind = layout.KindExit
			}
			return out, err
		})}, nil)
	b.awaitOver(b.callModule(1)...)
	s := b.visits()
	require.Equal(t, "1", string(s.Value))
	fails = true
	id := b.callModule(1)[0]
	b.awaitOver(id)
	require.Equal(t, "saved", string(b.row(id).Result.Value))
	s = b.visits()
	require.Equal(t, "1", string(s.Value))
}

// TestAModuleNotesThatAStepFailed: what it changes between a step that it does not record and the next one counts.
func TestAModuleNotesThatAStepFailed(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	b.start(Options{Slots: 1, Modules: asking(func(ctx context.Context, host ModuleHost) (string, error) {
		for _, ask := range [][3]string{
			{"step_get", "compute"}, {"state_put", "", "failed"}, {"step_get", "note"}, {"step_put", "note", "v"},
		} {
			if _, _, err := host(ctx, ask[0], ask[1], []byte(ask[2])); err != nil {
				return "", err
			}
		}
		return "noted", nil
	})}, nil)
	id := b.callModule(1)[0]
	b.awaitOver(id)
	require.Equal(t, "noted", string(b.row(id).Result.Value))
	s := b.visits()
	require.Equal(t, "failed", string(s.Value))
	require.Equal(t, []string{"note"}, b.steps(id))
}

// TestMisusedStatesOfModules fail the future for good.
func TestMisusedStatesOfModules(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	ask := func(functions ...string) func(context.Context, ModuleHost) (string, error) {
		return func(ctx context.Context, host ModuleHost) (string, error) {
			for _, f := range functions {
				function, value, _ := strings.Cut(f, " ")
				if _, _, err := host(ctx, function, "charge", []byte(value)); err != nil {
					return "", err
				}
			}
			return "", nil
		}
	}
	large := "state_put " + strings.Repeat("x", actors.MaxState)
	for want, of := range map[string]struct {
		run  func(context.Context, ModuleHost) (string, error)
		lane bool
	}{
		"is no call of one":           {ask("state_get"), false},
		"is no call of one: call":     {ask("state_delete"), false},
		"more than 65536 bytes":       {ask(large, large+"x"), true},
		"its actor in step charge, w": {ask("step_get", "state_put v", "step_put"), true},
		"in step charge, whose code":  {ask("step_get", "state_delete", "step_put"), true},
	} {
		w := b.start(Options{Slots: 1, Modules: asking(of.run)}, nil)
		var id layout.ID
		if of.lane {
			id = b.callModule(1)[0]
		} else {
			id = b.one(b.module())
		}
		b.awaitOver(id)
		w.end()
		failed := b.row(id).Exception
		require.NotNil(t, failed, want)
		require.Contains(t, failed.Message, want)
		require.True(t, failed.Permanent)
		s := b.visits()
		require.False(t, s.Exists())
	}
	_, _, err := seeModuleState(&actors.State{Ref: visits, Head: actors.Head{Version: 1, Schema: 2}})
	require.ErrorContains(t, err, "actor counter/visits has a state of schema 2")
	j := &job{sourced: true}
	j.future.Spec = &layout.Spec{Lane: visits.Lane()}
	host := moduleHost{job: j}
	_, _, err = host.answer(t.Context(), "state_get", "", nil)
	require.ErrorContains(t, err, "a function that a head gave to a peer has no actors")
}
