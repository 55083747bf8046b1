package fdbmodel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/owners"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// assigning is a cluster with workers and held futures.
type assigning struct {
	*testing.T
	ctx context.Context
	db  kv.Database
	c   *fdbmodel.Cluster
}

func newAssigning(t *testing.T) *assigning {
	db := storetest.New(t)
	c, err := fdbmodel.Open(context.Background(), db, "assign", fdbmodel.Options{
		Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000)), Config: layout.Config{Shards: 4},
	})
	require.NoError(t, err)
	return &assigning{t, context.Background(), db, c}
}

func (a *assigning) register() *fdbmodel.Registration {
	w, err := a.c.Register(a.ctx, layout.WorkerInfo{Functions: []string{"go:f"},
		Capacity: layout.Resources{Slots: 8, CPU: 8}})
	require.NoError(a, err)
	return w
}

// submit makes held futures of the owner g, or futures in the pool.
func (a *assigning) submit(n int, held bool) []layout.ID {
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i].Spec = layout.Spec{Function: "go:f", MaxRetries: 1}
		if held {
			subs[i].Spec.Owner = "g"
		}
	}
	got, err := a.c.Submit(a.ctx, subs)
	require.NoError(a, err)
	ids := make([]layout.ID, n)
	for i := range got {
		ids[i] = got[i].ID
	}
	return ids
}

func (a *assigning) assign(w *fdbmodel.Registration, ids []layout.ID) {
	outcomes, err := a.c.Assign(a.ctx, fdbmodel.Assignment{To: w.ID(), Reason: "y"}, ids)
	require.NoError(a, err)
	for _, o := range outcomes {
		require.Equal(a, fdbmodel.Applied, o)
	}
	a.check()
}

func (a *assigning) claim(w *fdbmodel.Registration, n int) []fdbmodel.ClaimedFuture {
	answer, err := w.Claim(a.ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: n, CPU: 8}, Max: n})
	require.NoError(a, err)
	a.check()
	return answer.Futures
}

func (a *assigning) finish(w *fdbmodel.Registration, done ...fdbmodel.Completion) {
	_, err := w.Finish(a.ctx, done)
	require.NoError(a, err)
	a.check()
}

func (a *assigning) held() []layout.ID {
	var ids []layout.ID
	var cursor []byte
	for {
		page, next, err := owners.Of(a.c).Held(a.ctx, "g", cursor, 3)
		require.NoError(a, err)
		for _, h := range page {
			ids = append(ids, h.ID)
		}
		if cursor = next; next == nil {
			return ids
		}
	}
}

func (a *assigning) check() {
	modeltest.RequireSound(a, a.c)
}

func TestHeldFuturesWaitForTheirWorker(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	first, second := a.register(), a.register()
	ids := a.submit(20, true)
	require.ElementsMatch(t, ids, a.held())
	require.Empty(t, a.claim(first, 8), "no worker takes what is held")
	a.assign(first, ids[:12])
	require.ElementsMatch(t, ids[12:], a.held())
	require.Empty(t, a.claim(second, 8), "nor what waits for another")
	took := a.claim(first, 8)
	require.Len(t, took, 8)

	outcomes, err := a.c.Assign(a.ctx, fdbmodel.Assignment{To: second.ID(), Reason: "y"},
		[]layout.ID{took[0].ID, ids[12], ids[12], {1}})
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Refused, fdbmodel.Applied, fdbmodel.Refused, fdbmodel.Refused}, outcomes)
	outcomes, err = a.c.Assign(a.ctx, fdbmodel.Assignment{To: second.ID(), Reason: "y"}, []layout.ID{ids[12]})
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Already}, outcomes)
	outcomes, err = a.c.Unassign(a.ctx, first.ID(), []layout.ID{ids[12]})
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Refused}, outcomes, "it waits for the other one")
	outcomes, err = a.c.Unassign(a.ctx, second.ID(), []layout.ID{ids[12]})
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
	require.Contains(t, a.held(), ids[12])

	// A future that is given back waits for the same worker, one that failed
	// for the worker that is chosen next.
	a.finish(first, fdbmodel.Completion{Future: &took[0], Relinquish: true},
		fdbmodel.Completion{Future: &took[1], Exception: &layout.Exception{Kind: layout.KindError},
			RetryIn: new(time.Duration)})
	require.NotContains(t, a.held(), took[0].ID)
	require.Contains(t, a.held(), took[1].ID)
	why, err := inspect.Explain(a.ctx, a.c, took[0].ID)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonAssigned, why.Reason)
	require.Equal(t, first.ID(), why.Worker.ID)
	why, err = inspect.Explain(a.ctx, a.c, took[1].ID)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonHeld, why.Reason)

	counts, err := owners.Of(a.c).Counts(a.ctx, layout.DefaultQueue, "g")
	require.NoError(t, err)
	require.EqualValues(t, 6, counts[layout.Claimed])
	require.EqualValues(t, 14, counts[layout.Ready])
}

