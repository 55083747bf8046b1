package peerhead

import (
	"math"
	"sync"
	"time"
)

// score is how a peer did of late: the part of what it was asked that it answered. Errors of
// functions are answers. Faults are its own: orders that it refused or lost, items that it
// gave back, answers to what it was not given, and what others contradict.
type score struct {
	mu      sync.Mutex
	trust   float64 // from 0 to 1
	at      time.Time
	latency time.Duration
	window  int // items that it is given at a time at most
}

const (
	// scoreStep is how much one event counts against those before.
	scoreStep = 1.0 / 16
	// scoreHalf is after which time half of what a peer lacks is forgiven.
	scoreHalf = 2 * time.Minute
	// scoreFull counts as all.
	scoreFull = 0.999
	// mostFaults are counted of one event.
	mostFaults = 16
	// latencyStep is as scoreStep.
	latencyStep = 8
	// firstWindow is how many items a peer is given at first. Each answer allows it one more:
	// as long as it answers what it is given, the window doubles with each round.
	firstWindow = 2
	// trialWindow is below which a peer is on trial.
	trialWindow = 16
	// dissent is how many faults it is to say something else than others do.
	dissent = 2
)

func newScore(now time.Time) *score { return &score{trust: 1, at: now, window: firstWindow} }

// forgive is called under mu.
func (s *score) forgive(now time.Time) {
	if since := now.Sub(s.at); since > 0 && s.trust < 1 {
		s.set(1 - (1-s.trust)*math.Exp2(-float64(since)/float64(scoreHalf)))
	}
	s.at = now
}

func (s *score) set(trust float64) {
	if s.trust = trust; trust >= scoreFull {
		s.trust = 1
	}
}

// answered counts n answers that came after a wait.
func (s *score) answered(now time.Time, n int, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency += (wait - s.latency) / latencyStep
	s.window = min(s.window+n, maxSlots)
	if s.forgive(now); s.trust < 1 {
		s.set(1 - (1-s.trust)*math.Pow(1-scoreStep, float64(n)))
	}
}

// lasts counts n items that have run for so long that they count as answers for the window.
func (s *score) lasts(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window = min(s.window+n, maxSlots)
}

// failed counts n faults: each halves the window.
func (s *score) failed(now time.Time, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window = max(1, s.window>>min(n, mostFaults))
	s.forgive(now)
	s.trust *= math.Pow(1-scoreStep, float64(min(n, mostFaults)))
}

// now is the score at a time, and how long answers took beside the runs.
func (s *score) now(now time.Time) (trust float64, latency time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgive(now)
	return s.trust, s.latency
}

// limit is how many of its slots a peer is given: one at least, by which it can show that it
// has recovered. It is on trial until it has answered some items since its last faults.
func (s *score) limit(now time.Time, slots int) (limit int, onTrial bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgive(now)
	limit = max(1, int(math.Ceil(float64(slots)*s.trust*s.trust)))
	return min(slots, limit, s.window), s.window < trialWindow
}

// fault counts n faults of the peer, which gets less to do then.
func (p *peer) fault(n int) {
	if n > 0 {
		p.head.lookForWorkers()
		now := p.head.clock.Now()
		p.score.failed(now, n)
		if m := p.membership(); m != nil {
			m.rest(now)
		}
		p.settleLimit()
	}
}

// longestRest is how long a peer is given nothing after a fault, if it does nothing else: a
// peer that fails at once would get the most otherwise.
const longestRest = 4 * time.Second

// rest has the peer be given nothing for a while after a fault, by its score.
func (m *member) rest(now time.Time) {
	trust, _ := m.peer.score.now(now)
	until := now.Add(time.Duration((1 - trust) * (1 - trust) * float64(longestRest)))
	m.mu.Lock()
	defer m.mu.Unlock()
	if !until.After(m.resting) {
		return
	}
	waits := m.resting.After(now)
	if m.resting = until; !waits {
		m.endRest(until)
	}
}

// endRest settles the limit at a time, or later if there were more faults meanwhile.
func (m *member) endRest(at time.Time) {
	m.peer.head.clock.AfterFunc(at, func() {
		m.beside.run(func() {
			m.mu.Lock()
			until := m.resting
			if until.After(at) {
				m.endRest(until)
			}
			m.mu.Unlock()
			m.settleLimit()
		})
	})
}

// credit counts n answers of the peer to an order.
func (p *peer) credit(o *order, n int, ran time.Duration) {
	if n == 0 {
		return
	}
	now := p.head.clock.Now()
	p.score.answered(now, n, max(now.Sub(o.begun)-ran, 0))
	p.settleLimit()
}

// tally is what one message of a peer says for its score.
type tally struct {
	answers, faults int
	ran             time.Duration // of the last one
}

func (t *tally) count(p *peer, o *order) {
	p.credit(o, t.answers, t.ran)
	p.fault(t.faults)
}

// settleLimit has the present membership take as much as the peer's score says.
func (p *peer) settleLimit() {
	if m := p.membership(); m != nil {
		m.settleLimit()
	}
}

func (m *member) settleLimit() {
	now := m.peer.head.clock.Now()
	limit, onTrial := m.peer.score.limit(now, m.offer.capacity.Slots)
	stands := m.peer.score.standing()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stands != stands {
		m.stands = stands
		defer m.peer.head.standings.change()
	}
	if now.Before(m.resting) {
		limit = 0
	}
	if m.limit != limit || m.onTrial != onTrial {
		m.limit, m.onTrial = limit, onTrial
		m.worker.Limit(limit, !onTrial)
	}
}

// latencyGrain is how much longer a peer has to take to be chosen later.
const latencyGrain = 100 * time.Millisecond

// rank is higher for a peer that is to be chosen first: one that failed less, has more of its
// slots free, and answers sooner.
func (m *member) rank(now time.Time) float64 {
	trust, latency := m.peer.score.now(now)
	_, items := m.load()
	slots := m.offer.capacity.Slots
	free := float64(max(slots-items, 0)+1) / float64(slots+1)
	return trust * trust * free / (1 + math.Floor(float64(latency)/float64(latencyGrain))/10)
}

// recall returns the score of a peer that was here before, or a new one. It is called under
// mu.
func (h *Head) recall(id PeerID) *score {
	s := h.absent[id]
	if s == nil {
		return newScore(h.clock.Now())
	}
	delete(h.absent, id)
	return s
}

// remember keeps the score of a peer that goes, unless that is a full one: there is no need.
// Beyond MaxPeers the best one is forgotten. It is called under mu.
func (h *Head) remember(p *peer) {
	now := h.clock.Now()
	if trust, _ := p.score.now(now); trust == 1 {
		return
	}
	h.absent[p.id] = p.score
	if len(h.absent) <= h.options.MaxPeers {
		return
	}
	best, most := p.id, -1.0
	for id, s := range h.absent {
		if trust, _ := s.now(now); trust > most {
			best, most = id, trust
		}
	}
	delete(h.absent, best)
}
