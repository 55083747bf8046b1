package modeltest

import (
	"context"
	"errors"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// register starts a worker, often at the address of another one.
func (m *Machine) register(ctx context.Context) (change, error) {
	id, err := m.C.DrawWorkerID()
	m.require(err)
	info := layout.WorkerInfo{
		ID: id, Functions: []string{"go:f", layout.AnyModule}, Capacity: layout.Resources{Slots: 4, CPU: 2, RAM: mostRAM},
		Address: []string{"", "10.0.0.1:1", "", "10.0.0.2:1", ""}[m.random.IntN(5)],
	}
	if m.random.IntN(2) == 0 {
		info.Labels = zoneA
	}
	reg, err := m.C.Register(ctx, info)
	m.logf("register %s at %q: %v", id, info.Address, err)
	if err == nil {
		m.workers = append(m.workers, &actorWorker{Registration: reg, begun: map[layout.ID]int64{}})
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
	return m.reaped(func(w layout.WorkerID) bool { return !alive[w] }), err
}

// staff registers a worker if few are alive, or resumes what is paused.
func (m *Machine) staff(ctx context.Context) (change, error) {
	alive := 0
	for _, w := range m.workers {
		if !w.gone {
			alive++
		}
	}
	if alive < 3 {
		return m.register(ctx)
	}
	return m.resumeWork(ctx)
}

// begin records that a worker is about to run something that it holds, or held.
func (m *Machine) begin(ctx context.Context) (change, error) {
	w := m.holder(false)
	if w == nil || len(w.held) == 0 {
		return none, nil
	}
	f := w.held[m.random.IntN(len(w.held))]
	// A worker begins what it has, and it knows what it has ended.
	if row := m.Rows[f.ID]; !w.gone && (row == nil || row.State() != layout.Claimed || row.Claim.Token != f.Token) {
		return none, nil
	}
	w.begun[f.ID] = f.Token.Sequence
	err := w.Begin(ctx, f)
	m.logf("%s begins %s (gone %t): %v", w.ID(), f.ID, w.gone, err)
	if w.gone && err == nil {
		m.fail("a dead worker has begun something")
	}
	if errors.Is(err, fdbmodel.ErrReaped) && w.gone {
		err = nil
	}
	return none, err
}

// leave has a worker leave, perhaps one that was declared dead.
func (m *Machine) leave(ctx context.Context) (change, error) {
	if w := m.worker(false); w != nil {
		return m.leaveAs(ctx, w)
	}
	return none, nil
}

func (m *Machine) leaveAs(ctx context.Context, w *actorWorker) (change, error) {
	err := w.Leave(ctx)
	m.logf("leave %s (gone %t): %v", w.ID(), w.gone, err)
	w.gone = err == nil || m.aliveNow(w.ID()) == nil
	return func(before, after *layout.Row) bool {
		if setFree(before, after, func(id layout.WorkerID) bool { return id == w.ID() }) {
			return true
		}
		if before == nil || after == nil {
			return false
		}
		if forgot(before, after, w.ID()) {
			return true
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
			w.gone = true // also if this is cut off: it may commit, and beats are not relied on
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

// aliveNow makes pending commits and returns a worker's record.
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
	return m.reaped(func(w layout.WorkerID) bool { return dead[w] }), err
}

// forgot reports whether a future no longer knows of the death of a worker.
func forgot(before, after *layout.Row, worker layout.WorkerID) bool {
	death, known := before.Attempts.Deaths.Of(worker)
	left := before.Attempts
	left.Deaths = left.Deaths.Without(worker)
	if death.Crash {
		left.Crashes--
	}
	return known && !before.State().Terminal() && before.State() == after.State() && left == after.Attempts
}

// mayCrash reports whether a death may count as a crash of a future: if its
// worker may have recorded that it runs it.
func (m *Machine) mayCrash(row *layout.Row) bool {
	for _, w := range slices.Concat(m.workers, m.crashed) {
		if w.ID() == row.Claim.Worker {
			sequence, begun := w.begun[row.ID]
			return begun && sequence == row.Claim.Sequence
		}
	}
	return false
}

// reaped allows what a reaper does to the futures of dead workers.
func (m *Machine) reaped(dead func(layout.WorkerID) bool) change {
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
		death, known := after.Attempts.Deaths.Of(before.Claim.Worker)
		crashes := before.Attempts.Crashes
		if death.Crash {
			crashes++
		}
		waits := after.State() == layout.Delayed
		if before.Spec.Held() {
			waits = after.State() == layout.Ready
		}
		spent := crashes == fdbmodel.MaxCrashes
		return known && after.Attempts.Crashes == crashes && after.Attempts.Failed == before.Attempts.Failed &&
			(!death.Crash || m.mayCrash(before)) && spent == (after.State() == layout.Failed) && (spent || waits)
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
	_, err := w.Heartbeat(ctx, layout.Heartbeat{Free: layout.Resources{Slots: 1}})
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
