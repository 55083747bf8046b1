package workers

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/clock"
)

// seenCalls is a runner that only notes what it is asked for.
type seenCalls chan ModuleCall

// RunModule implements ModuleRunner.
func (s seenCalls) RunModule(_ context.Context, call ModuleCall) (ModuleOutcome, error) {
	s <- call
	return ModuleOutcome{Stdout: make([]byte, 20)}, nil
}

// TestMemoryGrows runs a module with more memory after each attempt that had too
// little.
func TestMemoryGrows(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	code, err := modules.Of(b.cluster).Put(b.ctx, []byte("a module, as far as its runner knows"), "")
	require.NoError(t, err)
	calls := make(chan int64, 10)
	b.start(Options{Slots: 1, RAM: 1000, Modules: hungry(calls)}, nil)
	id := b.one("wasm:"+code.CID, func(s *fdbmodel.Submission) {
		s.Spec.MaxRetries, s.Spec.Requirements.RAM, s.Spec.Growth = 5, 100, &layout.Growth{Factor: 3, Max: 500}
	})
	b.awaitOver(id)
	row := b.row(id)
	require.Equal(t, layout.Realized, row.State())
	close(calls)
	var limits []int64
	for limit := range calls {
		limits = append(limits, limit)
	}
	require.Equal(t, []int64{100, 300, 500}, slices.Compact(limits))
}

// hungry is a runner whose modules need 400 bytes. It notes what they had.
type hungry chan int64

// RunModule implements ModuleRunner.
func (h hungry) RunModule(_ context.Context, call ModuleCall) (ModuleOutcome, error) {
	if h <- call.MemoryLimit; call.MemoryLimit < 400 {
		return ModuleOutcome{Kind: layout.KindMemory, Message: "too much"}, nil
	}
	return ModuleOutcome{}, nil
}

// TestPolicyOfAWorker has futures that ask for nothing or too much, some of which
// wait for their pace or are cancelled meanwhile.
func TestPolicyOfAWorker(t *testing.T) {
	t.Parallel()
	const longest = 10 * time.Second
	config := layout.Config{Policy: layout.Policy{MaxTimeout: time.Hour, MaxMemory: 1 << 30}}
	b := newBed(t, config, clock.NewVirtual(epoch))
	calls := make(seenCalls, 10)
	stuck := func(ctx context.Context, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	b.start(Options{
		Slots: 8, Modules: calls, Policy: layout.Policy{
			DefaultTimeout: 4 * time.Second, MaxTimeout: longest, DefaultMemory: 1 << 20, MaxMemory: 1 << 21, MaxOutput: 19,
		},
	}, map[string]Function{
		"large": func(context.Context, []byte) ([]byte, error) { return make([]byte, 20), nil },
		"stuck": stuck, "small": echo,
	})
	asks := func(timeout time.Duration, paced bool) func(*fdbmodel.Submission) {
		return func(s *fdbmodel.Submission) {
			if s.Spec.Timeout = timeout; paced {
				s.Spec.Pace = &layout.Pace{Key: "host", PerSecond: 0.5}
			}
		}
	}
	_, err := b.cluster.Submit(b.ctx, []fdbmodel.Submission{b.describe("go:stuck", asks(2*time.Hour, false))})
	require.ErrorIs(t, err, layout.ErrBadSpec)
	tooLong := b.one("go:stuck", asks(time.Hour, false))
	none := b.one("go:stuck")
	var paced []layout.ID
	for range 3 {
		paced = append(paced, b.one("go:stuck", asks(0, true)))
	}
	code, err := modules.Of(b.cluster).Put(b.ctx, []byte("a module, as far as its runner knows"), "")
	require.NoError(t, err)
	large, small := b.one("go:large"), b.one("go:small")
	module := b.one("wasm:"+code.CID, asks(0, true))
	greedy := b.one("wasm:"+code.CID, func(s *fdbmodel.Submission) { s.Spec.Requirements.RAM = 1 << 22 })
	b.await("the turn of the second", func() bool { return b.clock.Now().Sub(epoch) > 3*time.Second })
	_, _, err = b.cluster.Cancel(b.ctx, paced[2], "")
	require.NoError(t, err)
	b.awaitOver(append(paced, tooLong, none, large, small, module, greedy)...)

	for _, id := range []layout.ID{tooLong, none, paced[0], paced[1]} {
		e := b.row(id).Exception
		require.Equal(t, layout.KindTimeout, e.Kind)
		require.Contains(t, e.Message, "the policy of its worker or of the cluster allows no more")
	}
	require.Contains(t, b.row(tooLong).Exception.Message, "10s")
	require.GreaterOrEqual(t, b.row(tooLong).Exception.At, layout.Millis(epoch.Add(longest)))
	require.Equal(t, layout.KindCancelled, b.row(paced[2]).Exception.Kind)
	require.Equal(t, layout.KindTooLarge, b.row(large).Exception.Kind)
	require.Contains(t, b.row(large).Exception.Message, "at most 19")
	require.Equal(t, layout.Realized, stateOf(b, small))
	memory := map[int64]bool{}
	for range 2 {
		call := <-calls
		require.Equal(t, 4*time.Second, call.Timeout)
		require.EqualValues(t, 1<<21, call.MaxMemory)
		memory[call.MemoryLimit] = true
	}
	require.Equal(t, map[int64]bool{1 << 20: true, 1 << 21: true}, memory)
	for _, id := range []layout.ID{module, greedy} {
		require.Equal(t, layout.KindTooLarge, b.row(id).Exception.Kind)
	}
	_, err = FromCluster(b.cluster, Options{Policy: layout.Policy{MaxTimeout: -1}})
	require.ErrorIs(t, err, layout.ErrBadConfig)
}

// TestModuleWithoutATimeoutEnds has a module that never ends by itself, at the default of
// its worker, at another limit, and with none.
func TestModuleWithoutATimeoutEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ set, own, want time.Duration }{
		"default":          {0, 0, time.Hour},
		"a limit":          {time.Minute, 0, time.Minute},
		"none":             {-1, 0, 0},
		"the future's own": {time.Minute, 2 * time.Hour, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := virtualBed(t)
			code, err := modules.Of(b.cluster).Put(b.ctx, []byte("a module, as far as its runner knows"), "")
			require.NoError(t, err)
			calls := make(endless, 1)
			b.start(Options{Slots: 1, Modules: calls, ModuleTimeout: c.set}, nil)
			id := b.one("wasm:"+code.CID, func(s *fdbmodel.Submission) { s.Spec.Timeout = c.own })
			b.awaitOver(id)
			require.Equal(t, c.want, <-calls)
			if row := b.row(id); c.want == 0 {
				require.Equal(t, layout.Realized, row.State())
			} else {
				require.Equal(t, layout.KindTimeout, row.Exception.Kind)
				require.Contains(t, row.Exception.Message, c.want.String())
				require.Equal(t, c.own == 0, strings.Contains(row.Exception.Message, "--module-timeout"), row.Exception.Message)
			}
		})
	}
}

// endless is a runner whose modules end by their timeout, if they have one. It notes it.
type endless chan time.Duration

// RunModule implements ModuleRunner.
func (e endless) RunModule(_ context.Context, call ModuleCall) (ModuleOutcome, error) {
	select {
	case e <- call.Timeout:
	default: // a slow machine reaps the living; then it ran again
	}
	if call.Timeout == 0 {
		return ModuleOutcome{}, nil
	}
	return ModuleOutcome{Kind: layout.KindTimeout, Message: "took longer than " + call.Timeout.String()}, nil
}
