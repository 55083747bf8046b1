package workers

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// remoteFunc runs go:f elsewhere.
type remoteFunc func(ctx context.Context, call RemoteCall) ([]byte, error)

func (remoteFunc) Functions() []string     { return []string{"go:f"} }
func (remoteFunc) Acknowledge([]layout.ID) {}

func (f remoteFunc) RunRemote(ctx context.Context, call RemoteCall) (RemoteOutcome, error) {
	value, err := f(ctx, call)
	return RemoteOutcome{Value: value}, err
}

// TestPatienceWithWhatRunsElsewhere has attempts end after their timeout: what comes back
// until then counts, but the deadline of the future ends them as ever.
func TestPatienceWithWhatRunsElsewhere(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	const timeout, patience = time.Minute, RemotePatience
	for name, c := range map[string]struct {
		after, deadline time.Duration // when the function returns, 0 for never, and that of the future
		kind            layout.FailureKind
		told            string
		allowed         time.Duration
	}{
		"in time":                {after: timeout / 2, allowed: timeout},
		"within the patience":    {after: timeout + patience/2, allowed: timeout},
		"never":                  {kind: layout.KindTimeout, told: "told of within 2m0s after that", allowed: timeout},
		"after its deadline":     {deadline: timeout + patience/2, kind: layout.KindDeadline, allowed: timeout},
		"with an early deadline": {deadline: timeout / 2, kind: layout.KindDeadline, allowed: timeout / 2},
	} {
		calls, ends := make(chan RemoteCall, 1), make(chan time.Duration, 1)
		elsewhere := func(ctx context.Context, call RemoteCall) ([]byte, error) {
			began := b.clock.Now()
			deadline, _ := ctx.Deadline()
			calls <- call
			ends <- deadline.Sub(began)
			var end <-chan time.Time
			if c.after > 0 {
				timer := b.clock.At(began.Add(c.after))
				defer timer.Stop()
				end = timer.C()
			}
			select {
			case <-end:
				return []byte("done"), nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		w := b.start(Options{Slots: 1, Remote: remoteFunc(elsewhere),
			Labels: map[string]string{layout.LabelPeer: "12D3KooWNbW985igznpKwHAf1pxByyNeipQFtEFLynNrWhsEHkL9"}}, nil)
		submitted := b.clock.Now()
		id := b.one("go:f", func(s *fdbmodel.Submission) {
			s.Spec.Timeout = timeout
			if c.deadline > 0 {
				s.Spec.Deadline = layout.Millis(submitted.Add(c.deadline))
			}
		})
		b.awaitOver(id)
		row, took := b.row(id), b.clock.Now().Sub(submitted)
		if c.kind == "" {
			require.Equal(t, layout.Realized, row.State(), name)
		} else {
			require.Equal(t, c.kind, row.Exception.Kind, name)
			require.Contains(t, row.Exception.Message, c.told, name)
		}
		most := timeout + patience
		if c.deadline > 0 {
			most = c.deadline
		}
		require.InDelta(t, most, <-ends, float64(2*time.Second), name)
		require.InDelta(t, c.allowed, (<-calls).Timeout, float64(2*time.Second), name)
		if c.kind == layout.KindTimeout {
			require.GreaterOrEqual(t, took, timeout+patience, name)
		}
		b.await("a free slot", func() bool { return w.Stats().Free.Slots == 1 })
		w.end()
	}
}

// tellingRemote counts what it is told of.
type tellingRemote struct {
	remoteFunc
	told atomic.Int32
}

func (r *tellingRemote) Acknowledge(ids []layout.ID) { r.told.Add(int32(len(ids))) }

// TestADiscardedOutcomeIsTold has a remote return an outcome after its claim has ended:
// the remote is told that the outcome is not stored.
func TestADiscardedOutcomeIsTold(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	release := make(chan struct{})
	r := &tellingRemote{remoteFunc: func(context.Context, RemoteCall) ([]byte, error) {
		<-release
		return []byte("late"), nil
	}}
	w := b.start(Options{Slots: 1, Remote: r}, nil)
	deadline := layout.Millis(b.clock.Now().Add(time.Minute))
	id := b.one("go:f", func(s *fdbmodel.Submission) { s.Spec.Deadline = deadline })
	b.awaitOver(id)
	b.await("the end of the claim to be told", func() bool { return r.told.Load() == 1 })
	close(release)
	b.await("the discarded outcome to be told", func() bool { return r.told.Load() == 2 })
	require.Equal(t, layout.KindDeadline, b.row(id).Exception.Kind)
	w.end()
}
