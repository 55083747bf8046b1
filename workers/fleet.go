package workers

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/away"
)

// How a fleet spreads what its members do.
const (
	gatherShare  = 20          // of a heartbeat interval, for which heartbeats gather
	beatsPerTick = 80          // on average, of the MaxBeats that fit into one transaction
	pollMax      = time.Minute // between two polls of a member
	idleBeats    = 5           // heartbeats of an idle member within two dead-after times
)

// Fleet is what many workers of one process share, so that idle ones cost little, such as
// those of a head for its peers. Its members
//
//   - write their heartbeats together, at most a twentieth of the cluster's heartbeat interval
//     later, up to fdbmodel.MaxBeats in a transaction; one that has nothing to do writes one
//     in two fifths of the dead-after time, if that is longer;
//   - poll in turns, all of them together about once in Options.Poll, and each at least once
//     a minute, over all shards;
//   - have no janitor: some other worker of the cluster, or RunJanitor, has to clean;
//   - start goroutines for their slots only while there are futures for them.
//
// Otherwise they are workers as others: one that dies, is cancelled or is slow does not
// concern the others. The methods of a Fleet may be called from many goroutines.
type Fleet struct {
	cluster *fdbmodel.Cluster

	mu      sync.Mutex
	next    *gatheredBeats // waits for more, nil if no heartbeat waits
	members int
	most    int           // members since fewer was closed last
	fewer   chan struct{} // closed when less than half of them are left
	away    *away.Watch   // that of the first worker
}

// NewFleet returns a fleet without members, for workers of a cluster.
func NewFleet(cluster *fdbmodel.Cluster) *Fleet {
	return &Fleet{cluster: cluster, fewer: make(chan struct{})}
}

// watch returns the one watch of the fleet, of which first may become that: its members meet an outage together.
func (f *Fleet) watch(first *away.Watch) *away.Watch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away == nil {
		f.away = first
	}
	return f.away
}

// Members returns how many workers of the fleet are members of the cluster.
func (f *Fleet) Members() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members
}

// enter counts a member, until exit is called.
func (f *Fleet) enter() (exit func()) {
	f.count(1)
	return func() { f.count(-1) }
}

func (f *Fleet) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members += n
	f.most = max(f.most, f.members)
	if 2*f.members < f.most {
		close(f.fewer)
		f.fewer, f.most = make(chan struct{}), f.members
	}
}

// pollEvery is how long a member waits between two polls. fewer is closed when that has
// become much shorter.
func (f *Fleet) pollEvery(each time.Duration) (every time.Duration, fewer <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return shared(each, f.members), f.fewer
}

// shared is how long each of n workers waits between two polls that take turns, so that one of them polls
// after each of these times: a minute at most, unless that is less than each.
func shared(each time.Duration, n int) time.Duration {
	return max(each, min(each*time.Duration(max(n, 1)), pollMax))
}

// sharers is how many of n workers that take turns poll where one of them would do, as none waits
// for longer than a minute.
func sharers(each time.Duration, n int) float64 {
	return float64(each) * float64(n) / float64(shared(each, n))
}

// nextBeat is when a member's next heartbeat is due: at most every later than now, and
// together with others.
func (f *Fleet) nextBeat(now time.Time, every time.Duration, id layout.WorkerID) time.Time {
	ticks := uint32((f.Members() + beatsPerTick - 1) / beatsPerTick)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id)) // never fails
	tick := time.Duration(hash.Sum32() % max(ticks, 1))
	shift := every * tick / time.Duration(max(ticks, 1))
	since := (time.Duration(now.UnixNano()) - shift) % every
	return now.Add(every - since)
}

// gatheredBeats are heartbeats for one transaction.
type gatheredBeats struct {
	beats   []fdbmodel.Beat
	waiting int // calls that wait for the answers
	begun   bool
	stop    func() // ends the wait for more
	ctx     context.Context
	cancel  context.CancelFunc

	done    chan struct{} // closed when there are answers
	answers []fdbmodel.BeatAnswer
	err     error
}

// beat writes the heartbeat of a member with those of others; see Registration.Heartbeat.
func (f *Fleet) beat(ctx context.Context, reg *fdbmodel.Registration, beat layout.Heartbeat) ([]layout.ID, error) {
	g, at := f.gather(ctx, fdbmodel.Beat{Worker: reg, Heartbeat: beat})
	select {
	case <-g.done:
	case <-ctx.Done():
		f.leave(g)
		return nil, ctx.Err()
	}
	if len(g.answers) <= at {
		return nil, g.err
	}
	return g.answers[at].Cancelled, errors.Join(g.err, g.answers[at].Err)
}

// gather adds a heartbeat to the next transaction, and returns its place there. The transaction has the values of
// the context of its first one.
func (f *Fleet) gather(ctx context.Context, beat fdbmodel.Beat) (g *gatheredBeats, at int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g = f.next; g == nil {
		g = &gatheredBeats{done: make(chan struct{})}
		g.ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
		clk := f.cluster.Clock()
		// The clock may call in the goroutine that moves it.
		g.stop = clk.AfterFunc(clk.Now().Add(f.cluster.Config().Heartbeat/gatherShare), func() { go f.send(g) })
		f.next = g
	}
	at = len(g.beats)
	g.beats = append(g.beats, beat)
	if g.waiting++; len(g.beats) == fdbmodel.MaxBeats {
		f.next = nil // the others need not wait for it
		go f.send(g)
	}
	return g, at
}

// leave gives up the wait for answers. A transaction that no call waits for any more ends.
func (f *Fleet) leave(g *gatheredBeats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.waiting--; g.waiting > 0 {
		return
	}
	g.stop()
	g.cancel()
	if f.next == g {
		f.next = nil
	}
}

// send writes what was gathered. The next gathers meanwhile.
func (f *Fleet) send(g *gatheredBeats) {
	f.mu.Lock()
	begun := g.begun
	g.begun = true
	if f.next == g {
		f.next = nil
	}
	f.mu.Unlock()
	if begun {
		return
	}
	g.stop()
	g.answers, g.err = f.cluster.HeartbeatMany(g.ctx, g.beats)
	g.cancel()
	close(g.done)
}
