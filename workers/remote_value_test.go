package workers_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/workers"
)

// farValue is a value elsewhere, which comes in parts with a pause before each.
type farValue struct {
	bytes []byte
	size  int64
	pause time.Duration
	err   error
}

func (v *farValue) Size() int64 { return v.size }

func (v *farValue) Fetch(ctx context.Context, to *fdbmodel.ResultUpload) error {
	const part = 1 << 20
	for rest := v.bytes; len(rest) > 0; rest = rest[min(part, len(rest)):] {
		select {
		case <-time.After(v.pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if _, err := to.Write(rest[:min(part, len(rest))]); err != nil {
			return err
		}
	}
	return v.err
}

// TestValuesFromElsewhere has values come slowly, cut short, and not at all.
func TestValuesFromElsewhere(t *testing.T) {
	t.Parallel()
	value := bytes.Repeat([]byte("0123456789abcdef"), 9<<16)
	size := int64(len(value))
	for name, c := range map[string]struct {
		value farValue
		spec  layout.Spec
		after time.Duration
		check func(t *testing.T, row layout.Row)
	}{
		"slower than the timeout": {farValue{value, size, time.Minute, nil}, layout.Spec{Timeout: time.Second}, time.Hour,
			func(t *testing.T, row layout.Row) {
				require.Equal(t, layout.Realized, row.State())
				require.Equal(t, size, row.Result.Size)
			}},
		"at the deadline": {farValue{value, size, time.Minute, nil},
			layout.Spec{Timeout: time.Second, Deadline: 1}, time.Hour,
			func(t *testing.T, row layout.Row) {
				require.Equal(t, layout.Failed, row.State())
				require.Equal(t, layout.KindDeadline, row.Exception.Kind)
			}},
		"too short": {farValue{value, size + 1, 0, nil}, layout.Spec{}, time.Second, notRun},
		"an error":  {farValue{value, size, 0, errors.New("gone")}, layout.Spec{}, time.Second, notRun},
		"too large": {farValue{nil, layout.MaxPut + 1, 0, nil}, layout.Spec{}, time.Second,
			func(t *testing.T, row layout.Row) {
				require.Equal(t, layout.Failed, row.State())
				require.Equal(t, layout.KindTooLarge, row.Exception.Kind)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster, err := fdbmodel.Open(context.Background(), modeltest.OpenMemory(t), "far", fdbmodel.Options{})
				require.NoError(t, err)
				e := &elsewhere{run: func(context.Context, workers.RemoteCall) (workers.RemoteOutcome, error) {
					return workers.RemoteOutcome{Large: &c.value}, nil
				}}
				w, err := workers.FromCluster(cluster, workers.Options{Remote: e})
				require.NoError(t, err)
				ctx, stop := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				if c.spec.Deadline != 0 {
					c.spec.Deadline = layout.Millis(cluster.Now().Add(5 * time.Minute))
				}
				ids, err := cluster.Submit(context.Background(), []fdbmodel.Submission{farFuture(c.spec)})
				require.NoError(t, err)
				<-time.After(c.after)
				row, err := cluster.Get(context.Background(), ids[0].ID)
				require.NoError(t, err)
				c.check(t, row)
				if row.Result != nil {
					got, err := cluster.ResultValue(context.Background(), row.ID, row.Result)
					require.NoError(t, err)
					require.True(t, bytes.Equal(value, got))
				}
				stop()
				<-ended
			})
		})
	}
}

func notRun(t *testing.T, row layout.Row) {
	t.Helper()
	require.NotEqual(t, layout.Realized, row.State())
	require.Zero(t, row.Attempts.Failed, "no attempt counts")
}
