package peerworker

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
)

// runner has items run by the worker of the own cluster without making them futures there: it
// keeps them, and how they ended, in memory.
//
// An attempt that is ordered again runs once: the new order is answered with how it ended. But
// a cancel is that of the order, and so is the wish of a function to be run later, which the
// head has heeded. Neither is an answer to a new order: the attempt is run once more, after
// what was cancelled has stopped. A result that came in spite of a cancel answers both.
type runner struct {
	worker *Worker
	info   layout.WorkerInfo // what the worker offers
	news   func()
	stop   func(layout.ID)

	mu    sync.Mutex
	items map[layout.ID]*attempt
	lines lines
	// spools have values that are large, of items that the worker has.
	spools map[layout.ID]*spool
}

// runState is where an item is.
type runState uint8

const (
	runHeld runState = iota // it may not begin
	runWaits
	runTaken // the worker has it
	runOver  // it has an outcome
)

// attempt is one of a future of a head.
type attempt struct {
	id     layout.ID
	head   string
	chunk  *chunk // that has it now
	spec   *layout.Spec
	args   []byte
	number uint64 // says whose turn comes first; 0 before it waits
	state  runState
	at     int  // where in its line, while it waits
	counts bool // among those of its head that run; see lines
	// cancelled is why it is to stop, nil if it is not.
	cancelled *string
	// next is the same attempt as an order after the cancel has it: it begins once this
	// one has stopped. Nil without such an order.
	next *attempt
	// forgotten says that no chunk has it: it only has to stop. The worker knows what runs by the id alone, so it
	// stays here until then.
	forgotten bool
	outcome   protocol.Outcome // without its place
	discarded bool             // the outcome answers no other order of the item
	size      int64            // of the result
}

func newRunner(w *Worker) *runner {
	return &runner{worker: w, items: map[layout.ID]*attempt{}, spools: map[layout.ID]*spool{}}
}

// Attach implements workers.Source.
func (r *runner) Attach(news func(), cancel func(layout.ID)) { r.news, r.stop = news, cancel }

// check fills in defaults, and returns an error for an item that can't be run here.
func (r *runner) check(sub *fdbmodel.Submission) error {
	spec := &sub.Spec
	spec.Queue, spec.Codec = layout.DefaultQueue, cmp.Or(spec.Codec, layout.CodecRaw)
	if err := spec.CheckLimits(); err != nil {
		return err
	}
	if len(sub.Args) > layout.MaxArgs {
		return fmt.Errorf("%w: %d bytes of arguments: at most %d", fdbmodel.ErrTooLarge, len(sub.Args), layout.MaxArgs)
	}
	if n := spec.MetaSize(); n > layout.MaxMeta {
		return fmt.Errorf("%w: %d bytes of argv and env: at most %d", fdbmodel.ErrTooLarge, n, layout.MaxMeta)
	}
	return r.info.CanRun(spec)
}

