package lanes_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/pauses"
	"github.com/futura-run/futura/fdbmodel/steps"
)

func realize(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	return fdbmodel.Completion{Future: f, Result: &layout.Result{}}
}

// succeed realizes a future, and returns what the worker claims with that.
func (s laneStage) succeed(f *fdbmodel.ClaimedFuture, ran time.Duration) []fdbmodel.ClaimedFuture {
	done := realize(f)
	done.RunTime = ran
	_, claimed, err := s.Worker.EndAndClaim(s.Ctx, []fdbmodel.Completion{done}, fdbmodel.ClaimRequest{Max: 8})
	require.NoError(s.T, err)
	return claimed
}

func TestSuccessorIsClaimedWithTheEndOfTheOneBefore(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	first, second, third := s.submit("x"), s.submit("x"), s.submit("x")
	f := s.Claim(s.Worker)[0]
	require.Equal(t, first, f.ID)
	claimed := s.succeed(&f, 0)
	require.Len(t, claimed, 1)
	next := claimed[0]
	require.Equal(t, second, next.ID)
	require.Equal(t, "x", string(next.Inline))
	require.Equal(t, "go:f", next.Spec.Function)
	require.Equal(t, layout.Claimed, s.State(second))
	require.Equal(t, []layout.ID{third}, s.line("x"))
	require.Equal(t, 1, s.open("x"))
	require.Empty(t, s.Claim(s.Worker))
	s.check()
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, realize(&next)))
	require.Equal(t, fdbmodel.Lost, s.Finish(s.Worker, fdbmodel.Completion{Future: &next, Relinquish: true}))
	require.Equal(t, []layout.ID{third}, s.end(), "an End without a request leaves the next one to all")
	s.check()
}

// TestSuccessorWithLargeArgumentsAndInputs has all that a claimed one has.
func TestSuccessorWithLargeArgumentsAndInputs(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2000} {
		for inputs := range 2 {
			s := newLaneStage(t, layout.LaneKind{})
			input := s.Submit()
			s.end()
			s.submit("x")
			second := s.submit("x", func(sub *fdbmodel.Submission) {
				sub.Args, sub.Inputs = make([]byte, size), []layout.ID{input}[:inputs]
			})
			_, _, err := s.C.ResolveEdges(s.Ctx)
			require.NoError(t, err)
			f := s.Claim(s.Worker)[0]
			claimed := s.succeed(&f, 0)
			require.Len(t, claimed, 1)
			require.Equal(t, second, claimed[0].ID)
			require.Len(t, claimed[0].Inline, size)
			require.Len(t, claimed[0].Inputs, inputs)
			s.check()
		}
	}
}

// TestASuccessorThatIsAForkHasItsSteps has a worker go on with a fork, whose steps must not run again.
func TestASuccessorThatIsAForkHasItsSteps(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	s.submit("x")
	source := s.Claim(s.Worker)[0]
	_, _, err := steps.Of(s.C).Write(s.Ctx, s.Worker, []steps.Entry{{Future: &source, Name: "charge", First: true,
		Record: steps.Record{Token: source.Token, Number: 1, Attempt: 1, Value: []byte("v"), Size: 1}}})
	require.NoError(t, err)
	s.submit("x")
	failed := fdbmodel.Completion{Future: &source, Exception: &layout.Exception{}, Permanent: true}
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, failed))
	made, err := forks.Of(s.C).Make(s.Ctx, []forks.Request{{Source: source.ID}})
	require.NoError(t, err)
	require.NoError(t, made[0].Err)
	f := s.Claim(s.Worker)[0]
	claimed := s.succeed(&f, 0)
	require.Len(t, claimed, 1)
	require.Equal(t, made[0].ID, claimed[0].ID)
	require.True(t, claimed[0].Steps)
	recorded, err := steps.Of(s.C).Load(s.Ctx, s.Worker, &claimed[0])
	require.NoError(t, err)
	require.Contains(t, recorded.Steps, "charge")
	s.check()
}

