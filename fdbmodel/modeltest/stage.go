package modeltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// Stage is a cluster whose next commit with a given tag can be made to fail.
type Stage struct {
	T      *testing.T
	Ctx    context.Context
	C      *fdbmodel.Cluster
	Faults *faultkv.Database
	Clock  *clock.Virtual
	Worker *fdbmodel.Registration
	Box    *mailbox.Mailbox
}

// NewStage returns a stage with a worker that has no claims.
func NewStage(t *testing.T) *Stage {
	s := &Stage{T: t, Ctx: context.Background(), Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000))}
	s.Faults = faultkv.Wrap(storetest.New(t), faultkv.Options{LateAfter: -1})
	var err error
	s.C, err = fdbmodel.Open(s.Ctx, s.Faults, "unknown", fdbmodel.Options{
		Clock: s.Clock, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Config: layout.Config{Shards: 16, Retention: time.Minute, InfeasibleAfter: 2 * time.Minute},
	})
	require.NoError(t, err)
	s.Box = mailbox.Open(s.C, "session")
	s.Worker, err = s.C.Register(s.Ctx, s.Info())
	require.NoError(t, err)
	return s
}

// Info is the info that the worker registers with.
func (s *Stage) Info() layout.WorkerInfo {
	return layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 8}, Address: "10.0.0.1:1"}
}

// Submit submits one future.
func (s *Stage) Submit(change ...func(*fdbmodel.Submission)) layout.ID {
	sub := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Session: "session", MaxRetries: 1}, Args: []byte("x")}
	for _, fn := range change {
		fn(&sub)
	}
	got, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{sub})
	require.NoError(s.T, err)
	return got[0].ID
}

// Claim claims up to eight futures.
func (s *Stage) Claim(w *fdbmodel.Registration) []fdbmodel.ClaimedFuture {
	answer, err := w.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 8}, Max: 8})
	require.NoError(s.T, err)
	return answer.Futures
}

// Finish ends one claim.
func (s *Stage) Finish(w *fdbmodel.Registration, done fdbmodel.Completion) fdbmodel.Outcome {
	outcomes, err := w.Finish(s.Ctx, []fdbmodel.Completion{done})
	require.NoError(s.T, err)
	return outcomes[0]
}

// State returns the state of a future, 0 if it does not exist.
func (s *Stage) State(id layout.ID) layout.State {
	row, err := s.C.Get(s.Ctx, id)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return 0
	}
	require.NoError(s.T, err)
	return row.State()
}

// Counted returns the number of futures in a state by the counters.
func (s *Stage) Counted(state layout.State) int64 {
	counts, err := s.C.Counts(s.Ctx)
	require.NoError(s.T, err)
	return counts.Total(state)
}
