package workers_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/bubble"
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

func (v *farValue) Fetch(ctx context.Context, to *results.Upload) error {
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
			bubble.Test(t, func(t *testing.T) {
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
					got, err := results.Of(cluster).Value(context.Background(), row.ID, row.Result)
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

// TestAFaultThatLastsIsLoggedOnce has the values of many futures not come: their worker
// says so once, and how many others there were.
func TestAFaultThatLastsIsLoggedOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		cluster, err := fdbmodel.Open(context.Background(), modeltest.OpenMemory(t), "away", fdbmodel.Options{})
		require.NoError(t, err)
		var out bytes.Buffer
		e := &elsewhere{run: func(context.Context, workers.RemoteCall) (workers.RemoteOutcome, error) {
			return workers.RemoteOutcome{Large: &farValue{size: 1, err: errors.New("gone")}}, nil
		}}
		w, err := workers.FromCluster(cluster, workers.Options{Remote: e, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		require.NoError(t, err)
		_, err = cluster.Submit(context.Background(), slices.Repeat([]fdbmodel.Submission{farFuture(layout.Spec{})}, 50))
		require.NoError(t, err)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		<-time.After(5 * time.Second)
		stop()
		<-ended
		const message = `msg="a result did not come from where it is`
		require.Equal(t, 2, strings.Count(out.String(), message), out.String())
		require.Regexp(t, message+`.* omitted=[1-9]`, out.String())
	})
}

// prepares is an elsewhere that prepares for a while.
type prepares struct {
	*elsewhere
	until time.Time
}

func (p *prepares) Preparing(function string) bool {
	return function == "go:far" && time.Now().Before(p.until)
}

// TestAttemptsThatArePrepared has what an attempt needs take longer than its timeout: for a
// while, for ever, and beyond the deadline of the future.
func TestAttemptsThatArePrepared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepares, deadline time.Duration
		kind               layout.FailureKind
		ends               time.Duration
	}{
		"a while":      {30 * time.Minute, 0, "", 30 * time.Minute},
		"for ever":     {24 * time.Hour, 0, layout.KindTimeout, 42 * time.Minute},
		"too long":     {24 * time.Hour, 20 * time.Minute, layout.KindDeadline, 20 * time.Minute},
		"not for this": {0, 0, layout.KindTimeout, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				cluster, err := fdbmodel.Open(context.Background(), modeltest.OpenMemory(t), "far", fdbmodel.Options{})
				require.NoError(t, err)
				begun := time.Now()
				e := &elsewhere{run: func(ctx context.Context, _ workers.RemoteCall) (workers.RemoteOutcome, error) {
					if c.prepares > 0 {
						select {
						case <-time.After(c.prepares):
							return workers.RemoteOutcome{Value: []byte("far")}, nil
						case <-ctx.Done():
						}
					}
					<-ctx.Done()
					return workers.RemoteOutcome{}, context.Cause(ctx)
				}}
				w, err := workers.FromCluster(cluster, workers.Options{Remote: &prepares{e, begun.Add(c.prepares)}})
				require.NoError(t, err)
				ctx, stop := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				spec := layout.Spec{Timeout: time.Second}
				if c.deadline > 0 {
					spec.Deadline = layout.Millis(cluster.Now().Add(c.deadline))
				}
				ids, err := cluster.Submit(context.Background(), []fdbmodel.Submission{farFuture(spec)})
				require.NoError(t, err)
				state := func() layout.Row {
					row, err := cluster.Get(context.Background(), ids[0].ID)
					require.NoError(t, err)
					return row
				}
				<-time.After(c.ends - time.Minute)
				before := state()
				require.Equal(t, layout.Claimed, before.State())
				<-time.After(2 * time.Minute)
				row := state()
				if c.kind == "" {
					require.Equal(t, layout.Realized, row.State())
				} else {
					require.Equal(t, layout.Failed, row.State())
					require.Equal(t, c.kind, row.Exception.Kind)
				}
				stop()
				<-ended
			})
		})
	}
}