// TestNoSuccessor has futures that others are to take, or that the worker may not run: they go where those
// of every lane go.
func TestNoSuccessor(t *testing.T) {
	t.Parallel()
	spec := func(fn func(*layout.Spec)) func(laneStage) {
		return func(s laneStage) { s.submit("x", prior(5), func(sub *fdbmodel.Submission) { fn(&sub.Spec) }) }
	}
	plain := func(s laneStage) { s.submit("x", prior(5)) }
	for name, c := range map[string]struct {
		next    func(laneStage)
		request fdbmodel.ClaimRequest
		to      layout.State
	}{
		"resources": {next: spec(func(s *layout.Spec) { s.Requirements.CPU = 1 })},
		"labels":    {next: spec(func(s *layout.Spec) { s.Requirements.Labels = map[string]string{"zone": "a"} })},
		"queue":     {next: spec(func(s *layout.Spec) { s.Queue = "other" })},
		"function":  {next: spec(func(s *layout.Spec) { s.Function = "go:other" })},
		"no room":   {next: plain, request: fdbmodel.ClaimRequest{Max: -1}},
		"no room for objects": {next: spec(func(s *layout.Spec) { s.AsObject = true }),
			request: fdbmodel.ClaimRequest{Objects: new(int)}},
		"lower priority": {next: spec(func(s *layout.Spec) { s.Priority = 4 })},
		"queue paused": {next: func(s laneStage) {
			s.submit("x", prior(5))
			_, err := pauses.Of(s.C).Pause(s.Ctx, pauses.Queue, layout.DefaultQueue, "")
			require.NoError(s.T, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{})
			first := s.submit("x", prior(5))
			f := s.Claim(s.Worker)[0]
			require.Equal(t, first, f.ID)
			c.next(s)
			if c.request.Max++; c.request.Max == 1 {
				c.request.Max = 8
			}
			_, claimed, err := s.Worker.EndAndClaim(s.Ctx, []fdbmodel.Completion{realize(&f)}, c.request)
			require.NoError(t, err)
			require.Empty(t, claimed)
			require.Equal(t, 1, s.open("x"), "its lane has admitted it")
			s.check()
		})
	}
}

// TestSuccessorsInARow has a worker go on with a lane for a bounded number of futures, and for a bounded time.
func TestSuccessorsInARow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ran  time.Duration
		want int
	}{
		"16":    {0, 16},
		"20 ms": {6 * time.Millisecond, 4},
		"long":  {time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{})
			for range 20 {
				s.submit("x")
			}
			for range 2 {
				f := s.Claim(s.Worker)[0]
				n := 1
				for next := s.succeed(&f, c.ran); len(next) > 0; n++ {
					next = s.succeed(&next[0], c.ran)
				}
				require.Equal(t, min(c.want, 20), n)
				if c.want > 10 {
					break
				}
			}
			s.check()
		})
	}
}

// TestSuccessorsOfOneTransaction are as many as slots of their lane became free, up to what was asked for.
func TestSuccessorsOfOneTransaction(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 3})
	for range 9 {
		s.submit("x")
		s.submit("y")
	}
	held := s.Claim(s.Worker)
	require.Len(t, held, 6)
	done := make([]fdbmodel.Completion, len(held))
	for i := range held {
		done[i] = realize(&held[i])
	}
	outcomes, claimed, err := s.Worker.EndAndClaim(s.Ctx, done, fdbmodel.ClaimRequest{Max: 5})
	require.NoError(t, err)
	require.Len(t, outcomes, 6)
	require.Len(t, claimed, 5)
	require.Len(t, s.Claim(s.Worker), 1)
	s.check()
	left := map[layout.ID]bool{}
	for i := range claimed {
		left[claimed[i].ID] = true
		require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, realize(&claimed[i])))
	}
	require.Len(t, left, 5)
	s.check()
}

