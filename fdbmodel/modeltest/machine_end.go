package modeltest

import (
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/owners"
	"github.com/futura-run/futura/internal/storetest"
)

// crash loses unsynced writes, and opens the store again. A server loses
// nothing and recovers instead.
func (m *Machine) crash() {
	m.logf("crash")
	if storetest.OnServer {
		m.Faults.Recover()
		return
	}
	m.disk = m.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: m.random.IntN(101), RNG: m.random})
	_ = m.Store.Close()
	for _, w := range m.workers {
		w.gone = true
	}
	m.crashed = append(m.crashed, m.workers...)
	m.workers, m.loose = nil, nil
	m.forgetPeers()
	for s := range m.watched {
		m.watched[s] = map[layout.ID]bool{} // an acknowledged subscription is durable, but its session is gone
	}
	m.open()
	m.verify(func(before, after *layout.Row) bool {
		switch {
		case before == nil: // an expiry that was not synced, or a submit whose answer was lost
			return after.State().Terminal()
		case after == nil:
			return before.Spec.Bundle // one that was not synced, or is made again
		case before.State() == layout.Claimed: // a claim that was not synced
			return after != nil && after.State() == layout.Ready && after.Attempts == before.Attempts
		}
		return false
	})
}

// reapAll takes back what all workers have.
func (m *Machine) reapAll(ctx context.Context) {
	members, err := m.C.Workers(ctx)
	m.require(err)
	for _, w := range members {
		if w.Alive {
			_, err := m.C.DeclareDead(ctx, w.ID, w.Beat)
			m.require(err)
		}
		_, err := m.C.ReapClaims(ctx, w.ID)
		m.require(err)
	}
}

// Finale ends all faults, lets everything end, and checks the notices.
func (m *Machine) Finale() {
	ctx := context.Background()
	m.logf("finale")
	m.Faults.Flush()
	m.Faults.Pause()
	m.loose = nil
	m.openLanes(ctx)
	m.verify(func(_, _ *layout.Row) bool { return true })
	m.reapAll(ctx)
	m.verify(func(_, _ *layout.Row) bool { return true })
	last, err := m.C.Register(ctx, layout.WorkerInfo{Functions: []string{"go:f", unknownFunction, layout.AnyModule},
		Labels:   zoneA,
		Capacity: layout.Resources{Slots: 100, CPU: 1000, RAM: 1000}})
	m.require(err)
	for n := 0; ; n++ {
		m.Clock.Advance(10 * time.Minute)
		held, _, err := owners.Of(m.C).Held(ctx, "g", nil, 1000)
		m.require(err)
		for _, h := range held {
			_, err := m.C.Assign(ctx, fdbmodel.Assignment{To: last.ID(), Reason: "y"}, []layout.ID{h.ID})
			m.require(err)
		}
		m.completeAll(ctx)
		_, _, err = maintenance.Of(m.C).PromoteDue(ctx)
		m.require(err)
		_, _, err = m.C.ResolveEdges(ctx)
		m.require(err)
		_, _, err = lanes.Of(m.C).AdmitDue(ctx)
		m.require(err)
		answer, err := last.Claim(ctx, fdbmodel.ClaimRequest{Free: last.Info().Capacity, Max: 100})
		m.require(err)
		var done []fdbmodel.Completion
		answer.Futures = m.gatherAll(ctx, last, answer.Futures)
		for i := range answer.Futures {
			done = append(done, fdbmodel.Completion{Future: &answer.Futures[i], Result: &layout.Result{Value: []byte("end")}})
		}
		_, err = last.Finish(ctx, done)
		m.require(err)
		m.verify(func(before, after *layout.Row) bool {
			if before == nil {
				return after.Spec.Bundle
			}
			// An object that is lost may be made again, and be realized again by now.
			return before.State() != layout.Realized || before.Object() != "" && isNeeded(m.Rows, before.ID) ||
				after != nil && after.Attempts.Rebuilt > before.Attempts.Rebuilt
		})
		// What no holder of an object could run waits for the janitor, which ends it.
		open := slices.ContainsFunc(m.list(), func(r *layout.Row) bool {
			return !r.State().Terminal() && !r.Attempts.Unplaceable && !m.waitsForUnplaceable(r)
		})
		if !open {
			break
		}
		if n == 50 {
			m.fail("futures that do not end")
		}
	}
	m.verifyFreed(ctx)
	for s := range m.watched {
		m.drain(ctx, s)
		for notice := range m.owed[s] {
			if !m.seen[s][notice] {
				m.fail("session %s was not told: %s", s, notice)
			}
		}
	}
	m.require(m.Store.Close())
}

func (m *Machine) list() []*layout.Row {
	rows := make([]*layout.Row, 0, len(m.Rows))
	for _, row := range m.Rows {
		rows = append(rows, row)
	}
	return rows
}

func (m *Machine) drain(ctx context.Context, s layout.SessionID) {
	for {
		notices, watch, err := m.boxes[s].Listen(ctx)
		m.require(err)
		for _, n := range notices {
			m.seen[s][noticeKey(n.ID, n.State)] = true
		}
		if watch != nil {
			watch.Cancel()
			return
		}
	}
}
