package futures

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
	"github.com/futura-run/futura/internal/taskcontext"
)

// Limits of steps.
const (
	// MaxSteps is the maximum number of steps of a future.
	MaxSteps = steps.Max
	// sleepStep is the name of the steps of Sleep and SleepUntil.
	sleepStep = "sleep"
)

// ErrStepLost is returned by Step when what it ran is not recorded, because the future is with
// another worker by now, was cancelled or has ended: the function should return. A later attempt runs the
// step again.
var ErrStepLost = steps.ErrLost

// StepOption changes how a step runs.
type StepOption func(*stepOptions)

type stepOptions struct {
	retries int
	backoff layout.Backoff
	timeout time.Duration
}

// StepRetries has a step that fails run again, up to n times in the same attempt of its future,
// after a wait that begins at base and doubles up to most; 0 stands for 1 s and 5 min. Meanwhile the
// function holds no slot. A permanent error ends the step at once. Defaults to none.
func StepRetries(n int, base, most time.Duration) StepOption {
	return func(o *stepOptions) { o.retries, o.backoff = n, layout.Backoff{Base: base, Max: most} }
}

// StepTimeout bounds each run of a step: its context ends after d. Defaults to none.
func StepTimeout(d time.Duration) StepOption { return func(o *stepOptions) { o.timeout = d } }

// inStep is the context key of a step that runs.
type inStep struct{}

// Step runs fn and records what it returned, so that no later attempt of the future runs it again:
// after a failure, a kill or a retry, Step returns the recorded value and the function goes on from
// there. ctx is the one that the function was given.
//
// A step is known by its name, of 1 to 194 bytes, not by its order, so the code may change between
// attempts. The second step with a name in an attempt is NAME#2, and so on; steps that run at the
// same time should have names of their own. A step that the function no longer asks for stays on
// record, and is shown as unused. A recorded value that does not decode as T is a permanent error.
// A future has at most MaxSteps steps, and a value at most 64 MiB, encoded as msgpack.
//
// While the value is being written, other functions use the slot of this one. When Step returns nil,
// the value is durable, under the claim of the future: a worker that has lost it records nothing, and
// gets ErrStepLost. Between the end of fn and then lies the only time in which a kill has fn run
// again; a worker that was stopped until it was declared dead, and goes on, may also run a step that
// another attempt has recorded. An error of fn is returned once the retries of the step are used up,
// and is not recorded: a later attempt runs the step again. So does an error of the store, after which
// the future runs again without an attempt that counts.
//
// It returns ErrOutsideFunction for another context, and a permanent error in a step, in a function
// of a bundle, and on a peer.
func Step[T any](ctx context.Context, name string, fn func(context.Context) (T, error), options ...StepOption,
) (T, error) {
	return step(ctx, name, options, func(within context.Context, s *asked) (none T, err error) {
		started := s.log.Now()
		value, err := runStep(within, s.log, fn, &s.options)
		if err != nil {
			return none, err
		}
		encoded, err := encodeStep(s.name, &value)
		if err != nil {
			return none, err
		}
		err = s.log.Record(ctx, s.name, taskcontext.RecordedStep{Codec: CodecMsgpack, Value: encoded, Started: started})
		if err != nil {
			return none, err
		}
		return value, nil
	})
}

// asked is a step that is to run, with its numbered name.
type asked struct {
	log     taskcontext.Steps
	name    string
	options stepOptions
}

// step returns the recorded value of a step, or what run returns, which gets the context of the step.
func step[T any](ctx context.Context, name string, options []StepOption,
	run func(context.Context, *asked) (T, error),
) (none T, err error) {
	var s asked
	for _, option := range options {
		option(&s.options)
	}
	if s.log, err = stepsOf(ctx); err != nil {
		return none, err
	}
	var recorded *taskcontext.RecordedStep
	if s.name, recorded, err = s.log.Ask(ctx, name); err != nil {
		return none, err
	}
	if recorded != nil {
		return recordedValue[T](s.name, recorded)
	}
	return run(context.WithValue(ctx, inStep{}, s.name), &s)
}

// encodeStep encodes what a step returned.
func encodeStep(name string, value any) ([]byte, error) {
	encoded, err := encode(CodecMsgpack, value)
	if err != nil {
		return nil, permanentError{fmt.Errorf("step %s: what it returned can't be encoded: %w", name, err)}
	}
	return encoded, nil
}

