package lanes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

// TestBundleIsQueuedAsItsFirstMember: with its priority, its size and its timeout.
func TestBundleIsQueuedAsItsFirstMember(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
	id := s.submit("x", prior(7), func(s *fdbmodel.Submission) {
		s.Spec.Timeout, s.Spec.Requirements.CPU = 3*time.Second, 0
	})
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	bundle, members := s.gather()
	require.Equal(t, uint8(7), bundle.Spec.Priority)
	require.Equal(t, 3*time.Second, bundle.Spec.Timeout)
	require.Equal(t, row.Spec.Queue, bundle.Spec.Queue)
	require.Equal(t, row.Spec.Requirements, bundle.Spec.Requirements)
	s.realize(append(members, bundle)...)
	s.set(func(tx kv.Attempt, keys layout.Keyspace) {
		page, err := tx.GetRange(kv.Prefix(keys.Worker(s.Worker.ID(), layout.WorkerClaims)), kv.RangeOptions{}).Wait(s.Ctx)
		require.NoError(t, err)
		require.Empty(t, page.Items, "the worker claims nothing any more")
	})
}

// TestWhatWorkersDiedWithRunsAlone also if it is the first in line.
func TestWhatWorkersDiedWithRunsAlone(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
	candidate := s.submit("x")
	bundle, _ := s.gather()
	require.NoError(t, s.Worker.Begin(s.Ctx, &bundle))
	s.LoseWorker()
	s.Clock.Advance(time.Minute)
	_, _, err := maintenance.Of(s.C).PromoteDue(s.Ctx)
	require.NoError(t, err)
	fresh := s.submit("x")
	require.Equal(t, []layout.ID{candidate, fresh}, s.line("x"))
	_, members := s.gather()
	require.Equal(t, []layout.ID{candidate}, idsOf(members))
	s.check()
}

// TestAGatherSeesWhoLeavesTheLineMeanwhile cancels a member before the commit that takes
// it.
func TestAGatherSeesWhoLeavesTheLineMeanwhile(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
	ids := []layout.ID{s.submit("x"), s.submit("x")}
	c := s.Interrupted("futura-gather", func() {
		_, _, err := s.C.Cancel(s.Ctx, ids[0], "")
		require.NoError(t, err)
	})
	worker, err := c.Register(s.Ctx, s.Info())
	require.NoError(t, err)
	claimed := s.Claim(worker)
	require.Len(t, claimed, 1)
	got, err := worker.Gather(s.Ctx, &claimed[0], 100)
	require.NoError(t, err)
	require.Equal(t, ids[1:], idsOf(got.Members))
	s.check()
}

// committedGathers is a store whose gathers commit, and end with their contexts before it tells.
type committedGathers struct {
	kv.Database
	then func()
}

type landedGather struct {
	kv.Tx
	then func()
}

func (d *committedGathers) Begin(o kv.Options) kv.Tx {
	if o.Tag != "futura-gather" {
		return d.Database.Begin(o)
	}
	return &landedGather{d.Database.Begin(o), d.then}
}

func (t *landedGather) Commit(ctx context.Context) (kv.Committed, error) {
	defer t.then()
	if done, err := t.Tx.Commit(ctx); err != nil {
		return done, err
	}
	return kv.Committed{Version: kv.NoVersion}, kv.ErrUnknownResult
}

// TestAGatherThatEndsWithAnErrorIsGivenBack by the next claim, if it has committed.
func TestAGatherThatEndsWithAnErrorIsGivenBack(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
	id := s.submit("x")
	ctx, cancel := context.WithCancel(s.Ctx)
	c, err := fdbmodel.Open(s.Ctx, &committedGathers{s.Faults, cancel}, "unknown", fdbmodel.Options{Clock: s.Clock,
		Config: s.C.Config()})
	require.NoError(t, err)
	worker, err := c.Register(s.Ctx, s.Info())
	require.NoError(t, err)
	claimed := s.Claim(worker)
	require.Len(t, claimed, 1)
	_, err = worker.Gather(ctx, &claimed[0], 100)
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	require.Equal(t, layout.Claimed, s.State(id))
	s.Claim(worker)
	require.Equal(t, layout.Ready, s.State(id))
	s.check()
}

// TestAMemberThatNoWorkerCanRunIsToldOf as another future is, with the bundle that would have taken it.
func TestAMemberThatNoWorkerCanRunIsToldOf(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
	member := s.submit("x", func(sub *fdbmodel.Submission) { sub.Spec.Requirements.CPU = 1 << 40 })
	var told []layout.ID
	defer s.C.OnLost(func(rows []layout.Row) {
		for i := range rows {
			told = append(told, rows[i].ID)
		}
	})()
	s.endInfeasible()
	require.Equal(t, layout.Failed, s.State(member))
	require.Contains(t, told, member)
}
