package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/taskcontext"
)

// doStep runs a step as package futures does.
func doStep(ctx context.Context, name string, run func() []byte) ([]byte, error) {
	log := ctx.Value(taskcontext.StepsKey{}).(taskcontext.Steps)
	step, recorded, err := log.Ask(ctx, name)
	if err != nil {
		return nil, err
	}
	if recorded != nil {
		return recorded.Value, nil
	}
	value := run()
	return value, log.Record(ctx, step, taskcontext.RecordedStep{Codec: layout.CodecRaw, Value: value, Started: log.Now()})
}

func (b *bed) steps(id layout.ID) (names []string) {
	all, err := steps.Of(b.cluster).List(b.ctx, id)
	require.NoError(b.t, err)
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}

// TestAnAttemptWithStepsEndsAtOnce counts conflicts of attempts that return, that fail, and whose step has an unknown
// result: the end of one reads what its first step has changed since the claim.
func TestAnAttemptWithStepsEndsAtOnce(t *testing.T) {
	t.Parallel()
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	db := &cutOff{Database: store}
	b := bedOn(t, db, layout.Config{}, clock.NewVirtual(epoch))
	s := seam.Worker{Manual: true}
	w, err := FromCluster(b.cluster, Options{Slots: 1, Seam: &s})
	require.NoError(t, err)
	unknown := 0
	require.NoError(t, w.Register("order", func(ctx context.Context, args []byte) ([]byte, error) {
		if string(args) == "unknown" {
			db.call = func() { unknown++ }
		}
		if _, err := doStep(ctx, "charge", func() []byte { return args }); err != nil {
			return nil, err
		}
		if string(args) == "fails" {
			return nil, Permanent(errors.New("as it should"))
		}
		return args, nil
	}))
	for _, args := range []string{"returns", "fails", "unknown"} {
		id := b.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:order"}, Args: []byte(args)})[0]
		for !stateOf(b, id).Terminal() {
			_, err := s.Step(b.ctx, b.clock.Now())
			require.NoError(t, err)
		}
		require.Equal(t, []string{"charge"}, b.steps(id))
		require.Zero(t, store.Stats().Conflicts, args)
	}
	require.Equal(t, 1, unknown)
	require.NoError(t, s.Leave(b.ctx))
}

// TestAStepOfALostClaimIsNotRecorded has a worker that was declared dead end a step, while another
// one runs the future.
func TestAStepOfALostClaimIsNotRecorded(t *testing.T) {
	t.Parallel()
	b, _ := progressBed(t)
	b.loseClaimInAStep("go:order", func(run func(context.Context, stepsOf) (string, error)) *running {
		return b.start(Options{Slots: 1}, map[string]Function{"order": func(ctx context.Context, _ []byte) ([]byte, error) {
			value, err := run(ctx, func(ctx context.Context, name, value string) (string, error) {
				got, err := doStep(ctx, name, func() []byte { return []byte(value) })
				return string(got), err
			})
			return []byte(value), err
		}})
	})
}

// stepsOf does a step with a name, and returns its value, the recorded one if it has one.
type stepsOf func(ctx context.Context, name, value string) (string, error)

// loseClaimInAStep has a worker that was declared dead between two steps do the second one, while another worker goes
// on with what is recorded. start starts a worker whose function does what it is given.
func (b *bed) loseClaimInAStep(function string, start func(func(context.Context, stepsOf) (string, error)) *running) {
	first, failed := newBlocker(false), make(chan error, 1)
	one := start(func(ctx context.Context, do stepsOf) (string, error) {
		if _, err := do(ctx, "reserve", "first"); err != nil {
			return "", err
		}
		if _, err := first.run(ctx, nil); err != nil {
			return "", err
		}
		_, err := do(ctx, "charge", "late")
		failed <- err
		return "late", err
	})
	id := b.one(function)
	b.begins(first)
	one.Pause()
	b.declareDead(one.ID())
	second := newBlocker(false)
	start(func(ctx context.Context, do stepsOf) (string, error) {
		reserved, err := do(ctx, "reserve", "again")
		if err != nil {
			return "", err
		}
		if _, err := do(ctx, "charge", "second"); err != nil {
			return "", err
		}
		_, err = second.run(ctx, nil)
		return reserved, err
	})
	b.begins(second)
	close(first.end)
	require.ErrorIs(b.t, <-failed, steps.ErrLost)
	close(second.end)
	b.awaitOver(id)
	require.Equal(b.t, "first", string(b.row(id).Result.Value))
	require.Equal(b.t, []string{"reserve", "charge"}, b.steps(id))
	b.check()
}