// checkAll is check for the items of an order.
func (r *runner) checkAll(subs []fdbmodel.Submission) error {
	for i := range subs {
		if err := r.check(&subs[i]); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	return nil
}

// hold takes the items of a chunk that are open, to run once they are started. Those that have
// ended end again.
func (r *runner) hold(c *chunk, subs []fdbmodel.Submission) {
	var over []ended
	r.mu.Lock()
	for i := range subs {
		sub := &subs[i]
		if !c.wants(i) {
			continue
		}
		fresh := &attempt{id: sub.ID, head: c.name.head, chunk: c, spec: &sub.Spec, args: sub.Args}
		switch x := r.items[sub.ID]; {
		case x == nil || x.discarded:
			r.items[sub.ID] = fresh
		case x.state == runOver:
			x.chunk = c
			over = append(over, x.endedAt(i))
		default:
			x.forgotten = false
			if x.chunk = c; x.cancelled != nil {
				x.next = fresh
			}
		}
	}
	r.mu.Unlock()
	for _, e := range over {
		c.end(e)
	}
}

// recall takes an item that was over before the worker was started.
func (r *runner) recall(x *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items[x.id] = x
}

// discard forgets an item that has not begun, or is over.
func (r *runner) discard(id layout.ID) {
	r.mu.Lock()
	x := r.items[id]
	delete(r.items, id)
	r.mu.Unlock()
	if x != nil && x.outcome.Blob != nil {
		r.worker.blobs.drop(blobName{x.head, x.outcome.Blob.ID}, id)
	}
}

// start has the items of a chunk run.
func (r *runner) start(c *chunk) {
	r.mu.Lock()
	c.started = true
	for _, id := range c.ids {
		if x := r.items[id]; x != nil && x.chunk == c && x.state == runHeld {
			r.lines.add(x)
		}
	}
	r.mu.Unlock()
	r.news()
}

// endedAt is the outcome of an item that is over, at a place of a chunk.
func (x *attempt) endedAt(index int) ended {
	o := x.outcome
	o.Index = index
	return ended{index: index, size: x.size, outcome: &o, discarded: x.discarded}
}

// Take implements workers.Source.
func (r *runner) Take(request fdbmodel.ClaimRequest) (futures []fdbmodel.ClaimedFuture, more bool) {
	if r.worker.stopping.Load() {
		return nil, false
	}
	full := r.worker.fullHeads()
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.lines.take(&request, full)
	futures = make([]fdbmodel.ClaimedFuture, len(taken))
	for i, x := range taken {
		futures[i] = x.claimed()
	}
	return futures, r.lines.n > 0
}

// End implements workers.Source.
func (r *runner) End(c fdbmodel.Completion) {
	spooled := c.Result != nil
	if !spooled {
		r.dropSpool(c.Future.ID)
	}
	r.mu.Lock()
	x := r.items[c.Future.ID]
	if x == nil || x.state != runTaken {
		r.mu.Unlock()
		r.dropSpool(c.Future.ID)
		return
	}
	cancelled := x.cancelled
	if cancelled == nil && c.Relinquish {
		r.lines.add(x)
		r.mu.Unlock()
		r.news()
		return
	}
	r.mu.Unlock()
	outcome, size := r.outcomeOf(x.head, &c, cancelled)
	r.over(x, outcome, size, c.Result == nil && (cancelled != nil || c.Exception == nil))
	if spooled {
		r.dropSpool(c.Future.ID)
	}
}

// over ends an item for the chunk that has it, unless it is ordered again and this is no answer.
func (r *runner) over(x *attempt, outcome protocol.Outcome, size int64, discarded bool) {
	blob := outcome.Blob
	r.mu.Lock()
	c := x.chunk
	r.lines.free(x)
	if x.forgotten {
		delete(r.items, x.id)
		r.mu.Unlock()
		if blob != nil {
			r.worker.blobs.drop(blobName{x.head, blob.ID}, x.id)
		}
		return
	}
	if next := x.next; discarded && next != nil {
		if r.items[x.id] = next; next.chunk.started {
			r.lines.add(next)
		}
		r.mu.Unlock()
		r.news()
		return
	}
	if c.order != nil {
		outcome, size = c.fit(outcome, size)
	}
	x.end(outcome, size, discarded)
	r.mu.Unlock()
	if blob != nil && outcome.Blob == nil {
		r.worker.blobs.drop(blobName{x.head, blob.ID}, x.id)
	}
	r.tell(x, c)
}

// end sets how an item ended. It is called under mu.
func (x *attempt) end(outcome protocol.Outcome, size int64, discarded bool) {
	x.state, x.outcome, x.size, x.discarded = runOver, outcome, size, discarded
	x.args, x.next = nil, nil
}

// tell ends an item that is over for the chunk that had it then.
func (r *runner) tell(x *attempt, c *chunk) {
	w := r.worker
	w.mu.Lock()
	at, found := w.places[x.id]
	w.mu.Unlock()
	// A chunk that has only now taken the item over sees itself how it ended.
	if found && at.chunk == c {
		c.end(x.endedAt(at.index))
	}
}

// cancel stops items of a chunk, unless another one has them now.
func (r *runner) cancel(c *chunk, ids []layout.ID, reason string) {
	var stop []layout.ID
	var unbegun []*attempt
	r.mu.Lock()
	for _, id := range ids {
		x := r.items[id]
		if x == nil || x.chunk != c || x.state == runOver {
			continue
		}
		x.next = nil
		if x.cancelled == nil {
			x.cancelled = &reason
		}
		if x.state == runTaken {
			stop = append(stop, id)
			continue
		}
		// It is over at once: an order that comes now is not answered with this cancel.
		r.leave(x, runOver)
		outcome, size := cancelledOutcome(reason), int64(len(reason))
		if c.order != nil {
			outcome, size = c.fit(outcome, size)
		}
		x.end(outcome, size, true)
		unbegun = append(unbegun, x)
	}
	r.mu.Unlock()
	for _, x := range unbegun {
		r.tell(x, c)
	}
	for _, id := range stop {
		r.stop(id)
	}
}

// withdraw forgets those of some items of a chunk that the worker has not taken, and returns
// them.
func (r *runner) withdraw(c *chunk, indexes []int) (unbegun []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range indexes {
		switch x := r.items[c.ids[i]]; {
		case x == nil || x.chunk != c:
		case x.state == runHeld || x.state == runWaits:
			r.leave(x, runOver)
			delete(r.items, x.id)
			unbegun = append(unbegun, i)
		case x.next != nil:
			x.next = nil
			unbegun = append(unbegun, i)
		}
	}
	return unbegun
}

// leave has an item wait no longer that was held or waits. It is called under mu.
func (r *runner) leave(x *attempt, state runState) {
	if x.state == runWaits {
		r.lines.leave(x, state)
	}
	x.state = state
}

// forget forgets items of a chunk. What still runs of them is stopped, and how it ends
// changes nothing.
func (r *runner) forget(c *chunk, ids []layout.ID) {
	var stop []layout.ID
	r.mu.Lock()
	for _, id := range ids {
		x := r.items[id]
		switch {
		case x == nil || x.chunk != c:
			continue
		case x.state == runHeld || x.state == runWaits:
			r.leave(x, runOver)
		case x.state == runTaken:
			r.lines.free(x)
			x.forgotten, x.next = true, nil
			if x.cancelled == nil {
				why := unwanted
				x.cancelled = &why
			}
			stop = append(stop, id)
			continue
		case x.outcome.Blob != nil:
			r.worker.blobs.drop(blobName{x.head, x.outcome.Blob.ID}, id)
		}
		delete(r.items, id)
	}
	r.mu.Unlock()
	for _, id := range stop {
		r.stop(id)
	}
}

// outcomeOf is how an attempt ended, for its head, and the size of its result.
func (r *runner) outcomeOf(head string, c *fdbmodel.Completion, cancelled *string) (o protocol.Outcome, size int64) {
	switch {
	case c.Result != nil:
		return r.resultOf(head, c)
	case cancelled != nil:
		return cancelledOutcome(*cancelled), int64(len(*cancelled))
	case c.Exception != nil:
		e := *c.Exception
		e.Message = layout.Shorten(strings.ToValidUTF8(e.Message, "\uFFFD"), fdbmodel.MaxMessage)
		e.Permanent = c.Permanent
		o = *failure(0, &e)
		o.Usage = usageOf(c.RunTime, e.Usage)
		if c.RetryIn != nil && !c.Permanent {
			wait := waitMS(*c.RetryIn, 0)
			o.RetryMS = &wait
		}
		return o, int64(len(e.Message) + len(e.Stdout) + len(e.Stderr))
	case c.Snooze != nil:
		return protocol.Outcome{Code: protocol.CodeAccepted, SnoozeMS: waitMS(*c.Snooze, 1)}, 0
	default:
		return *returned(0, "the function could not be run here; the log of the worker says why"), 0
	}
}

// resultOf is the outcome of an attempt with a result. A large one is a blob.
func (r *runner) resultOf(head string, c *fdbmodel.Completion) (o protocol.Outcome, size int64) {
	v := c.Result
	o = protocol.Outcome{
		Code: protocol.CodeOK, Value: v.Value, Codec: v.Codec, ExitCode: exitCode(v.ExitCode), Stderr: v.Stderr,
		Truncated: v.Truncated, Usage: usageOf(max(v.RunTime, time.Nanosecond), v.Usage),
	}
	if len(v.Value) > maxInline || v.Size > int64(len(v.Value)) {
		o.Value, o.Blob = nil, r.worker.blobs.hold(head, c.Future.ID, v.Value, r.takeSpool(c.Future.ID))
	}
	return o, max(v.Size, int64(len(v.Value))) + int64(len(v.Stderr))
}

// Writer implements workers.Source.
func (r *runner) Writer(id layout.ID) (io.Writer, error) {
	made, err := newSpool()
	if err != nil {
		return nil, err
	}
	r.dropSpool(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spools[id] = made
	return made, nil
}

func (r *runner) takeSpool(id layout.ID) *spool {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.spools[id]
	delete(r.spools, id)
	return taken
}

func (r *runner) dropSpool(id layout.ID) {
	if dropped := r.takeSpool(id); dropped != nil {
		dropped.close()
	}
}

// close ends the use of what was not taken.
func (r *runner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spools {
		s.close()
	}
	clear(r.spools)
}

func cancelledOutcome(reason string) protocol.Outcome {
	return *failure(0, &layout.Exception{Kind: layout.KindCancelled, Message: reason})
}