func TestAssignmentsMoveWhenTheirWorkerGoes(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{true, false} {
		for _, way := range []string{"leave", "death", "successor"} {
			t.Run(fmt.Sprintf("%s %t", way, held), func(t *testing.T) {
				t.Parallel()
				a := newAssigning(t)
				w, err := a.c.Register(a.ctx, layout.WorkerInfo{
					Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 8}, Address: "10.0.0.1:1",
				})
				require.NoError(t, err)
				ids := a.submit(150, held)
				a.assign(w, ids)
				require.Len(t, a.claim(w, 4), 4)
				switch way {
				case "leave":
					require.NoError(t, w.Leave(a.ctx))
				case "death":
					modeltest.DeclareDead(t, a.c, w.ID())
					a.check()
					_, err = a.c.Assign(a.ctx, fdbmodel.Assignment{To: w.ID(), Reason: "y"}, ids)
					require.ErrorIs(t, err, fdbmodel.ErrNotFound)
					members, err := a.c.Workers(a.ctx)
					require.NoError(t, err)
					require.Len(t, members, 1, "a janitor finds it")
					n, err := a.c.ReapClaims(a.ctx, w.ID())
					require.NoError(t, err)
					require.Equal(t, 150, n)
				case "successor":
					_, err := a.c.Register(a.ctx, layout.WorkerInfo{Capacity: layout.Resources{Slots: 8}, Address: "10.0.0.1:1"})
					require.NoError(t, err)
				}
				a.check()
				if held {
					require.ElementsMatch(t, ids, a.held())
					return
				}
				require.Empty(t, a.held())
				a.c.Clock().(*clock.Virtual).Advance(time.Minute)
				_, _, err = maintenance.Of(a.c).PromoteDue(a.ctx)
				require.NoError(t, err)
				next, taken := a.register(), 0
				for range 10 {
					taken += len(a.claim(next, 100))
				}
				require.Equal(t, 150, taken)
			})
		}
	}
}

// TestDeathWithoutClaims checks that a dead worker with assignments but no
// claims is remembered.
func TestDeathWithoutClaims(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	w := a.register()
	ids := a.submit(3, true)
	a.assign(w, ids)
	modeltest.DeclareDead(t, a.c, w.ID())
	report := modeltest.RequireSound(t, a.c)
	require.Positive(t, report.Pending)
	why, err := inspect.Explain(a.ctx, a.c, ids[0])
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonWorkerDead, why.Reason)
	members, err := a.c.Workers(a.ctx)
	require.NoError(t, err)
	require.False(t, members[0].Alive)
	_, err = a.c.ReapClaims(a.ctx, w.ID())
	require.NoError(t, err)
	require.ElementsMatch(t, ids, a.held())
	members, err = a.c.Workers(a.ctx)
	require.NoError(t, err)
	require.Empty(t, members)
}