// TestAStoppedFunctionGoesOnElsewhere gives a future back in the one way that counts nothing.
func TestAStoppedFunctionGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	stuck := newBlocker(true)
	one := b.start(Options{Slots: 1, DrainTimeout: time.Millisecond}, map[string]Function{
		"order": func(ctx context.Context, args []byte) ([]byte, error) {
			if _, err := doStep(ctx, "reserve", func() []byte { return []byte("first") }); err != nil {
				return nil, err
			}
			return stuck.run(ctx, args)
		}})
	id := b.one("go:order")
	b.begins(stuck)
	one.end()
	require.Equal(t, layout.Attempts{}, b.row(id).Attempts, "nothing counts")
	b.start(Options{Slots: 1}, map[string]Function{"order": func(ctx context.Context, _ []byte) ([]byte, error) {
		return doStep(ctx, "reserve", func() []byte { return []byte("again") })
	}})
	b.awaitOver(id)
	require.Equal(t, "first", string(b.row(id).Result.Value))
}

// TestStepsJoinCommits takes what has gathered, as much as a transaction may have.
func TestStepsJoinCommits(t *testing.T) {
	t.Parallel()
	s := stepWrites{busy: true}
	gather := func(n, size int) {
		for range n {
			s.put(&stepWrite{entry: steps.Entry{Record: steps.Record{Value: make([]byte, size)}}})
		}
	}
	gather(steps.MaxWrite+7, 1)
	require.Len(t, s.next(), steps.MaxWrite)
	require.Len(t, s.next(), 7)
	gather(200, steps.MaxInline)
	require.Len(t, s.next(), maxStepBytes/steps.MaxInline+1)
	require.True(t, s.busy)
	require.NotEmpty(t, s.next())
	require.Empty(t, s.next())
	require.False(t, s.busy, "the next one begins a loop")
}

// TestABundleHasNoSteps is a permanent error, and so is a step on a peer.
func TestABundleHasNoSteps(t *testing.T) {
	t.Parallel()
	for _, j := range []*job{{sourced: true}, {}} {
		j.future.Spec = &layout.Spec{Bundle: true}
		_, _, err := j.stepLog().Ask(context.Background(), "s")
		var permanent interface{ Permanent() bool }
		require.ErrorAs(t, err, &permanent)
		require.True(t, permanent.Permanent())
	}
}

// TestStepsOfAManualWorker are recorded in its function.
func TestStepsOfAManualWorker(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	hand := &seam.Worker{Manual: true}
	w, err := FromCluster(b.cluster, Options{Slots: 1, Seam: hand})
	require.NoError(t, err)
	var id layout.ID
	require.NoError(t, w.Register("order", func(ctx context.Context, _ []byte) ([]byte, error) {
		value, err := doStep(ctx, "reserve", func() []byte { return []byte("v") })
		require.Equal(t, []string{"reserve"}, b.steps(id))
		return value, err
	}))
	id = b.one("go:order")
	for stateOf(b, id) != layout.Realized {
		_, err := hand.Step(b.ctx, b.clock.Now())
		require.NoError(t, err)
	}
}

// TestUnrecordedStepsCountNoAttempt tells failures of the store from those of functions.
func TestUnrecordedStepsCountNoAttempt(t *testing.T) {
	t.Parallel()
	j := &job{ctx: context.Background()}
	require.True(t, j.failure(fmt.Errorf("order: %w", unrecordedError{steps.ErrLost})).Relinquish)
	require.NotNil(t, j.failure(steps.ErrLost).Exception)
	var permanent interface{ Permanent() bool }
	require.ErrorAs(t, unread(fmt.Errorf("x: %w", layout.ErrBadRecord)), &permanent)
	require.NotErrorAs(t, unread(layout.ErrNewerRecord), &permanent)
	var unrecorded unrecordedError
	require.ErrorAs(t, unread(context.Canceled), &unrecorded)
}

// TestAStepThatCouldNotBeReadKeepsItsName has a function ask again for a recorded step, by a context that goes on.
func TestAStepThatCouldNotBeReadKeepsItsName(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	paid := bytes.Repeat([]byte("p"), steps.MaxInline+1)
	attempts, charges := 0, 0
	b.start(Options{Slots: 1}, map[string]Function{"order": func(ctx context.Context, _ []byte) ([]byte, error) {
		attempts++
		if _, err := doStep(ctx, "weigh", func() []byte { return nil }); err != nil {
			return nil, err
		}
		charge := func(ctx context.Context) ([]byte, error) {
			return doStep(ctx, "charge", func() []byte { charges++; return paid })
		}
		if attempts == 1 {
			_, err := charge(ctx)
			return nil, errors.Join(err, errors.New("cut off"))
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := charge(ended); !errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("it was read: %w", err)
		}
		return charge(ctx)
	}})
	id := b.one("go:order", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 1 })
	b.awaitOver(id)
	row := b.row(id)
	require.Equal(t, layout.Realized, row.State())
	require.Equal(t, 2, attempts)
	require.Equal(t, 1, charges)
	require.Equal(t, []string{"weigh", "charge"}, b.steps(id))
}

