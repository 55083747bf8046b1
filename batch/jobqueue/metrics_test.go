package jobqueue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// gather returns the metrics of a collector by their names.
func gather(t *testing.T, c prometheus.Collector) map[string]float64 {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, family := range families {
		m := family.GetMetric()[0]
		require.Len(t, m.GetLabel(), 2)
		values[family.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return values
}

// TestMetricsOfAStage stops a stage while one job runs, and others have ended, failed
// and were parked.
func TestMetricsOfAStage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := openCluster(t, modeltest.OpenMemory(t))
	log := newLog[int](t, cluster, "in")
	_, err := log.Append(ctx, 1, 2, 3, 4, 5, 6)
	require.NoError(t, err)
	running, slow, advanced := make(chan struct{}), make(chan struct{}), make(chan uint64, 6)
	handle := func(_ context.Context, job jobqueue.Job[int], _ *jobqueue.Output) error {
		switch job.Value {
		case 2:
			return jobqueue.Permanent(errors.New("it is bad"))
		case 4:
			<-slow
		case 6:
			close(running)
		}
		return nil
	}
	o := jobqueue.Options{MaxProcessing: 2, OnFailure: jobqueue.Park, OnAdvance: func(n uint64) { advanced <- n }}
	s, err := jobqueue.NewStage(cluster, log, "stage", handle, jobqueue.StageOptions{Options: o})
	require.NoError(t, err)
	collector := jobqueue.NewCollector(s)
	require.Equal(t, map[string]float64{"futura_stage_at_work": 0, "futura_stage_done_total": 0,
		"futura_stage_failed_total": 0, "futura_stage_parked_total": 0}, gather(t, collector))
	require.NoError(t, s.Start())
	<-running
	for n := uint64(0); n < 3; n = <-advanced {
		continue
	}
	now := gather(t, collector)
	require.GreaterOrEqual(t, now["futura_stage_ended"], 1.0)
	delete(now, "futura_stage_ended")
	delete(now, "futura_stage_running") // job 6 may just have ended
	require.Equal(t, map[string]float64{"futura_stage_at_work": 1, "futura_stage_done_total": 2,
		"futura_stage_failed_total": 1, "futura_stage_parked_total": 1, "futura_stage_processed": 3, "futura_stage_head": 6,
		"futura_stage_lag": 3, "futura_stage_waiting": 0}, now)
	close(slow)
	require.NoError(t, s.Stop(ctx))
	require.Equal(t, map[string]float64{"futura_stage_at_work": 0, "futura_stage_done_total": 5,
		"futura_stage_failed_total": 1, "futura_stage_parked_total": 1}, gather(t, collector))
}