// stepsOf returns the steps of a function's attempt.
func stepsOf(ctx context.Context) (taskcontext.Steps, error) {
	if name, is := ctx.Value(inStep{}).(string); is {
		return nil, permanentError{fmt.Errorf("futures: a step in step %s: return from that one first", name)}
	}
	log, ok := ctx.Value(taskcontext.StepsKey{}).(taskcontext.Steps)
	if !ok {
		return nil, ErrOutsideFunction
	}
	if log.Runs() && calledByStep() {
		return nil, permanentError{errors.New("futures: a step in a step, by the context of the function: return from that " +
			"one first")}
	}
	return log, nil
}

func recordedValue[T any](step string, recorded *taskcontext.RecordedStep) (value T, err error) {
	if !recorded.Wake.IsZero() {
		return value, permanentError{fmt.Errorf("step %s was recorded in attempt %d and is a sleep: give the step another "+
			"name, or start the future over without its steps", step, recorded.Attempt)}
	}
	if err := decode(recorded.Codec, recorded.Value, &value); err != nil {
		return value, permanentError{fmt.Errorf("step %s: %d bytes of %s, recorded in attempt %d, do not decode as %v: %w; "+
			"give the step another name, or start the future over without its steps", step, len(recorded.Value),
			wording(recorded.Codec), recorded.Attempt, reflect.TypeFor[T](), err)}
	}
	return value, nil
}

// runStep runs fn until it succeeds, or may not run again.
func runStep[T any](ctx context.Context, log taskcontext.Steps, fn func(context.Context) (T, error), o *stepOptions,
) (value T, err error) {
	defer log.Begin()()
	for failed := 1; ; failed++ {
		value, err = tryStep(ctx, log, fn, o)
		var permanent interface{ Permanent() bool }
		if err == nil || failed > o.retries || ctx.Err() != nil || errors.As(err, &permanent) && permanent.Permanent() {
			return value, err
		}
		if log.Pause(ctx, o.backoff.Wait(failed, jitterless)) != nil {
			return value, err
		}
	}
}

// jitterless is the middle of the spread of a backoff.
const jitterless = 0.5

func tryStep[T any](ctx context.Context, log taskcontext.Steps, fn func(context.Context) (T, error), o *stepOptions,
) (T, error) {
	if o.timeout <= 0 {
		return fn(ctx)
	}
	bounded, cancel := log.Timeout(ctx, o.timeout)
	defer cancel()
	value, err := fn(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("step %s ran longer than its timeout of %v: %w: %w", ctx.Value(inStep{}), o.timeout,
			context.DeadlineExceeded, err)
	}
	return value, err
}

// Sleep has a function wait for d. The time when it ends is recorded as a step, named sleep, so
// that a later attempt waits for the rest only. For a few seconds the function waits here, without
// its slot. A longer sleep ends the attempt: Sleep returns an error that the function must return, the
// future is delayed until then without holding a slot or a worker, no attempt counts, and the next
// attempt finds the sleep over. The future's deadline, and the time when it expires, go on meanwhile.
//
// Once Sleep has returned such an error, further steps of the attempt return it too, and the
// attempt ends so whatever the function returns, apart from a panic and a permanent error that does
// not wrap this one: a result would come before the sleep is over. In parallel sleeps the first one to end counts.
func Sleep(ctx context.Context, d time.Duration) error {
	return sleep(ctx, func(now time.Time) time.Time { return now.Add(d) })
}

// SleepUntil is Sleep until a time. For one behind the year 9999 it returns a permanent error.
func SleepUntil(ctx context.Context, t time.Time) error {
	return sleep(ctx, func(time.Time) time.Time { return t })
}

// sleep does not record a time before now: the zero time stands for a step that is no sleep.
func sleep(ctx context.Context, until func(now time.Time) time.Time) error {
	log, err := stepsOf(ctx)
	if err != nil {
		return err
	}
	step, recorded, err := log.Ask(ctx, sleepStep)
	if err != nil {
		return err
	}
	if recorded != nil && recorded.Wake.IsZero() {
		return permanentError{fmt.Errorf("step %s was recorded in attempt %d and is no sleep: give steps other names", step,
			recorded.Attempt)}
	}
	if recorded == nil {
		now := log.Now()
		recorded = &taskcontext.RecordedStep{Started: now, Wake: later(now, until(now))}
		if err := checkTime("it sleeps", recorded.Wake); err != nil {
			return permanentError{fmt.Errorf("step %s: %w", step, err)}
		}
		if err := log.Record(ctx, step, *recorded); err != nil {
			return err
		}
	}
	return log.SleepUntil(ctx, recorded.Wake)
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
