package modeltest

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/activity"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/metering"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// peerOps is what the machine knows of what a head does for its peers.
type peerOps struct {
	// metered is what workers have said that they used, and written what the store has at
	// least of it. Both are by worker.
	metered, written map[layout.WorkerID]time.Duration
	// told are the minutes of ends that workers have counted and the store may not have, and
	// counted and stored how many they have counted, and the store has at least.
	told            map[layout.WorkerID][]int64
	counted, stored int64
	keeper          activity.Keeper
	// paced is when the next start of a pace may be at the earliest.
	paced map[string]time.Time
}

// beatMany writes the heartbeats of several workers at once, of dead ones among them.
func (m *Machine) beatMany(ctx context.Context) (change, error) {
	var beats []fdbmodel.Beat
	var of []*actorWorker
	for _, w := range m.workers {
		if m.random.IntN(2) == 0 && len(beats) < fdbmodel.MaxBeats {
			beats = append(beats, fdbmodel.Beat{Worker: w.Registration, Heartbeat: layout.Heartbeat{
				Free: layout.Resources{Slots: 1}}})
			of = append(of, w)
		}
	}
	answers, err := m.C.HeartbeatMany(ctx, beats)
	m.logf("beat of %d workers: %v", len(beats), err)
	if err != nil {
		return none, err
	}
	for i, w := range of {
		if dead := errors.Is(answers[i].Err, fdbmodel.ErrReaped); answers[i].Err != nil && !dead || w.gone != dead {
			m.fail("worker %s is gone: %t, and its heart: %v", w.ID(), w.gone, answers[i].Err)
		}
		if !w.gone {
			m.peers.written[w.ID()] = m.peers.metered[w.ID()]
			for _, minute := range m.peers.told[w.ID()] {
				if !meter.MinuteIsClosed(minute, m.Clock.Now()) {
					m.peers.stored++
				}
			}
			delete(m.peers.told, w.ID())
		}
		for _, id := range answers[i].Cancelled {
			if row := m.Rows[id]; len(m.loose) == 0 && row != nil && row.State() == layout.Claimed && row.Cancel == nil &&
				row.Claim.Worker == w.ID() {
				m.fail("worker %s is told to cancel %s, which nobody has asked for", w.ID(), id)
			}
		}
	}
	return none, nil
}

// forceReap takes a worker for dead at once, as a head does with a peer that is lost.
func (m *Machine) forceReap(ctx context.Context) (change, error) {
	w := m.holder(false)
	if w == nil {
		return none, nil
	}
	return m.forceReapOf(ctx, w)
}

func (m *Machine) forceReapOf(ctx context.Context, w *actorWorker) (change, error) {
	n, err := m.C.ForceReap(ctx, w.ID())
	m.logf("force reap %s (gone %t): %d %v", w.ID(), w.gone, n, err)
	w.gone = err == nil || m.aliveNow(w.ID()) == nil
	return m.reaped(func(id layout.WorkerID) bool { return id == w.ID() }), err
}

// meter has a worker use something, and compares what the store has of all with what they
// have told it.
func (m *Machine) meter(ctx context.Context) (change, error) {
	if w := m.worker(true); w != nil && !w.gone {
		used := time.Duration(1 + m.random.IntN(1000))
		w.Meter(meter.Metered{CPU: used})
		m.peers.metered[w.ID()] += used
	}
	if m.random.IntN(3) == 0 {
		if err := metering.Fold(ctx, m.C); err != nil {
			return none, err
		}
	}
	least, most := time.Duration(0), time.Duration(0)
	for id, used := range m.peers.metered {
		least, most = least+m.peers.written[id], most+used
	}
	stored, now := time.Duration(0), m.Clock.Now()
	err := metering.Read(ctx, m.C, now.AddDate(0, 0, -20), now.AddDate(0, 0, 20), func(u *metering.Use) error {
		stored += u.CPU
		return nil
	})
	m.logf("metered: %v of %v to %v: %v", stored, least, most, err)
	if err == nil && (stored < least || stored > most) {
		m.fail("workers have told of %v to %v, and the store has %v", least, most, stored)
	}
	if err != nil {
		return none, err
	}
	return m.count(ctx)
}

// toldOf is the function of the ends that count counts.
const toldOf = "go:told"

// count has a worker count an end, and compares what the store has of all with what they have
// counted.
func (m *Machine) count(ctx context.Context) (change, error) {
	now := m.Clock.Now()
	if w := m.worker(true); w != nil && !w.gone {
		w.Count(meter.Ended{Function: toldOf, Queue: "q", Succeeded: true, Wait: -1})
		m.peers.told[w.ID()] = append(m.peers.told[w.ID()], meter.MinuteOf(now))
		m.peers.counted++
	}
	if m.random.IntN(3) == 0 {
		if _, err := m.peers.keeper.Keep(ctx, m.C); err != nil {
			return none, err
		}
	}
	least, stored := m.peers.stored, int64(0)
	end := now.Add(24 * time.Hour) // the clock may be set back
	series, err := activity.Read(ctx, m.C, end.Add(-activity.HoursFor), end, time.Hour)
	if err != nil {
		return none, err
	}
	for _, p := range series.Pairs {
		if p.Function == toldOf {
			stored += p.Succeeded
		}
	}
	m.logf("counted: %d of %d to %d", stored, least, m.peers.counted)
	if stored < least || stored > m.peers.counted {
		m.fail("workers have counted %d to %d ends, and the store has %d", least, m.peers.counted, stored)
	}
	return none, nil
}

// reservePace reserves starts, which come after those that were reserved before.
func (m *Machine) reservePace(ctx context.Context) (change, error) {
	pace := &layout.Pace{Key: []string{"p", "q"}[m.random.IntN(2)], PerSecond: float64(1 + m.random.IntN(50))}
	n, now := 1+m.random.IntN(4), m.Clock.Now()
	first, err := quota.Of(m.C).ReservePace(ctx, pace, n)
	m.logf("%d starts of pace %s: %v %v", n, pace.Key, first.Sub(now), err)
	if err != nil {
		return none, err
	}
	earliest := m.peers.paced[pace.Key]
	if ahead := earliest.Sub(now); first.Before(now) || ahead > 0 && ahead < time.Minute && first.Before(earliest) {
		m.fail("starts of pace %s are reserved for %v, and those before end at %v", pace.Key, first, earliest)
	}
	m.peers.paced[pace.Key] = first.Add(time.Duration(n) * pace.Gap())
	if m.random.IntN(4) == 0 {
		_, err = quota.Of(m.C).SweepPaces(ctx)
	}
	return none, err
}

// forgetPeers is what a crash of the store may lose: heartbeats, and reservations.
func (m *Machine) forgetPeers() {
	clear(m.peers.written)
	m.peers.stored = 0
	clear(m.peers.told)
	clear(m.peers.paced)
}
