package peerhead

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Several bad peers could have a future one after the other, each for trialTime, and in the end
// it would wait for its backoff. So what one has rejected goes to those that stand best: peers
// leave it to others that stand better than they do, for as long as the peer that rejected it
// passes it over.

// standing is how much speaks for a peer.
type standing uint8

const (
	faulty standing = iota // the last that it did was a fault
	fresh                  // on trial
	proven                 // workers of the store are, too
)

// standing returns that of a peer.
func (s *score) standing() standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.window < firstWindow:
		return faulty
	case s.window < trialWindow:
		return fresh
	default:
		return proven
	}
}

// standings know the best standing of whoever runs a function, until one changes.
type standings struct {
	changed atomic.Bool // since best was found out

	mu   sync.Mutex
	best map[string]standing // by function
	// workers are those of the store that are no peers, as they were at a time.
	workers []fdbmodel.Member
	at      time.Time
	looks   bool
}

// maxBest bounds the functions that are remembered.
const maxBest = 1000

// change says that a standing may have changed, or that a peer came or went. It takes no lock:
// callers have those of peers.
func (s *standings) change() { s.changed.Store(true) }

// Defers implements workers.Deferrer.
func (m *member) Defers(function string) bool {
	h := m.peer.head
	return !h.options.Verify.on() && h.bestOf(function) > m.peer.score.standing()
}

// bestOf returns the best standing of who runs a function.
func (h *Head) bestOf(function string) standing {
	s := &h.standings
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed.Swap(false) {
		s.best = nil
	}
	best, known := s.best[function]
	if known {
		return best
	}
	for i := range s.workers {
		if s.workers[i].Runs(function) {
			best = proven
		}
	}
	for _, p := range h.all() {
		if best == proven {
			break
		}
		if m := p.membership(); m != nil && p.isConnected() && m.runs(function) {
			best = max(best, p.score.standing())
		}
	}
	if s.best == nil || len(s.best) >= maxBest {
		s.best = map[string]standing{}
	}
	s.best[function] = best
	return best
}

// lookEvery is how often the workers of the store are read at most, when a peer joins or has a
// fault.
const lookEvery = trialTime

// lookForWorkers reads the workers of the store unless that was a moment ago. It does not wait; the
// end of the head does.
func (h *Head) lookForWorkers() {
	s := &h.standings
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks || h.options.Verify.on() || !s.at.IsZero() && h.clock.Now().Sub(s.at) < lookEvery {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil || h.ended {
		return
	}
	s.looks = true
	base := h.ctx
	h.recruits.Go(func() {
		ctx, cancel := context.WithTimeout(base, trialTime)
		defer cancel()
		_, _ = h.workers(ctx) // it is tried again
		s.mu.Lock()
		defer s.mu.Unlock()
		s.looks = false
	})
}

// workers reads the workers of the store that may be given work.
func (h *Head) workers(ctx context.Context) (alive []fdbmodel.Member, err error) {
	all, err := h.options.Cluster.Workers(ctx)
	if err != nil {
		return nil, err
	}
	var own []fdbmodel.Member
	for i := range all {
		if !all[i].Alive || all[i].Leaving {
			continue
		}
		alive = append(alive, all[i])
		if all[i].Labels[layout.LabelPeer] == "" {
			own = append(own, all[i])
		}
	}
	s := &h.standings
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers, s.at, s.best = own, h.clock.Now(), nil
	return alive, nil
}
