package workers_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// elsewhere answers calls as run says.
type elsewhere struct {
	run func(context.Context, workers.RemoteCall) (workers.RemoteOutcome, error)

	mu           sync.Mutex
	acknowledged []layout.ID
}

func (*elsewhere) Functions() []string { return []string{"go:far", layout.AnyModule} }

func (e *elsewhere) RunRemote(ctx context.Context, c workers.RemoteCall) (workers.RemoteOutcome, error) {
	return e.run(ctx, c)
}

func (e *elsewhere) Acknowledge(ids []layout.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.acknowledged = append(e.acknowledged, ids...)
}

func (e *elsewhere) told(id layout.ID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, have := range e.acknowledged {
		if have == id {
			return true
		}
	}
	return false
}

func farFuture(spec layout.Spec) fdbmodel.Submission {
	spec.Function, spec.Codec = "go:far", layout.CodecRaw
	return fdbmodel.Submission{Spec: spec, Args: []byte("args")}
}

// TestEndingsFromElsewhere has a remote end attempts in every way.
func TestEndingsFromElsewhere(t *testing.T) {
	t.Parallel()
	hour, none := time.Hour, time.Duration(0)
	for name, end := range map[string]struct {
		out   workers.RemoteOutcome
		err   error
		spec  layout.Spec
		check func(t *testing.T, row layout.Row)
	}{
		"result": {out: workers.RemoteOutcome{Value: []byte("far")}, check: func(t *testing.T, row layout.Row) {
			require.Equal(t, layout.Realized, row.State())
			require.Equal(t, "far", string(row.Result.Value))
			require.Equal(t, layout.CodecRaw, row.Result.Codec)
		}},
		"result of what may take the longest time": {
			spec: layout.Spec{Timeout: math.MaxInt64}, out: workers.RemoteOutcome{Value: []byte("far")},
			check: func(t *testing.T, row layout.Row) {
				require.Equal(t, layout.Realized, row.State(), "%+v", row.Exception)
			},
		},
		"failure": {
			out:  workers.RemoteOutcome{Kind: layout.KindExit, ExitCode: 3, Message: "no", Stderr: []byte("err")},
			spec: layout.Spec{MaxRetries: 0},
			check: func(t *testing.T, row layout.Row) {
				require.Equal(t, layout.Failed, row.State())
				require.Equal(t, layout.KindExit, row.Exception.Kind)
				require.Equal(t, 3, row.Exception.ExitCode)
				require.Equal(t, "err", string(row.Exception.Stderr))
			},
		},
		"a kind that only a worker knows": {
			out: workers.RemoteOutcome{Kind: layout.KindLost}, check: func(t *testing.T, row layout.Row) {
				require.Equal(t, layout.KindError, row.Exception.Kind)
			},
		},
		"permanent": {
			out:  workers.RemoteOutcome{Kind: layout.KindError, Permanent: true},
			spec: layout.Spec{MaxRetries: 5}, check: func(t *testing.T, row layout.Row) {
				require.Equal(t, layout.Failed, row.State())
			},
		},
		"retry later": {
			out:  workers.RemoteOutcome{Kind: layout.KindError, RetryIn: &hour},
			spec: layout.Spec{MaxRetries: 5}, check: func(t *testing.T, row layout.Row) {
				require.Equal(t, layout.Delayed, row.State())
				require.Equal(t, 1, row.Attempts.Failed)
			},
		},
		"snooze": {out: workers.RemoteOutcome{Snooze: &hour}, check: func(t *testing.T, row layout.Row) {
			require.Equal(t, layout.Delayed, row.State())
			require.Zero(t, row.Attempts.Failed)
		}},
		"not run": {err: errors.New("the peer is away"), check: func(t *testing.T, row layout.Row) {
			require.NotEqual(t, layout.Failed, row.State())
			require.Zero(t, row.Attempts.Failed)
		}},
		"a wait below zero": {
			out:  workers.RemoteOutcome{Kind: layout.KindError, RetryIn: &none},
			spec: layout.Spec{MaxRetries: 0}, check: func(t *testing.T, row layout.Row) {
				require.Equal(t, layout.Failed, row.State())
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, err := fdbmodel.Open(t.Context(), storetest.New(t), "far", fdbmodel.Options{})
			require.NoError(t, err)
			got := make(chan workers.RemoteCall, 100)
			e := &elsewhere{run: func(_ context.Context, c workers.RemoteCall) (workers.RemoteOutcome, error) {
				got <- c
				return end.out, end.err
			}}
			w, err := workers.FromCluster(cluster, workers.Options{Remote: e})
			require.NoError(t, err)
			storetest.Background(t, w.Run)
			ids, err := cluster.Submit(t.Context(), []fdbmodel.Submission{farFuture(end.spec)})
			require.NoError(t, err)
			call := <-got
			require.Equal(t, "args", string(call.Args))
			require.Equal(t, "go:far", call.Function)
			require.Equal(t, 1, call.Attempt)
			require.Eventually(t, func() bool { return e.told(ids[0].ID) }, time.Minute, time.Millisecond)
			rows, err := cluster.GetMany(t.Context(), []layout.ID{ids[0].ID})
			require.NoError(t, err)
			end.check(t, rows[0])
		})
	}
}
