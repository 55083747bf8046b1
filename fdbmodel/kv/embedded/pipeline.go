package embedded

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/signal"
)

const (
	// backlogBytes is how much may wait for the disk before commits wait with
	// it.
	backlogBytes = 64 << 20
	// attestAfter is how long the log is idle before its last commit is
	// attested.
	attestAfter = 100 * time.Millisecond
	// gatherMax is how long a sync may wait for more commits, and gatherRests
	// for how many syncs none does after that was in vain.
	gatherMax   = 200 * time.Microsecond
	gatherRests = 63
	// spareBytes and spareBody bound the buffers of groups kept for reuse, in all
	// and of one.
	spareBytes = 16 << 20
	spareBody  = 4 << 20
	// spareGroups is how many groups are kept for reuse at most.
	spareGroups = 256
)

// pipeline takes commits through two goroutines: one gives them their order
// and applies them, the other makes them durable and publishes them. Meanwhile
// the first goes on with the next group.
type pipeline struct {
	store  *Store
	disk   durability
	linger time.Duration
	wait   sync.WaitGroup

	requestsLock sync.Mutex
	requests     []*request
	closing      bool
	moreRequests chan struct{}

	groupsLock sync.Mutex
	groups     []*group
	backlog    int
	sealed     bool
	spare      []*group
	spareBytes int
	drained    sync.Cond
	moreGroups chan struct{}
	// timer is that of the second goroutine.
	timer *time.Timer

	// urgent is how many commits wait for the groups to be durable.
	urgent atomic.Int64
	gather gathering
	// synced is the number of the last group that is durable.
	synced atomic.Uint64
	// grown is called when groups were synced, idle when none came for a while
	// after that.
	grown func()
	idle  func() error
	// pace is called before groups are handed to the disk, and may wait.
	pace func()
}

func newPipeline(s *Store, disk durability, grown func(), idle func() error, pace func()) *pipeline {
	p := &pipeline{store: s, disk: disk, linger: s.options.Linger, grown: grown, idle: idle, pace: pace,
		moreRequests: make(chan struct{}, 1), moreGroups: make(chan struct{}, 1)}
	if s.options.SyncOff {
		p.linger = s.options.SyncInterval
	}
	p.drained.L = &p.groupsLock
	p.timer = time.NewTimer(math.MaxInt64)
	p.wait.Go(p.sequence)
	p.wait.Go(p.persist)
	return p
}

// submit queues a request.
func (p *pipeline) submit(r *request) {
	p.requestsLock.Lock()
	if p.closing {
		p.requestsLock.Unlock()
		r.finish(kv.ErrClosed)
		return
	}
	p.requests = append(p.requests, r)
	p.requestsLock.Unlock()
	signal.Send(p.moreRequests)
}

// close finishes what is under way and ends the goroutines.
func (p *pipeline) close() {
	p.requestsLock.Lock()
	p.closing = true
	p.requestsLock.Unlock()
	signal.Send(p.moreRequests)
	p.wait.Wait()
}

// take swaps the waiting requests for an empty slice.
func (p *pipeline) take(empty []*request) (batch []*request, closing bool) {
	p.requestsLock.Lock()
	defer p.requestsLock.Unlock()
	batch, p.requests = p.requests, empty
	return batch, p.closing
}

// sequence is the first goroutine.
func (p *pipeline) sequence() {
	defer p.seal()
	var spare []*request
	for {
		batch, closing := p.take(spare[:0])
		if len(batch) == 0 {
			if closing {
				return
			}
			spare = batch
			<-p.moreRequests
			continue
		}
		for rest := batch; len(rest) > 0; {
			rest = rest[p.group(rest):]
		}
		clear(batch)
		spare = batch
	}
}

// group puts requests into one group and passes it on.
func (p *pipeline) group(batch []*request) int {
	s := p.store
	g := p.newGroup()
	s.commitLock.Lock()
	defer s.commitLock.Unlock()
	if err := s.Err(); err != nil {
		for _, r := range batch {
			r.finish(err)
		}
		return len(batch)
	}
	n := s.sequencer.run(g, batch)
	if g.empty() {
		p.recycle(g)
		return n
	}
	s.groups++
	g.number = s.groups
	s.sequenced.Store(int64(g.last))
	s.answerEarly(g)
	p.enqueue(g)
	s.sequencer.collect(s.options.Clock.Now())
	s.spillValues()
	return n
}

// newGroup returns a group with a buffer, once the disk has kept up.
func (p *pipeline) newGroup() *group {
	p.groupsLock.Lock()
	defer p.groupsLock.Unlock()
	for p.backlog > backlogBytes {
		p.drained.Wait()
	}
	n := len(p.spare)
	if n == 0 {
		return &group{}
	}
	g := p.spare[n-1]
	p.spare[n-1], p.spare = nil, p.spare[:n-1]
	p.spareBytes -= cap(g.body)
	return g
}