// TestSuccessorsOfSeveralTransactions are together as many as were asked for, and as many of them with objects.
func TestSuccessorsOfSeveralTransactions(t *testing.T) {
	t.Parallel()
	const ended = 3 * fdbmodel.MaxFinish
	for name, c := range map[string]struct{ most, objects, want, wantObjects int }{
		"number":  {ended - 20, ended, ended - 20, (ended - 20) / 2},
		"objects": {ended, 100, ended/2 + 100, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{Width: ended})
			subs := make([]fdbmodel.Submission, 2*ended)
			for i := range subs {
				subs[i].Spec = layout.Spec{Function: "go:f", Lane: s.lane("x"), AsObject: i >= ended && i%2 == 0}
			}
			_, err := s.C.Submit(s.Ctx, subs)
			require.NoError(t, err)
			var done []fdbmodel.Completion
			for len(done) < ended {
				answer, err := s.Worker.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: ended}, Max: ended})
				require.NoError(t, err)
				for i := range answer.Futures {
					done = append(done, realize(&answer.Futures[i]))
				}
			}
			room, objects := c.objects, 0
			_, claimed, err := s.Worker.EndAndClaim(s.Ctx, done, fdbmodel.ClaimRequest{Max: c.most, Objects: &room})
			require.NoError(t, err)
			for i := range claimed {
				if claimed[i].Spec.AsObject {
					objects++
				}
			}
			require.Len(t, claimed, c.want)
			require.Equal(t, c.wantObjects, objects)
			require.Equal(t, c.objects, room, "the number is the caller's")
			s.check()
		})
	}
}

// TestADeadWorkerClaimsNoSuccessor has a worker that was declared dead end what it held before it is reaped.
func TestADeadWorkerClaimsNoSuccessor(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	s.submit("x")
	second := s.submit("x")
	f := s.Claim(s.Worker)[0]
	modeltest.DeclareDead(t, s.C, s.Worker.ID())
	require.Empty(t, s.succeed(&f, 0))
	require.Equal(t, layout.Ready, s.State(second))
	s.check()
}

func TestSuccessorsOfUnknownCommits(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-finish": func(stage *modeltest.Stage, strike func()) {
			s := onStage(stage)
			require.NoError(s.T, s.L.SetKind(s.Ctx, "k", layout.LaneKind{}))
			s.submit("x")
			second, third := s.submit("x"), s.submit("x")
			f := s.Claim(s.Worker)[0]
			strike()
			claimed := s.succeed(&f, 0)
			s.Faults.Flush()
			require.Len(s.T, claimed, 1)
			require.Equal(s.T, second, claimed[0].ID)
			require.Equal(s.T, "x", string(claimed[0].Inline))
			require.Equal(s.T, []layout.ID{third}, s.line("x"))
			require.Equal(s.T, fdbmodel.Applied, s.Finish(s.Worker, realize(&claimed[0])))
			require.Equal(s.T, []layout.ID{third}, s.end())
			require.NoError(s.T, s.Worker.Leave(s.Ctx))
		},
	})
}

// TestSuccessorThatCanNotBeRead is given back by the next claim.
func TestSuccessorThatCanNotBeRead(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	first := s.submit("x")
	second := s.submit("x", func(sub *fdbmodel.Submission) { sub.Args = make([]byte, 2000) })
	f := s.Claim(s.Worker)[0]
	ctx, cancel := context.WithCancel(s.Ctx)
	done := realize(&f)
	done.Beside = &fdbmodel.Beside{Done: func(kv.Version) { cancel() }}
	outcomes, claimed, err := s.Worker.EndAndClaim(ctx, []fdbmodel.Completion{done}, fdbmodel.ClaimRequest{Max: 8})
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
	require.Empty(t, claimed)
	require.Equal(t, layout.Realized, s.State(first))
	require.Equal(t, layout.Claimed, s.State(second))
	again := s.Claim(s.Worker)
	require.Len(t, again, 1)
	require.Equal(t, second, again[0].ID)
	s.check()
}

