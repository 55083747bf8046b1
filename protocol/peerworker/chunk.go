package peerworker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/protocol"
)

// chunkName names a chunk: ids of chunks are those of their heads.
type chunkName struct{ head, chunk string }

// owner names the chunk in the store.
func (n chunkName) owner() string {
	sum := sha256.Sum256([]byte(n.head + "\x00" + n.chunk))
	return hex.EncodeToString(sum[:16])
}

// itemState is where an item of a chunk is.
type itemState uint8

const (
	itemOpen    itemState = iota // waits or runs
	itemEnded                    // its outcome waits for the head
	itemSettled                  // the head has its outcome, or it is another chunk's
)

// chunk is an order that a head has given.
type chunk struct {
	worker *Worker
	name   chunkName
	owner  string
	record record
	items  []item      // none for an order of b7s's
	ids    []layout.ID // of the futures here
	// order is set for one of b7s, whose results are sent all at once.
	order *b7sOrder

	// ring has room for one signal: send outcomes.
	ring chan struct{}
	// released is closed once its items may run.
	released chan struct{}
	release  func()
	// gone is closed once the chunk is forgotten.
	gone chan struct{}

	reported atomic.Bool // the head was told of it, or is about to be

	mu      sync.Mutex
	states  []itemState
	open    int // items that are itemOpen
	unsent  int // items that are not itemSettled
	running map[int]struct{}
	queue   []ended
	flights int  // messages with outcomes under way
	begun   bool // its futures are made, and it is seen to its end
	dropped bool
	// prove says that the head does not know the chunk, and is sent its items with the
	// outcomes.
	prove bool
	// done are settled futures that are to be discarded, and doneBytes the size of
	// their results.
	done      []layout.ID
	doneBytes int64
	// waiting are futures that have ended for the head, and wait here for an attempt
	// that never comes: their records say how the last one ended.
	waiting map[layout.ID]bool
	// anew are items whose futures are stopped because of an earlier order, and are made
	// again after that; see runAgain.
	anew  map[int]fdbmodel.Submission
	bytes int64 // of arguments and results that it is charged with
	wait  time.Duration
	again time.Time // when what the head has not taken is sent again
}

// ended is the outcome of an item. A nil outcome is in the store. One that is kept is the
// runner's.
type ended struct {
	index   int
	size    int64 // of the result
	outcome *protocol.Outcome
	kept    bool
}

// isDirect reports whether the runner has the items.
func (c *chunk) isDirect() bool { return c.order == nil && c.worker.runner != nil }

func newChunk(w *Worker, name chunkName, r record, items []item) *chunk {
	c := &chunk{
		worker: w, name: name, owner: name.owner(), record: r, items: items, ids: make([]layout.ID, r.Items),
		ring: make(chan struct{}, 1), released: make(chan struct{}),
		gone:   make(chan struct{}),
		states: make([]itemState, r.Items), open: r.Items, unsent: r.Items, running: map[int]struct{}{},
		waiting: map[layout.ID]bool{}, anew: map[int]fdbmodel.Submission{},
	}
	for _, i := range r.Anew {
		c.anew[i] = fdbmodel.Submission{} // what it was made of is not remembered
	}
	for i := range c.ids {
		if r.B7S {
			c.ids[i] = layout.BatchItemID(c.owner, i)
		} else {
			c.ids[i] = items[i].localID(name.head)
		}
	}
	c.release = sync.OnceFunc(func() { close(c.released) })
	return c
}

// began and hasReturned are told of each call of a function.
func (c *chunk) began(index int) {
	c.mu.Lock()
	c.running[index] = struct{}{}
	c.mu.Unlock()
}

func (c *chunk) hasReturned(index int) {
	c.mu.Lock()
	delete(c.running, index)
	c.mu.Unlock()
}

func (c *chunk) isOpen(index int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states[index] == itemOpen
}

// runs reports whether the function of an item is called now.
func (c *chunk) runs(index int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, runs := c.running[index]
	return runs
}

// isReleased reports whether items may run.
func (c *chunk) isReleased() bool {
	select {
	case <-c.released:
		return true
	default:
		return false
	}
}