func (p *pipeline) recycle(g *group) {
	p.groupsLock.Lock()
	defer p.groupsLock.Unlock()
	if cap(g.body) > spareBody || p.spareBytes+cap(g.body) > spareBytes || len(p.spare) == spareGroups {
		return
	}
	g.reset()
	p.spare = append(p.spare, g)
	p.spareBytes += cap(g.body)
}

func (p *pipeline) enqueue(g *group) {
	p.groupsLock.Lock()
	p.groups = append(p.groups, g)
	p.backlog += len(g.body)
	p.urgent.Add(int64(len(g.waiters)))
	p.groupsLock.Unlock()
	signal.Send(p.moreGroups)
}

// seal says that no more groups come.
func (p *pipeline) seal() {
	p.groupsLock.Lock()
	p.sealed = true
	p.groupsLock.Unlock()
	signal.Send(p.moreGroups)
}

// pending reports whether there are groups, whether someone waits for one of
// them to be durable, and whether no more will come.
func (p *pipeline) pending() (some, urgent, sealed bool) {
	p.groupsLock.Lock()
	defer p.groupsLock.Unlock()
	for _, g := range p.groups {
		urgent = urgent || len(g.waiters) > 0
	}
	return len(p.groups) > 0, urgent, p.sealed
}

// await returns when there is something to sync: at once where a commit waits
// for it, after the linger otherwise. It also returns when no more will come,
// and, with false, when the log was idle for a while.
func (p *pipeline) await(rest time.Duration) bool {
	timer := p.timer
	timer.Reset(rest)
	defer timer.Stop()
	lingering := false
	for {
		some, urgent, sealed := p.pending()
		if urgent || sealed {
			return true
		}
		if some && !lingering {
			lingering = true
			timer.Reset(p.linger)
		}
		select {
		case <-p.moreGroups:
		case <-timer.C:
			return lingering
		}
	}
}

// takeGroups returns the groups that are to be synced together, none once no
// more will come.
func (p *pipeline) takeGroups(spare []*group) []*group {
	rest := attestAfter
	for !p.await(rest) {
		if err := p.idle(); err != nil {
			p.store.fail(err, nil)
		}
		rest = math.MaxInt64
	}
	p.groupsLock.Lock()
	defer p.groupsLock.Unlock()
	batch := p.groups
	p.groups = spare[:0]
	p.urgent.Store(0)
	return batch
}

// persist is the second goroutine.
func (p *pipeline) persist() {
	var spare []*group
	for {
		p.gather.wait(&p.urgent)
		batch := p.takeGroups(spare)
		if len(batch) == 0 {
			return
		}
		if err := p.write(batch); err != nil {
			p.store.fail(err, batch)
		} else {
			p.finish(batch)
		}
		p.release(batch)
		clear(batch)
		spare = batch
	}
}

func (p *pipeline) write(batch []*group) error {
	for _, g := range batch {
		p.pace()
		if err := p.disk.persist(g); err != nil {
			return err
		}
	}
	start := time.Now()
	err := p.disk.wait()
	p.gather.synced(time.Since(start))
	return err
}

// gathering lets a sync wait for commits that are about to come. Committers
// that go on as soon as they are answered fall into two halves otherwise, and
// each half waits for the sync of the other.
type gathering struct {
	// expected is how many commits there will be if everyone who was just
	// answered comes back.
	expected int64
	limit    time.Duration
	// rest is how many syncs do not wait, and rests how many did not last time.
	rest, rests int
}

// synced takes note of how long a sync took.
func (g *gathering) synced(took time.Duration) { g.limit = min(took/2, gatherMax) }

// wait returns when as many commits wait as are expected, or when it has been
// as long as makes sense.
func (g *gathering) wait(urgent *atomic.Int64) {
	if g.rest > 0 || g.expected < 2 {
		g.rest = max(g.rest-1, 0)
		return
	}
	for start := time.Now(); urgent.Load() < g.expected; runtime.Gosched() {
		if time.Since(start) > g.limit {
			g.rests = min(2*g.rests+1, gatherRests)
			g.rest = g.rests
			return
		}
	}
	g.rests = 0
}

// finish publishes groups that are durable.
func (p *pipeline) finish(batch []*group) {
	p.store.spill.add(batch...)
	p.synced.Store(batch[len(batch)-1].number)
	if p.store.options.SyncOff {
		p.store.news.fire()
	} else {
		p.store.publish(batch...)
	}
	p.gather.expected = p.urgent.Load()
	for _, g := range batch {
		p.gather.expected += int64(len(g.waiters))
	}
	for _, g := range batch {
		for _, r := range g.waiters {
			r.finish(nil)
		}
	}
	p.grown()
}

func (p *pipeline) release(batch []*group) {
	for _, g := range batch {
		size := len(g.body)
		p.recycle(g)
		p.groupsLock.Lock()
		p.backlog -= size
		p.groupsLock.Unlock()
	}
	p.drained.Signal()
}