// TestSuccessorOfACallThatEndsWithAnError is given back by the next claim, if it was claimed.
func TestSuccessorOfACallThatEndsWithAnError(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	first, _ := s.submit("x"), s.submit("x")
	f := s.Claim(s.Worker)[0]
	ctx, cancel := context.WithCancel(s.Ctx)
	s.Faults.FailNext(faultkv.UnknownLate, func(tag string) bool {
		if tag == "futura-finish" {
			cancel()
		}
		return tag == "futura-finish"
	})
	_, claimed, err := s.Worker.EndAndClaim(ctx, []fdbmodel.Completion{realize(&f)}, fdbmodel.ClaimRequest{Max: 8})
	require.Error(t, err)
	require.Empty(t, claimed)
	again := s.Claim(s.Worker)
	s.Faults.Flush()
	s.check()
	if s.State(first) == layout.Claimed {
		require.Empty(t, again)
		require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, realize(&f)))
		again = s.Claim(s.Worker)
	}
	require.LessOrEqual(t, len(again), 1)
	require.NoError(t, s.Worker.Leave(s.Ctx))
	s.check()
}

// withoutTurns is a store whose transactions don't wait for each other.
type withoutTurns struct{ kv.Database }

func (d withoutTurns) Begin(o kv.Options) kv.Tx {
	o.Turns = false
	return d.Database.Begin(o)
}

// TestManyEndsAgainstAFasterProcess has a worker end futures of several lanes while one of another process takes
// the next of one lane before each commit. The ends in the other lanes don't wait for that.
func TestManyEndsAgainstAFasterProcess(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 2})
	const rounds = 20
	lanes := []string{"h", "g", "f", "e", "d", "c", "b", "a"}
	calls := map[string]func(){}
	db := withoutTurns{&modeltest.BeforeCommits{Database: s.Faults, Call: calls}}
	c, err := fdbmodel.Open(s.Ctx, db, "unknown", fdbmodel.Options{Clock: s.Clock, Config: s.C.Config(),
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	require.NoError(t, err)
	info := s.Info()
	info.Address = ""
	slower, err := c.Register(s.Ctx, info)
	require.NoError(t, err)

	var ids []layout.ID
	for _, key := range lanes {
		ids = append(ids, s.submit(key))
	}
	answer, err := slower.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 8}, Max: 8})
	require.NoError(t, err)
	require.Len(t, answer.Futures, len(lanes))
	for range rounds + 1 {
		s.submit("a")
	}
	theirs := s.Claim(s.Worker)
	require.Len(t, theirs, 1)
	var ended []int // of the slower one, before each commit
	var race func()
	race = func() {
		n := 0
		for _, id := range ids {
			if s.State(id) == layout.Realized {
				n++
			}
		}
		ended = append(ended, n)
		if theirs = s.succeed(&theirs[0], 0); len(theirs) == 0 {
			theirs = s.Claim(s.Worker)
		}
		if len(ended) < rounds {
			calls["futura-finish"] = race
		}
	}
	calls["futura-finish"] = race
	slices.SortFunc(answer.Futures, func(x, y fdbmodel.ClaimedFuture) int {
		return slices.Index(ids, x.ID) - slices.Index(ids, y.ID)
	})
	done := make([]fdbmodel.Completion, len(lanes))
	for i := range answer.Futures {
		done[i] = realize(&answer.Futures[i])
	}
	outcomes, _, err := slower.EndAndClaim(s.Ctx, done, fdbmodel.ClaimRequest{Max: 8})
	require.NoError(t, err)
	for _, o := range outcomes {
		require.Equal(t, fdbmodel.Applied, o)
	}
	require.Len(t, outcomes, len(lanes))
	require.Len(t, ended, rounds)
	require.Equal(t, len(lanes)-1, ended[rounds-1])
	s.check()
}
