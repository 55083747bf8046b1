package workers

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// asking is a runner whose modules do what a function makes of their host.
func asking(run func(ctx context.Context, host ModuleHost) (stdout string, err error)) ModuleRunner {
	return moduleFunc(func(ctx context.Context, call ModuleCall) (out ModuleOutcome, err error) {
		stdout, err := run(ctx, call.Host)
		out.Stdout = []byte(stdout)
		return out, err
	})
}

// module stores a module and returns its function.
func (b *bed) module() string {
	m, err := modules.Of(b.cluster).Put(b.ctx, []byte("a module, as far as its runner knows"), "")
	require.NoError(b.t, err)
	return "wasm:" + m.CID
}

// moduleStep runs a step as a module does.
func moduleStep(ctx context.Context, host ModuleHost, name, value string) (string, error) {
	recorded, found, err := host(ctx, "step_get", name, nil)
	if err != nil || found {
		return string(recorded), err
	}
	_, _, err = host(ctx, "step_put", name, []byte(value))
	return value, err
}

// TestAStepOfAModuleWhoseClaimIsLost ends the run in its host call, and another worker goes on with what is recorded.
func TestAStepOfAModuleWhoseClaimIsLost(t *testing.T) {
	t.Parallel()
	b, _ := progressBed(t)
	b.loseClaimInAStep(b.module(), func(run func(context.Context, stepsOf) (string, error)) *running {
		return b.start(Options{Slots: 1, Modules: asking(func(ctx context.Context, host ModuleHost) (string, error) {
			return run(ctx, func(ctx context.Context, name, value string) (string, error) {
				return moduleStep(ctx, host, name, value)
			})
		})}, nil)
	})
}

// TestMisusedStepsOfModules fail the future for good, whatever the module makes of it.
func TestMisusedStepsOfModules(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	type ask struct{ function, name, value string }
	large := strings.Repeat("v", layout.MaxPut+1)
	for want, asks := range map[string][]ask{
		"use 1 to 194 bytes of printable characters": {{"step_get", "a\x00b", ""}},
		`step "": use`:         {{"step_get", "", ""}},
		`step "charge#2": use`: {{"step_get", "charge#2", ""}},
		`recorded step "charge", and the last one that it asked for and did not find is ""`: {{"step_put", "charge", "v"}},
		`did not find is "inner"`: {{"step_get", "outer", ""}, {"step_get", "inner", ""}, {"step_put", "outer", "v"}},
		`step "outer", and`: {{"step_get", "outer", ""}, {"step_get", "inner", ""}, {"step_put", "inner", "v"},
			{"step_put", "outer", "v"}},
		`step "", and`: {{"step_get", "outer", ""}, {"step_put", "", "v"}},
		`step "twice", and`: {{"step_get", "twice", ""}, {"step_put", "twice", "v"},
			{"step_put", "twice", "w"}},
		"step charge of future":                         {{"step_get", "charge", ""}, {"step_put", "charge", large}},
		"asked for more than 10000 steps":               make([]ask, steps.Max+1),
		`called "fly", which this worker does not know`: {{"fly", "", ""}},
	} {
		t.Run(want, func(t *testing.T) {
			for i := range asks {
				if asks[i].function == "" {
					asks[i] = ask{"step_get", "failing", ""}
				}
			}
			w := b.start(Options{Slots: 1, Modules: asking(func(ctx context.Context, host ModuleHost) (string, error) {
				for i := range asks {
					if _, _, err := host(ctx, asks[i].function, asks[i].name, []byte(asks[i].value)); err != nil {
						return "", err
					}
				}
				return "", nil
			})}, nil)
			id := b.one(b.module(), func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 5 })
			b.awaitOver(id)
			w.end()
			failed := b.row(id).Exception
			require.NotNil(t, failed)
			require.Contains(t, failed.Message, want)
			require.True(t, failed.Permanent)
			require.Equal(t, layout.KindError, failed.Kind)
			require.NotContains(t, b.steps(id), "outer")
		})
	}
}

// TestAModuleKeepsItsSlotWhileItRecords has a runner with a place for one: others that had the slot meanwhile would
// wait for that place, and the module for the slot.
func TestAModuleKeepsItsSlotWhileItRecords(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	var running, most atomic.Int64
	b.start(Options{Slots: 1, Modules: asking(func(ctx context.Context, host ModuleHost) (string, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		for range 3 {
			if _, err := moduleStep(ctx, host, "block", "v"); err != nil {
				return "", err
			}
		}
		return "", nil
	})}, nil)
	b.awaitOver(b.many(200, b.module())...)
	require.EqualValues(t, 1, most.Load())
}

// TestAStepOfAModuleThatEndsMeanwhileIsRecordedAsItWas has the memory of a module be another's while its step is on its
// way.
func TestAStepOfAModuleThatEndsMeanwhileIsRecordedAsItWas(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	var worker *running
	var id layout.ID
	known := make(chan struct{})
	worker = b.start(Options{Slots: 1, Modules: asking(func(ctx context.Context, host ModuleHost) (string, error) {
		<-known
		_, _, err := host(ctx, "step_get", "charge", nil)
		require.NoError(t, err)
		worker.Worker.freeze.begin()
		ended, cancel := context.WithCancel(ctx)
		cancel()
		memory := []byte("paid")
		_, _, err = host(ended, "step_put", "charge", memory)
		require.ErrorIs(t, err, context.Canceled)
		clear(memory)
		worker.Worker.freeze.end()
		b.await("its record", func() bool { return len(b.steps(id)) == 1 })
		return "", nil
	})}, nil)
	id = b.one(b.module())
	close(known)
	b.awaitOver(id)
	record, err := steps.Of(b.cluster).Reload(b.ctx, id, "charge")
	require.NoError(t, err)
	require.Equal(t, "paid", string(record.Value))
}

// TestAModuleOfAPeerHasNoSteps says so.
func TestAModuleOfAPeerHasNoSteps(t *testing.T) {
	t.Parallel()
	j := &job{sourced: true}
	j.future.Spec = &layout.Spec{}
	host := moduleHost{job: j}
	_, _, err := host.answer(t.Context(), "step_get", "charge", nil)
	require.ErrorContains(t, err, "a function that a head gave to a peer has no steps")
	require.ErrorIs(t, host.failed, err)
}

// TestMiddlewareRunsAModuleWithStepsAgain has a second call begin without the step that the first one had asked for.
func TestMiddlewareRunsAModuleWithStepsAgain(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	runs := 0
	twice := func(next Call) Call {
		return func(ctx context.Context, args []byte) ([]byte, error) {
			if _, err := next(ctx, args); err != nil {
				return nil, err
			}
			return next(ctx, args)
		}
	}
	b.start(Options{Slots: 1, Middleware: []Middleware{twice},
		Modules: asking(func(ctx context.Context, host ModuleHost) (string, error) {
			if runs++; runs == 1 {
				_, _, err := host(ctx, "step_get", "charge", nil)
				return "", err
			}
			_, _, err := host(ctx, "step_put", "charge", []byte("v"))
			return "", err
		})}, nil)
	id := b.one(b.module())
	b.awaitOver(id)
	require.Contains(t, b.row(id).Exception.Message, `did not find is ""`)
	require.Empty(t, b.steps(id))
}
