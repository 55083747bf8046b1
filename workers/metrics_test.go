package workers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		w := b.start(Options{Name: "measured", Slots: 1}, map[string]Function{
			"nap": func(context.Context, []byte) ([]byte, error) {
				b.clock.Advance(3 * time.Second)
				return nil, nil
			},
		})
		b.awaitOver(b.one("go:nap"))
		b.await("it to be counted", func() bool { return w.Stats().Ran == 1 })
		registry := prometheus.NewPedanticRegistry()
		require.NoError(t, registry.Register(NewCollector(w.Worker)))
		families, err := registry.Gather()
		require.NoError(t, err)
		found := map[string]float64{}
		for _, f := range families {
			require.True(t, strings.HasPrefix(f.GetName(), "futura_worker_"), f.GetName())
			require.Equal(t, "measured", f.GetMetric()[0].GetLabel()[0].GetValue())
			found[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetHistogram().GetSampleSum()
		}
		require.EqualValues(t, 1, found["futura_worker_realized_total"])
		require.GreaterOrEqual(t, found["futura_worker_run_seconds"], 3.0)
	})
}
