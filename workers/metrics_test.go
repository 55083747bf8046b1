package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// measured returns the values of a worker's metrics by name, function and queue: of histograms
// the sums, and the counts with _count.
func measured(t *testing.T, w *Worker) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(NewCollector(w)))
	families, err := registry.Gather()
	require.NoError(t, err)
	found := map[string]float64{}
	for _, f := range families {
		require.True(t, strings.HasPrefix(f.GetName(), "futura_worker_"), f.GetName())
		for _, m := range f.GetMetric() {
			of := ""
			for _, l := range m.GetLabel() {
				if l.GetName() == "worker" {
					require.Equal(t, "measured", l.GetValue())
				} else {
					of += " " + l.GetValue()
				}
			}
			found[f.GetName()+of] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
			if h := m.GetHistogram(); h != nil {
				found[f.GetName()+"_count"+of] = float64(h.GetSampleCount())
			}
		}
	}
	return found
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		w := b.start(Options{Name: "measured", Slots: 1, Queues: []string{layout.DefaultQueue, "slow"}}, map[string]Function{
			"nap": func(context.Context, []byte) ([]byte, error) {
				b.clock.Advance(3 * time.Second)
				return nil, nil
			},
			"fall": func(context.Context, []byte) ([]byte, error) { return nil, errors.New("fell") },
		})
		b.awaitOver(b.one("go:nap"))
		b.awaitOver(b.one("go:nap", func(s *fdbmodel.Submission) { s.Spec.Queue = "slow" }))
		b.awaitOver(b.one("go:fall", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 0 }))
		b.await("them to be counted", func() bool { return w.Stats().Ran == 2 && w.Stats().Failed == 1 })
		found := measured(t, w.Worker)
		for _, queue := range []string{"default", "slow"} {
			require.EqualValues(t, 1, found["futura_worker_realized_total go:nap "+queue])
			require.Zero(t, found["futura_worker_failed_total go:nap "+queue])
			require.EqualValues(t, 1, found["futura_worker_run_seconds_count go:nap "+queue])
			require.GreaterOrEqual(t, found["futura_worker_run_seconds go:nap "+queue], 3.0)
		}
		require.EqualValues(t, 1, found["futura_worker_failed_total go:fall default"])
		require.Contains(t, found, "futura_worker_realized_total go:fall default", "a rate of failures needs both")
		require.NotContains(t, found, "futura_worker_failed_total go:fall slow")
		require.NotContains(t, found, "futura_worker_realized_total", "nothing is counted twice")
	})
}

// TestWaitsAreThoseForAWorker has futures wait for a slot, and others for something else.
func TestWaitsAreThoseForAWorker(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		w := b.start(Options{Name: "measured", Slots: 1}, map[string]Function{
			"nap": func(context.Context, []byte) ([]byte, error) {
				b.clock.Advance(3 * time.Second)
				return nil, nil
			},
			"fall": func(context.Context, []byte) ([]byte, error) { return nil, errors.New("fell") },
		})
		naps := b.many(2, "go:nap")
		b.awaitOver(naps...)
		b.awaitOver(b.one("go:nap", func(s *fdbmodel.Submission) { s.NotBefore = b.cluster.Now().Add(time.Minute) }),
			b.one("go:nap", func(s *fdbmodel.Submission) { s.Inputs = naps }))
		b.awaitOver(b.one("go:fall", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 2 }))
		b.await("them to be counted", func() bool { return w.Stats().Failed == 3 })
		found := measured(t, w.Worker)
		require.EqualValues(t, 3, found["futura_worker_wait_seconds_count default"])
		require.GreaterOrEqual(t, found["futura_worker_wait_seconds default"], 3.0)
		require.Less(t, found["futura_worker_wait_seconds default"], 60.0)
	})
}

// TestPairsInMetricsAreBounded meets more functions than are counted one by one.
func TestPairsInMetricsAreBounded(t *testing.T) {
	t.Parallel()
	tallies := newTallies("measured")
	first := tallies.of(&layout.Spec{Function: "go:0", Queue: "q"})
	for i := range 3 * maxPairs {
		tallies.of(&layout.Spec{Function: fmt.Sprintf("go:%d", i), Queue: "q"}).failed.Inc()
	}
	require.Same(t, first, tallies.of(&layout.Spec{Function: "go:0", Queue: "q"}))
	require.Same(t, tallies.of(nil), tallies.of(&layout.Spec{Function: "go:0"}))
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(tallies.failed))
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families[0].GetMetric(), maxPairs+1)
	other := families[0].GetMetric()[0]
	require.Equal(t, otherPairs, other.GetLabel()[0].GetValue())
	require.EqualValues(t, 2*maxPairs, other.GetCounter().GetValue())
}

func TestModulesInMetrics(t *testing.T) {
	t.Parallel()
	const cid = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
	for function, want := range map[string]string{
		"go:resize": "go:resize", "wasm:" + cid: "wasm:7e7aqa4s52zy",
		"wasm:" + cid + "/echo.wasm": "wasm:7e7aqa4s52zy/echo.wasm",
		"wasm:short":                 "wasm:short", otherPairs: otherPairs,
	} {
		require.Equal(t, want, shortFunction(function))
	}
}
