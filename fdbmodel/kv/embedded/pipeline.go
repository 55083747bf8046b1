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
	// backlogBytes is how much may wait for the disk before commits wait with it, and
	// backlogFraction the part of Options.Memory that is, if that is less; a few
	// batches at least.
	backlogBytes    = 64 << 20
	backlogFraction = 16
	backlogMin      = 4 << 20
	// attestAfter is how long the log is idle before its last commit is
	// attested.
	attestAfter = 100 * time.Millisecond
	// gatherMax is how long a sync may wait for more commits, and gatherRests
	// for how many syncs none does after that was in vain.
	gatherMax   = 200 * time.Microsecond
	gatherRests = 63
	// spareBytes and spareBody bound the buffers of batches kept for reuse, in all
	// and of one.
	spareBytes = 16 << 20
	spareBody  = 4 << 20
	// spareBatches is how many batches are kept for reuse at most.
	spareBatches = 256
)

// pipeline takes commits through two goroutines: one gives them their order
// and applies them, the other makes them durable and publishes them. Meanwhile
// the first goes on with the next batch.
type pipeline struct {
	store  *Store
	disk   durability
	linger time.Duration
	wait   sync.WaitGroup

	requestsLock sync.Mutex
	requests     []*request
	closing      bool
	moreRequests chan struct{}

	batchesLock sync.Mutex
	batches     []*commitBatch
	hurried     bool // the batches are not to linger
	backlog     int
	// most is how large the backlog may be.
	most        int
	sealed      bool
	spare       []*commitBatch
	spareBytes  int
	drained     sync.Cond
	moreBatches chan struct{}
	// timer is that of the second goroutine.
	timer *time.Timer

	// urgent is how many commits wait for the batches to be durable.
	urgent atomic.Int64
	gather gathering
	// synced is the number of the last batch that is durable.
	synced atomic.Uint64
	// grown is called when batches were synced, idle when none came for a while
	// after that.
	grown func()
	idle  func() error
	// pace is called before batches are handed to the disk, and may wait.
	pace func()
}