func TestAssignedAtSubmit(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	w := a.register()
	idle := w.RequestHint(fdbmodel.ClaimRequest{Free: w.Info().Capacity})
	sub := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}, Assigned: w.ID()}
	got, err := a.c.Submit(a.ctx, []fdbmodel.Submission{sub})
	require.NoError(t, err)
	<-idle.C()
	require.Equal(t, got[0].ID, a.claim(w, 1)[0].ID)
	for name, change := range map[string]func(*fdbmodel.Submission){
		"not registered": func(s *fdbmodel.Submission) { s.Assigned = "nobody" },
		"does not serve": func(s *fdbmodel.Submission) { s.Spec.Queue = "other" },
		"does not know":  func(s *fdbmodel.Submission) { s.Spec.Function = "go:g" },
		"too small":      func(s *fdbmodel.Submission) { s.Spec.Requirements.CPU = 9 },
		"can't be delay": func(s *fdbmodel.Submission) { s.NotBefore = a.c.Now().Add(time.Hour) },
		"owner of 200":   func(s *fdbmodel.Submission) { s.Spec.Owner = strings.Repeat("o", 200) },
		"no zero byte":   func(s *fdbmodel.Submission) { s.Spec.Owner = "o\x00" },
	} {
		bad := sub
		change(&bad)
		_, err := a.c.Submit(a.ctx, []fdbmodel.Submission{bad})
		require.ErrorContains(t, err, name)
		require.True(t, fdbmodel.IsMistake(err) || errors.Is(err, fdbmodel.ErrNotFound))
	}
	_, err = a.c.Assign(a.ctx, fdbmodel.Assignment{To: "nobody", Reason: "y"}, []layout.ID{got[0].ID})
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	a.check()
}

// TestAssignmentsDoNotStarveThePool checks that a worker with endless
// assignments also claims from the pool.
func TestAssignmentsDoNotStarveThePool(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	w := a.register()
	mine := a.submit(100, true)
	a.assign(w, mine)
	pool := map[layout.ID]bool{}
	for _, id := range a.submit(4, false) {
		pool[id] = true
	}
	assigned := 0
	for range 16 {
		for _, f := range a.claim(w, 2) {
			if pool[f.ID] {
				delete(pool, f.ID)
			} else {
				assigned++
			}
		}
	}
	require.Empty(t, pool)
	require.Equal(t, 28, assigned, "assignments come first otherwise")
}

func TestIdleWorkerIsCalledToItsAssignment(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	w, other := a.register(), a.register()
	request := fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 8, CPU: 8}}
	watch, err := w.EnterIdleRing(a.ctx, request)
	require.NoError(t, err)
	hint, others := w.RequestHint(fdbmodel.ClaimRequest{Free: w.Info().Capacity}),
		other.RequestHint(fdbmodel.ClaimRequest{Free: other.Info().Capacity})
	ids := a.submit(1, true)
	a.assign(w, ids)
	<-watch.Done()
	require.NoError(t, watch.Err())
	<-hint.C()
	require.Empty(t, others.C())
	watch, err = w.EnterIdleRing(a.ctx, request)
	require.NoError(t, err)
	require.Nil(t, watch, "it has something to do")
	hint.Cancel()
	others.Cancel()
}

