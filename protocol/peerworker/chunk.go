package peerworker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

// item is what the head calls an item: an attempt of a future.
type item struct {
	future  layout.ID
	attempt uint32
}

// localID is the id of an item here.
func (i item) localID(head string) layout.ID {
	return layout.KeyedID(head, fmt.Sprintf("%s %d", i.future, i.attempt))
}

// chunk is an order that a head has given.
type chunk struct {
	worker *Worker
	name   chunkName
	owner  string
	// request, mac and module are those of the order.
	request, mac, module string
	// number says which of two chunks came later. It is set once the worker has the chunk, as is
	// moved, the items that it took over from earlier ones.
	number uint64
	moved  []place
	items  []item      // none for an order of b7s's
	ids    []layout.ID // of the items here
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
	proved   time.Time   // when a head that does not know it was last told of its items; of the link's goroutine
	started  bool        // its items may run; under the runner's mu

	mu      sync.Mutex
	states  []itemState
	open    int // items that are itemOpen
	unsent  int // items that are not itemSettled
	running map[int]struct{}
	queue   []ended
	flights int  // messages with outcomes under way
	most    int  // outcomes in a message
	begun   bool // it is seen to its end
	kept    bool // the journal has its order, or keeps none
	dropped bool
	// prove says that the head does not know the chunk, and is sent its items with the
	// outcomes.
	prove bool
	// done are settled items that are to be discarded, and doneBytes the size of their
	// results.
	done      []int
	doneBytes int64
	bytes     int64 // of arguments and results that it is charged with
	ordered   int64 // of them, those of the order; set once the worker has the chunk
	output    int64 // of results, for an order of b7s's
	wait      time.Duration
	again     time.Time // when what the head has not taken is sent again
}

// ended is the outcome of an item.
type ended struct {
	index     int
	size      int64 // of the result
	outcome   *protocol.Outcome
	discarded bool // it is no answer to another order
}

// newChunk makes a chunk of an order with so many items, which have no names in one of b7s's.
func newChunk(w *Worker, name chunkName, m *protocol.WorkOrderBatch, n int, items []item) *chunk {
	c := &chunk{
		worker: w, name: name, owner: name.owner(), request: m.RequestID, mac: m.OrderMAC, module: m.Module, items: items,
		ids: make([]layout.ID, n), ring: make(chan struct{}, 1), released: make(chan struct{}), gone: make(chan struct{}),
		states: make([]itemState, n), open: n, unsent: n, running: map[int]struct{}{}, most: maxOutcomes,
	}
	for i := range c.ids {
		if items == nil {
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

// end ends an item, unless it has ended. It may be sent once the journal has it, if that can be
// written.
func (c *chunk) end(e ended) {
	if j := c.worker.journal; j != nil && c.order == nil && !j.isFailing() {
		j.add(keptEnd{c, e})
		signal.Send(c.worker.news)
		return
	}
	c.queueEnd(e)
}

// wants reports whether the end of an item is still of use to the head.
func (c *chunk) wants(index int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return index >= 0 && index < len(c.states) && c.states[index] == itemOpen && !c.dropped
}

// queueEnd queues the outcome of an item for the head. The head is sent something when there is
// the first outcome, or the last one.
func (c *chunk) queueEnd(e ended) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.states[e.index] != itemOpen {
		return
	}
	if c.dropped {
		c.settleItem(e.index, 0)
		signal.Send(c.worker.news)
		signal.Send(c.ring)
		return
	}
	c.states[e.index] = itemEnded
	c.open--
	delete(c.running, e.index)
	c.bytes += e.size
	c.charge(e.size)
	c.queue = append(c.queue, e)
	if len(c.queue) == 1 || c.open == 0 {
		signal.Send(c.ring)
	}
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
	c.done = append(c.done, index)
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
	c.queue = slices.DeleteFunc(c.queue, func(e ended) bool { return e.index == index })
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
func (c *chunk) drop(reason string) {
	c.mu.Lock()
	already := c.dropped
	c.dropped = true
	for i, s := range c.states {
		if s == itemEnded {
			c.settleItem(i, 0)
		}
	}
	c.queue = nil
	c.mu.Unlock()
	if !already {
		c.worker.runner.cancel(c, c.idsOf(c.openItems()), reason)
	}
	c.release() // what was cancelled does not run
	signal.Send(c.worker.news)
	signal.Send(c.ring)
}

// cancel stops items, all if indexes is nil, also while the journal can't be written.
func (c *chunk) cancel(ctx context.Context, indexes []int, reason string) {
	if len(indexes) == 0 {
		indexes = c.openItems()
	}
	c.worker.runner.cancel(c, c.idsOf(indexes), reason)
	if err := c.worker.journal.cancel(ctx, c, indexes, reason); err != nil {
		c.worker.log.Warn("a cancel is not remembered", "chunk", c.name.chunk, c.named(indexes), "error", err)
	}
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
		ChunkID: c.name.chunk, OrderMAC: c.mac, Running: len(c.running), Done: len(c.ids) - c.open,
	}
	for i := range c.running {
		p.Items = append(p.Items, i)
	}
	slices.Sort(p.Items)
	return p, true
}

// proveEvery is how often a head that does not know a chunk, and wants it, is told of its items.
const proveEvery = 10 * time.Second

// isToProve reports whether a head that does not know the chunk is to be told of its items now. Those of an order of
// b7s's have no names.
func (c *chunk) isToProve() bool { return len(c.items) > 0 && time.Since(c.proved) >= proveEvery }

// isReleased reports whether the items may run.
func (c *chunk) isReleased() bool {
	select {
	case <-c.released:
		return true
	default:
		return false
	}
}

// openAmong returns those places of which the items have not ended.
func (c *chunk) openAmong(indexes []int) (open []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range indexes {
		if i >= 0 && i < len(c.states) && c.states[i] == itemOpen {
			open = append(open, i)
		}
	}
	return open
}