func newPipeline(s *Store, disk durability, grown func(), idle func() error, pace func()) *pipeline {
	p := &pipeline{store: s, disk: disk, linger: s.options.Linger, grown: grown, idle: idle, pace: pace,
		most:         int(s.options.backlog()),
		moreRequests: make(chan struct{}, 1), moreBatches: make(chan struct{}, 1)}
	if s.options.SyncOff {
		p.linger = s.options.SyncInterval
	}
	p.drained.L = &p.batchesLock
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
func (p *pipeline) take(empty []*request) (requests []*request, closing bool) {
	p.requestsLock.Lock()
	defer p.requestsLock.Unlock()
	requests, p.requests = p.requests, empty
	return requests, p.closing
}

// sequence is the first goroutine.
func (p *pipeline) sequence() {
	defer p.seal()
	var spare []*request
	for {
		requests, closing := p.take(spare[:0])
		if len(requests) == 0 {
			if closing {
				return
			}
			spare = requests
			<-p.moreRequests
			continue
		}
		for rest := requests; len(rest) > 0; {
			rest = rest[p.sequenceBatch(rest):]
		}
		clear(requests)
		spare = requests
	}
}

// sequenceBatch puts requests into one batch and passes it on.
func (p *pipeline) sequenceBatch(requests []*request) int {
	s := p.store
	b := p.newBatch()
	s.commitLock.Lock()
	defer s.commitLock.Unlock()
	if err := s.Err(); err != nil {
		for _, r := range requests {
			r.finish(err)
		}
		return len(requests)
	}
	n := s.sequencer.run(b, requests)
	if b.empty() {
		p.recycle(b)
		return n
	}
	s.batches++
	b.number = s.batches
	s.sequenced.Store(int64(b.last))
	s.answerEarly(b)
	p.enqueue(b)
	s.sequencer.collect(s.options.Clock.Now())
	s.spillToLog()
	return n
}

// newBatch returns a batch with a buffer, once the disk has kept up.
func (p *pipeline) newBatch() *commitBatch {
	p.batchesLock.Lock()
	defer p.batchesLock.Unlock()
	for p.backlog > p.most {
		p.drained.Wait()
	}
	n := len(p.spare)
	if n == 0 {
		return &commitBatch{}
	}
	b := p.spare[n-1]
	p.spare[n-1], p.spare = nil, p.spare[:n-1]
	p.spareBytes -= cap(b.body)
	return b
}

func (p *pipeline) recycle(b *commitBatch) {
	p.batchesLock.Lock()
	defer p.batchesLock.Unlock()
	if cap(b.body) > spareBody || p.spareBytes+cap(b.body) > spareBytes || len(p.spare) == spareBatches {
		return
	}
	b.reset()
	p.spare = append(p.spare, b)
	p.spareBytes += cap(b.body)
}

func (p *pipeline) enqueue(b *commitBatch) {
	p.batchesLock.Lock()
	p.batches = append(p.batches, b)
	p.backlog += len(b.body)
	p.urgent.Add(int64(len(b.waiters)))
	p.batchesLock.Unlock()
	signal.Send(p.moreBatches)
}

// seal says that no more batches come.
func (p *pipeline) seal() {
	p.batchesLock.Lock()
	p.sealed = true
	p.batchesLock.Unlock()
	signal.Send(p.moreBatches)
}

// hurry has the batches that there are made durable at once.
func (p *pipeline) hurry() {
	p.batchesLock.Lock()
	p.hurried = len(p.batches) > 0
	p.batchesLock.Unlock()
	signal.Send(p.moreBatches)
}

// pending reports whether there are batches, whether a commit or a reader waits for
// one of them to be durable, and whether no more will come.
func (p *pipeline) pending() (some, urgent, sealed bool) {
	p.batchesLock.Lock()
	defer p.batchesLock.Unlock()
	urgent = p.hurried
	for _, b := range p.batches {
		urgent = urgent || len(b.waiters) > 0
	}
	return len(p.batches) > 0, urgent, p.sealed
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
		case <-p.moreBatches:
		case <-timer.C:
			return lingering
		}
	}
}

// takeBatches returns the batches that are to be synced together, none once no
// more will come.
func (p *pipeline) takeBatches(spare []*commitBatch) []*commitBatch {
	rest := attestAfter
	for !p.await(rest) {
		if err := p.idle(); err != nil {
			p.store.fail(err, nil)
		}
		rest = math.MaxInt64
	}
	p.batchesLock.Lock()
	defer p.batchesLock.Unlock()
	batches := p.batches
	p.batches, p.hurried = spare[:0], false
	p.urgent.Store(0)
	return batches
}

// persist is the second goroutine.
func (p *pipeline) persist() {
	var spare []*commitBatch
	for {
		p.gather.wait(&p.urgent)
		batches := p.takeBatches(spare)
		if len(batches) == 0 {
			return
		}
		if err := p.write(batches); err != nil {
			p.store.fail(err, batches)
		} else {
			p.finish(batches)
		}
		p.release(batches)
		clear(batches)
		spare = batches
	}
}

func (p *pipeline) write(batches []*commitBatch) error {
	for _, b := range batches {
		p.pace()
		if err := p.disk.persist(b); err != nil {
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
	// expected is how many commits there will be if each committer that was just
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

// finish publishes batches that are durable.
func (p *pipeline) finish(batches []*commitBatch) {
	p.store.spill.add(batches...)
	p.synced.Store(batches[len(batches)-1].number)
	if p.store.options.SyncOff {
		p.store.news.fire()
	} else {
		p.store.publish(batches...)
	}
	p.gather.expected = p.urgent.Load()
	for _, b := range batches {
		p.gather.expected += int64(len(b.waiters))
	}
	for _, b := range batches {
		for _, r := range b.waiters {
			r.finish(nil)
		}
	}
	p.grown()
}

func (p *pipeline) release(batches []*commitBatch) {
	for _, b := range batches {
		size := len(b.body)
		p.recycle(b)
		p.batchesLock.Lock()
		p.backlog -= size
		p.batchesLock.Unlock()
	}
	p.drained.Signal()
}