func TestOwnerWakeChanges(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	w := a.register()
	ids := a.submit(2, true)
	a.assign(w, ids)
	took := a.claim(w, 2)
	ring := func(cause func()) {
		watch, err := owners.Of(a.c).Watch(a.ctx, "g")
		require.NoError(t, err)
		cause()
		<-watch.Done()
		require.NoError(t, watch.Err())
	}
	ring(func() { a.finish(w, fdbmodel.Completion{Future: &took[0], Result: &layout.Result{}}) })
	ring(func() {
		now := time.Duration(0)
		a.finish(w, fdbmodel.Completion{Future: &took[1], Exception: &layout.Exception{Kind: layout.KindError},
			RetryIn: &now})
	})
	ring(func() {
		_, _, err := a.c.Cancel(a.ctx, took[1].ID, "")
		require.NoError(t, err)
	})
	ring(func() { a.submit(1, true) })
	require.ErrorIs(t, owners.Of(a.c).Drop(a.ctx, layout.DefaultQueue, "g"), fdbmodel.ErrTransition)
	for _, id := range append(ids, a.held()...) {
		_, _, err := a.c.Cancel(a.ctx, id, "")
		require.NoError(t, err)
		require.ErrorIs(t, a.c.Retry(a.ctx, id), fdbmodel.ErrTransition)
		require.ErrorIs(t, a.c.Discard(a.ctx, id), fdbmodel.ErrTransition)
		n, err := a.c.DiscardMany(a.ctx, []layout.ID{id})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.NoError(t, owners.Of(a.c).Drop(a.ctx, layout.DefaultQueue, "g"))
	counts, err := a.c.Counts(a.ctx)
	require.NoError(t, err)
	require.Empty(t, counts)
	a.check()
}

func TestAssignUnderUnknownCommits(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		s := modeltest.NewStage(t)
		held := func(sub *fdbmodel.Submission) { sub.Spec.Owner = "g" }
		id := s.Submit(held)
		s.Faults.FailNext(fault, nil)
		_, err := s.C.Assign(s.Ctx, fdbmodel.Assignment{To: s.Worker.ID(), Reason: "y"}, []layout.ID{id})
		require.NoError(t, err)
		s.Faults.Flush()
		row, err := s.C.Get(s.Ctx, id)
		require.NoError(t, err)
		require.Equal(t, s.Worker.ID(), row.Attempts.Assigned)
		s.Faults.FailNext(fault, nil)
		_, err = s.C.Unassign(s.Ctx, s.Worker.ID(), []layout.ID{id})
		require.NoError(t, err)
		s.Faults.Flush()
		row, err = s.C.Get(s.Ctx, id)
		require.NoError(t, err)
		require.Empty(t, row.Attempts.Assigned)
		modeltest.RequireSound(t, s.C)
	}
}

// TestAWorkerLeavesBesideADamagedAssignment: it ends as a dead one does, whose assignment an audit reports; also beside
// that of a future which does not wait for it.
func TestAWorkerLeavesBesideADamagedAssignment(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]func(*modeltest.Stage) []byte{
		"damaged": func(s *modeltest.Stage) []byte {
			return append(s.C.Keys().AssignedTo(s.Worker.ID()), "damaged"...)
		},
		"stray": func(s *modeltest.Stage) []byte {
			return s.C.Keys().Assigned(s.Worker.ID(), s.Submit(), &layout.Spec{Queue: "default"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			s.Store(key(s), nil)
			ctx, cancel := context.WithTimeout(s.Ctx, time.Minute)
			defer cancel()
			require.NoError(t, s.Worker.Leave(ctx))
			_, err := s.Worker.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
			require.ErrorIs(t, err, fdbmodel.ErrReaped)
		})
	}
}

// TestADamagedListOfClaimsKeepsTheOthersFromNothing: what a worker holds by other lists goes back as it leaves, which
// tells of the one that can't be read.
func TestADamagedListOfClaimsKeepsTheOthersFromNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	damaged := s.Submit()
	token := s.Claim(s.Worker)[0].Token
	other := s.Submit()
	require.Len(t, s.Claim(s.Worker), 1)
	s.Store(s.C.Keys().Claims(token.Worker, token.Sequence), []byte("damaged"))
	require.ErrorIs(t, s.Worker.Leave(s.Ctx), layout.ErrNewerRecord)
	for id, want := range map[layout.ID]layout.State{damaged: layout.Claimed, other: layout.Ready} {
		row, err := s.C.Get(s.Ctx, id)
		require.NoError(t, err)
		require.Equal(t, want, row.State())
	}
}