// TestAStepOfADeadWorkerIsLost has the death end the wait for a step, before the store is asked.
func TestAStepOfADeadWorkerIsLost(t *testing.T) {
	t.Parallel()
	s := stepWrites{busy: true, membership: &membership{worker: &Worker{}, store: t.Context()}}
	for cause, want := range map[error]error{
		fmt.Errorf("worker: %w", fdbmodel.ErrReaped): steps.ErrLost, ErrCancelled: ErrCancelled,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := s.write(ctx, steps.Entry{})
		require.ErrorIs(t, err, want)
		require.ErrorIs(t, err, cause)
	}
}

// TestTheFirstOfSleepsCounts has an attempt sleep several times at once.
func TestTheFirstOfSleepsCounts(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	l := &stepLog{job: &job{membership: &membership{worker: &Worker{cluster: b.cluster}}}}
	for _, sleep := range []struct{ asked, ends time.Duration }{{3 * time.Hour, 3 * time.Hour}, {time.Hour, time.Hour},
		{2 * time.Hour, time.Hour}} {
		require.Equal(t, snoozeError{sleep.ends}, l.SleepUntil(t.Context(), b.cluster.Now().Add(sleep.asked)))
	}
}

// TestAFutureIsMarkedOnce is marked as one with steps until one is recorded: a step is one mutation then.
func TestAFutureIsMarkedOnce(t *testing.T) {
	t.Parallel()
	l := &stepLog{job: &job{}}
	for want, marks := range []bool{true, true, false} {
		l.some = want == 2
		n, first, err := l.number()
		require.NoError(t, err)
		require.Equal(t, want+1, n)
		require.Equal(t, marks, first)
	}
	l.some, l.job.future.Steps = false, true
	_, first, err := l.number()
	require.NoError(t, err)
	require.False(t, first, "an earlier attempt has recorded some")
}

// TestAStepTooManyIsRefusedBeforeItRuns has no effect that nothing could record.
func TestAStepTooManyIsRefusedBeforeItRuns(t *testing.T) {
	t.Parallel()
	b, _ := progressBed(t)
	ran := make(chan string, 9)
	b.start(Options{Slots: 1}, map[string]Function{"order": func(ctx context.Context, _ []byte) ([]byte, error) {
		if log := ctx.Value(taskcontext.StepsKey{}).(*stepLog); log.last == 0 {
			log.last = steps.Max - 1
		}
		for _, name := range []string{"last", "late"} {
			if _, err := doStep(ctx, name, func() []byte { ran <- name; return nil }); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}})
	id := b.one("go:order")
	b.awaitOver(id)
	require.Contains(t, b.row(id).Exception.Message, "has 10000 steps, the most that it may have")
	require.True(t, b.row(id).Exception.Permanent)
	require.Equal(t, []string{"last"}, b.steps(id))
	close(ran)
	require.Equal(t, "last", <-ran)
	require.Empty(t, ran)
	b.check()
}

// TestMiddlewareCallsAFunctionWithStepsAgain has each call of an attempt find what the one before has recorded, and do
// the step that failed there, by its name.
func TestMiddlewareCallsAFunctionWithStepsAgain(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	again := func(next Call) Call {
		return func(ctx context.Context, args []byte) ([]byte, error) {
			for {
				if _, err := doStep(ctx, "try", func() []byte { return nil }); err != nil {
					return nil, err
				}
				if value, err := next(ctx, args); err == nil {
					return value, nil
				}
			}
		}
	}
	runs, calls := map[string]int{}, 0
	b.start(Options{Slots: 1, Middleware: []Middleware{again}}, map[string]Function{
		"order": func(ctx context.Context, _ []byte) ([]byte, error) {
			calls++
			var all []byte
			for _, name := range []string{"reserve", "large", "reserve", "charge"} {
				value, err := doStep(ctx, name, func() []byte {
					runs[name]++
					return fmt.Append(nil, name, runs[name], strings.Repeat(" ", len("large")*1000))
				})
				if err != nil {
					return nil, err
				}
				all = append(all, bytes.TrimSpace(value)...)
			}
			if calls < 3 {
				return nil, errors.New("not yet")
			}
			return all, nil
		}})
	id := b.one("go:order")
	b.awaitOver(id)
	require.Equal(t, "reserve1large1reserve2charge1", string(b.row(id).Result.Value))
	require.Equal(t, 3, calls)
	require.Equal(t, []string{"try", "reserve", "large", "reserve#2", "charge", "try#2", "try#3"}, b.steps(id))
	b.check()
}
