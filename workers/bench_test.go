package workers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// BenchmarkBurndown runs futures that do nothing, from a full queue to an empty
// one: claim, run and finish. One operation is one future.
func BenchmarkBurndown(bench *testing.B) {
	for _, workers := range []int{1, 2, 4} {
		bench.Run(map[int]string{1: "one", 2: "two", 4: "four"}[workers], func(bench *testing.B) {
			b := newBed(bench, layout.Config{}, nil)
			for left := bench.N; left > 0; left -= 10_000 {
				b.many(min(left, 10_000), "go:noop")
			}
			over := make(chan struct{}, bench.N)
			noop := func(context.Context, []byte) ([]byte, error) { over <- struct{}{}; return nil, nil }
			bench.ResetTimer()
			var started []*running
			for range workers {
				started = append(started, b.start(Options{}, map[string]Function{"noop": noop}))
			}
			for range bench.N {
				<-over
			}
			for _, r := range started {
				r.stop()
			}
			for _, r := range started {
				<-r.done
			}
			bench.StopTimer()
			bench.ReportMetric(float64(bench.N)/bench.Elapsed().Seconds(), "futures/s")
			require.EqualValues(bench, bench.N, b.counts()[layout.Realized])
		})
	}
}