// openItems returns the items that have not ended.
func (c *chunk) openItems() (indexes []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.states {
		if s == itemOpen {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// end queues the outcome of an item for the head, and reports whether there is something to
// send that was not there before: the first outcome, or the last one.
func (c *chunk) end(e ended) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.states[e.index] != itemOpen {
		c.forgetCached([]ended{e})
		return false
	}
	if c.dropped {
		c.settleItem(e.index, 0)
		c.forgetCached([]ended{e})
		signal.Send(c.worker.news)
		return true
	}
	c.states[e.index] = itemEnded
	c.open--
	delete(c.running, e.index)
	c.bytes += e.size
	c.charge(e.size)
	c.queue = append(c.queue, e)
	return len(c.queue) == 1 || c.open == 0
}

// settleItem says that an item is over for this chunk. It is called under mu.
func (c *chunk) settleItem(index int, size int64) {
	if c.states[index] == itemSettled {
		return
	}
	if c.states[index] == itemOpen {
		c.open--
		delete(c.running, index)
	}
	c.states[index] = itemSettled
	c.unsent--
	c.done = append(c.done, c.ids[index])
	c.doneBytes += size
}

// settle says that the head has outcomes.
func (c *chunk) settle(sent []ended) {
	c.mu.Lock()
	for _, e := range sent {
		c.settleItem(e.index, e.size)
	}
	c.mu.Unlock()
	signal.Send(c.ring)
}

// moveAway leaves an item to another chunk, which has the same future.
func (c *chunk) moveAway(index int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.states[index] == itemOpen {
		c.open--
		delete(c.running, index)
	}
	if c.states[index] != itemSettled {
		c.states[index] = itemSettled
		c.unsent--
	}
	c.queue = slices.DeleteFunc(c.queue, func(e ended) bool {
		if e.index == index {
			c.forgetCached([]ended{e})
		}
		return e.index == index
	})
	signal.Send(c.worker.news)
	signal.Send(c.ring)
}

// isOver reports whether the head has, or does not want, all of it.
func (c *chunk) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsent == 0
}

// drop forgets a chunk that the head does not want: what runs is cancelled.
func (c *chunk) drop(ctx context.Context, reason string) {
	c.mu.Lock()
	already := c.dropped
	c.dropped = true
	for i, s := range c.states {
		if s == itemEnded {
			c.settleItem(i, 0)
		}
	}
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	c.forgetCached(queue)
	if !already {
		c.cancel(ctx, nil, reason)
	}
	c.release() // what was cancelled does not run
	signal.Send(c.worker.news)
	signal.Send(c.ring)
}

// cancel stops items, all if indexes is nil.
func (c *chunk) cancel(ctx context.Context, indexes []int, reason string) {
	if len(indexes) == 0 {
		indexes = c.openItems()
	}
	ids := make([]layout.ID, 0, len(indexes))
	for _, i := range indexes {
		if i >= 0 && i < len(c.ids) {
			ids = append(ids, c.ids[i])
		}
	}
	if c.isDirect() {
		c.worker.runner.cancel(c, ids, reason)
		signal.Send(c.worker.news)
		return
	}
	c.worker.cancelling.Lock()
	defer c.worker.cancelling.Unlock()
	c.mu.Lock()
	for _, i := range indexes {
		delete(c.anew, i)
	}
	c.mu.Unlock()
	ids = c.worker.own(c, ids) // others are wanted by the chunks that have them now
	if _, err := c.worker.node.cluster.CancelMany(ctx, ids, reason); err != nil {
		c.worker.log.Warn("items could not be cancelled", "chunk", c.name.chunk, c.named(indexes), "error", err)
	}
	for _, i := range indexes {
		if i >= 0 && i < len(c.ids) {
			c.worker.lookAt(c, i)
		}
	}
	signal.Send(c.worker.news)
}

// progress is what the head is told of a chunk that runs, or waits to be acknowledged;
// false of one that is over. A head that waits for its store holds results up, and is not
// to take the worker for lost.
func (c *chunk) progress() (*protocol.WorkOrderProgress, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unsent == 0 || c.dropped {
		return nil, false
	}
	p := &protocol.WorkOrderProgress{
		ChunkID: c.name.chunk, Ticket: c.record.Ticket, Running: len(c.running), Done: len(c.ids) - c.open,
	}
	for i := range c.running {
		p.Items = append(p.Items, i)
	}
	slices.Sort(p.Items)
	return p, true
}
