package modeltest

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// register starts a worker, often at the address of another one.
func (m *Machine) register(ctx context.Context) (change, error) {
	id, err := m.C.DrawWorkerID()
	m.require(err)
	info := layout.WorkerInfo{
		ID: id, Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 4, CPU: 2},
		Address: []string{"", "10.0.0.1:1", "10.0.0.2:1"}[m.random.IntN(3)],
	}
	reg, err := m.C.Register(ctx, info)
	m.logf("register %s at %q: %v", id, info.Address, err)
	if err == nil {
		m.workers = append(m.workers, &actorWorker{Registration: reg})
	} else {
		m.Faults.Flush()
	}
	m.Faults.Pause()
	defer m.Faults.Resume()
	members, failed := m.C.Workers(context.Background())
	m.require(failed)
	alive := map[layout.WorkerID]bool{}
	for _, member := range members {
		alive[member.ID] = member.Alive
	}
	for _, w := range m.workers {
		if !alive[w.ID()] && !w.gone && w.Info().Address != info.Address {
			m.fail("worker %s was taken for dead by one at another address", w.ID())
		}
		w.gone = !alive[w.ID()]
	}
	return reaped(func(w layout.WorkerID) bool { return !alive[w] }), err
}

func (m *Machine) leave(ctx context.Context) (change, error) {
	w := m.worker(true)
	if w == nil {
		return none, nil
	}
	err := w.Leave(ctx)
	m.logf("leave %s: %v", w.ID(), err)
	w.gone = err == nil || m.aliveNow(w.ID()) == nil
	return func(before, after *layout.Row) bool {
		if setFree(before, after, func(id layout.WorkerID) bool { return id == w.ID() }) {
			return true
		}
		if before == nil || after == nil {
			return false
		}
		left := before.Attempts
		if left.Assigned == w.ID() && after.Attempts.Assigned == "" {
			left.Assigned = "" // it waited for the worker again, for a moment
		}
		return before.State() == layout.Claimed && before.Claim.Worker == w.ID() &&
			left == after.Attempts && (after.State() == layout.Ready ||
			(before.Cancel != nil && after.State() == layout.Failed && after.Exception.Kind == layout.KindCancelled))
	}, err
}

// die declares a worker dead, by its last heartbeat.
func (m *Machine) die(ctx context.Context) (change, error) {
	w := m.holder(true)
	if w == nil {
		return none, nil
	}
	members, err := m.C.Workers(ctx)
	if err != nil {
		return none, err
	}
	for _, member := range members {
		if member.ID == w.ID() {
			w.gone = true // also if this is cut off: it may land, and beats are not relied on
			dead, err := m.C.DeclareDead(ctx, w.ID(), member.Beat)
			m.logf("declare %s dead: %t %v", w.ID(), dead, err)
			if err != nil {
				w.gone = m.aliveNow(w.ID()) == nil
			} else if !dead {
				m.fail("a worker that did not beat is not dead")
			}
			return none, err
		}
	}
	return none, nil
}

// aliveNow lands pending commits and returns a worker's record.
func (m *Machine) aliveNow(id layout.WorkerID) *fdbmodel.Member {
	m.Faults.Flush()
	m.Faults.Pause()
	defer m.Faults.Resume()
	members, err := m.C.Workers(context.Background())
	m.require(err)
	for i := range members {
		if members[i].ID == id && members[i].Alive {
			return &members[i]
		}
	}
	return nil
}

func (m *Machine) reap(ctx context.Context) (change, error) {
	members, err := m.C.Workers(ctx)
	if err != nil {
		return none, err
	}
	dead := map[layout.WorkerID]bool{}
	for _, member := range members {
		if member.Alive {
			continue
		}
		dead[member.ID] = true
		n, failed := m.C.ReapClaims(ctx, member.ID)
		m.logf("reap %s: %d %v", member.ID, n, failed)
		if err = failed; err != nil {
			break
		}
	}
	return reaped(func(w layout.WorkerID) bool { return dead[w] }), err
}

// reaped allows what a reaper does to the futures of dead workers.
func reaped(dead func(layout.WorkerID) bool) change {
	return func(before, after *layout.Row) bool {
		if setFree(before, after, dead) {
			return true
		}
		if before == nil || after == nil || before.State() != layout.Claimed || !dead(before.Claim.Worker) {
			return false
		}
		if before.Cancel != nil {
			return after.State() == layout.Failed && after.Exception.Kind == layout.KindCancelled
		}
		spent := after.Attempts.Crashes == fdbmodel.MaxCrashes
		return after.Attempts.Crashes == before.Attempts.Crashes+1 && after.Attempts.Failed == before.Attempts.Failed &&
			(spent == (after.State() == layout.Failed)) && (spent || after.State() == layout.Ready)
	}
}

// setFree reports whether a future that waited for one of these workers is
// unassigned now.
func setFree(before, after *layout.Row, from func(layout.WorkerID) bool) bool {
	if before == nil || after == nil || before.State() != layout.Ready || after.State() != layout.Ready ||
		before.Attempts.Assigned == "" || !from(before.Attempts.Assigned) {
		return false
	}
	left := before.Attempts
	left.Assigned = ""
	return left == after.Attempts
}

func (m *Machine) beat(ctx context.Context) (change, error) {
	w := m.worker(false)
	if w == nil {
		return none, nil
	}
	_, err := w.Heartbeat(ctx, layout.Resources{Slots: 1}, 0)
	m.logf("beat of %s (gone %t): %v", w.ID(), w.gone, err)
	if w.gone && err == nil {
		m.fail("the heart of a dead worker beats")
	}
	if errors.Is(err, fdbmodel.ErrReaped) && w.gone {
		err = nil
	}
	return none, err
}

func (m *Machine) idle(ctx context.Context) (change, error) {
	w := m.worker(false)
	if w == nil {
		return none, nil
	}
	watch, err := w.EnterIdleRing(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1, CPU: 1}})
	m.logf("idle %s: %t %v", w.ID(), watch != nil, err)
	if watch != nil {
		if w.gone {
			m.fail("a dead worker is idle")
		}
		watch.Cancel()
	}
	if errors.Is(err, fdbmodel.ErrReaped) && w.gone {
		return none, nil
	}
	if err == nil && m.random.IntN(2) == 0 {
		return none, w.LeaveIdleRing(ctx)
	}
	return none, err
}
