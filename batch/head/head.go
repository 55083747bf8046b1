// Package head drives batches: it makes them durable, chooses workers, gives
// them chunks of the work items, and resumes after a restart what is not over.
//
// Every decision is a compare and set in the store, so that any number of heads
// may work on one store: of two that give out one item, one wins.
package head

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
)

// Options of a head.
type Options struct {
	// Store is where batches are. It is required, and stays the caller's.
	Store batch.Store
	// Dispatcher reaches the workers. It is required.
	Dispatcher Dispatcher
	// MaxAttempts is the operator's limit of how often an item is tried.
	// Defaults to 10.
	MaxAttempts uint64
	// BootDelay is how long after the head's start a batch that it finds in the
	// store waits for as many workers as it asks for; then it goes on with the
	// available ones. One for all of them (-1) waits only where items can't move
	// to those that come later. It is also when the head tries again where the
	// store did not answer. Defaults to 1 min.
	BootDelay time.Duration
	// RequeueInterval is how often the head looks for batches that other heads
	// left. Defaults to 1 h.
	RequeueInterval time.Duration
	// WorkerWait is how long a batch waits for as many workers as it asks for.
	// Then it starts with the available ones. Defaults to 1 min.
	WorkerWait time.Duration
	// Look is how often a batch that waits for workers looks for them, and how
	// often any batch is checked in case a change was not reported. Defaults to 1
	// s.
	Look time.Duration
	// MoveAfter is how long a worker has items that it has not begun before some go to
	// workers that have room, if the batch asks for more workers than have items. Defaults to
	// 1 s; negative is never. It has no effect with a batch.Recorder.
	MoveAfter time.Duration
	// Backoff is the wait after the first failed attempt of an item, doubled
	// with each up to 5 min, where the store does not decide that itself.
	// Defaults to 1 s.
	Backoff time.Duration
	// Logger defaults to none.
	Logger *slog.Logger

	// Seam is for packages of this module; others can't construct one.
	Seam *seam.Head
}

func (o Options) withDefaults() Options {
	o.BootDelay = cmp.Or(o.BootDelay, time.Minute)
	o.RequeueInterval = cmp.Or(o.RequeueInterval, time.Hour)
	o.WorkerWait = cmp.Or(o.WorkerWait, time.Minute)
	o.Look = cmp.Or(o.Look, time.Second)
	o.MoveAfter = cmp.Or(o.MoveAfter, time.Second)
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// sweepAge is how old an incomplete batch must be before its creator is assumed
// dead.
const sweepAge = time.Hour

// Head drives the batches of a store. Its methods may be called from many
// goroutines.
type Head struct {
	options Options

	mu      sync.Mutex
	ctx     context.Context // of Run; nil before
	drivers map[string]*driver
	pending []func() // drive batches once Run has begun
	ended   bool     // no driver is started any more
	wg      sync.WaitGroup

	ledger *ledger // of all drivers

	settled  time.Time // when the boot delay is over
	resumeAt time.Time // in a simulation
}

// New returns a head. It gives out nothing before Run.
func New(o Options) *Head {
	h := &Head{options: o.withDefaults(), drivers: map[string]*driver{}, ledger: newLedger()}
	if o.Seam != nil {
		h.resumeAt, h.settled = h.now(), h.now().Add(h.options.BootDelay)
		o.Seam.Step = h.step
	}
	return h
}

// Store is where the batches are.
func (h *Head) Store() batch.Store { return h.options.Store }

// Run drives batches until ctx ends: those that are submitted to this head, and
// others that are not over, which it looks for at once and at each requeue
// interval. It returns nil when ctx ends. Items that are with workers stay there.
func (h *Head) Run(ctx context.Context) error {
	h.mu.Lock()
	h.ctx, h.settled = ctx, h.now().Add(h.options.BootDelay)
	pending := h.pending
	h.pending = nil
	h.mu.Unlock()
	for _, drive := range pending {
		drive()
	}
	defer h.end()
	for wait := time.Duration(0); pause(ctx, wait) == nil; {
		wait = h.options.RequeueInterval
		if err := h.resume(ctx); err != nil && ctx.Err() == nil {
			wait = min(wait, max(h.options.BootDelay, h.options.Look))
			h.options.Logger.Warn("batches could not be resumed; retrying", "in", wait, "error", err)
		}
	}
	return nil
}

// end returns when all drivers have ended.
func (h *Head) end() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.wg.Wait()
}

// pause waits for d. It returns ctx's error if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	return clock.Sleep(ctx, clock.Real{}, d)
}

// resumePage is how many batches are listed at a time.
const resumePage = 100

// resume drives every batch that is not over.
func (h *Head) resume(ctx context.Context) error {
	h.ledger.tidy()
	swept := h.options.Store.Sweep(ctx, h.now(), sweepAge) // what it leaves is invisible, and keeps none from going on
	after := ""
	for {
		page, err := h.options.Store.List(ctx, true, after, resumePage)
		if errors.Is(err, batch.ErrNotFound) {
			after = "" // that one is gone; those driven already are not driven twice
			continue
		}
		if err != nil {
			return errors.Join(swept, err)
		}
		for i := range page {
			h.driveItems(page[i].ID, nil, true, nil)
		}
		if len(page) < resumePage {
			return swept
		}
		after = page[len(page)-1].ID
	}
}

// drive starts the driver of a batch, or pokes it.
func (h *Head) drive(id string) { h.driveItems(id, nil, false, nil) }

// driveItems is drive of a batch whose items, if they are given, all wait, and which was
// found in the store or else is new, and part of a trace.
func (h *Head) driveItems(id string, items []batch.Item, found bool, trace map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.options.Seam != nil {
		h.driveByStep(id, items, found)
		return
	}
	if h.ctx == nil {
		h.pending = append(h.pending, func() { h.driveItems(id, nil, found, trace) })
		return
	}
	if d := h.drivers[id]; d != nil {
		d.poke()
		return
	}
	if h.ended {
		return
	}
	d := newDriver(h, id)
	d.fresh, d.found, d.trace = items, found, trace
	h.drivers[id] = d
	ctx := h.ctx
	h.wg.Go(func() { d.run(ctx) })
}

// forget removes a driver that has ended, and reports whether it was poked
// since.
func (h *Head) forget(d *driver) (poked bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-d.poked:
		return h.ctx.Err() == nil
	default:
		delete(h.drivers, d.id)
		d.holds(nil)
		return false
	}
}

// Submit makes a batch durably and returns it. With a Key, the same request
// again returns the same batch, which existed then. It returns
// batch.ErrBadBatch for an invalid request, batch.ErrExists for another request
// with that key, and batch.ErrBusy if another call has been creating the same
// batch for a minute. If ctx ends before it returns, the batch may have been
// made. The items are part of the trace of ctx, by layout.TraceKey; if the store does not run
// them itself, until this head ends.
func (h *Head) Submit(ctx context.Context, r batch.Request) (b batch.Batch, existed bool, err error) {
	if err := r.Validate(); err != nil {
		return b, false, err
	}
	if err := h.options.Dispatcher.Check(ctx, &r.Template); err != nil {
		return b, false, err
	}
	b = batch.Batch{
		ID: h.newID(), Template: r.Template, MaxAttempts: batch.Attempts(r.MaxAttempts, h.options.MaxAttempts),
		Items: len(r.Arguments), CreatedAt: h.now().UTC().Truncate(time.Millisecond),
	}
	if r.Key != "" {
		b.ID = keyedID(r.Key)
		if old, err := h.options.Store.Get(ctx, b.ID); err == nil {
			return h.again(ctx, &old, &b, r.Arguments)
		} else if !errors.Is(err, batch.ErrNotFound) {
			return b, false, err
		}
	}
	err = h.options.Store.Create(ctx, &b, r.Arguments)
	if r.Key != "" && (errors.Is(err, batch.ErrExists) || errors.Is(err, batch.ErrBusy)) {
		old, err := h.madeElsewhere(ctx, b.ID, err)
		if err != nil {
			return b, false, err
		}
		return h.again(ctx, &old, &b, r.Arguments)
	}
	if err != nil {
		return b, false, err
	}
	made, err := h.options.Store.Get(ctx, b.ID)
	if err != nil {
		made = b // it is made, whatever keeps the store from showing it
	}
	items := make([]batch.Item, len(r.Arguments))
	for i := range items {
		items[i] = batch.Item{Index: i, Arguments: r.Arguments[i]}
	}
	trace, _ := ctx.Value(layout.TraceKey{}).(map[string]string)
	h.driveItems(b.ID, items, false, trace)
	return made, false, nil
}

// How long a request waits for another one that creates the same batch, and when it first looks again.
const (
	createWait = time.Minute
	firstLook  = 10 * time.Millisecond
)

// madeElsewhere returns the batch of another call, of which Create has returned why: with batch.ErrBusy it waits
// for that call, while this head runs. One that runs in steps does not wait.
func (h *Head) madeElsewhere(ctx context.Context, id string, why error) (batch.Batch, error) {
	waiting, cancel := context.WithTimeout(ctx, createWait)
	defer cancel()
	h.mu.Lock()
	if h.ctx != nil {
		defer context.AfterFunc(h.ctx, cancel)()
	}
	h.mu.Unlock()
	for wait := firstLook; ; wait = min(2*wait, h.options.Look) {
		b, err := h.options.Store.Get(ctx, id)
		switch {
		case !errors.Is(err, batch.ErrNotFound):
			return b, err
		case !errors.Is(why, batch.ErrBusy):
			return b, fmt.Errorf("%w: another request with this key has begun it: use another key", why)
		case h.options.Seam == nil && pause(waiting, wait) == nil:
		case errors.Is(ctx.Err(), context.Canceled):
			return b, ctx.Err()
		default:
			return b, why
		}
	}
}

// keyedID is the id of a batch with an idempotency key, in the form of a version
// 4 UUID.
func keyedID(key string) string {
	sum := sha256.Sum256([]byte("batch key " + key))
	id := uuid.UUID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// again answers a request whose key has a batch. The head that made it may have died before it gave out any of it.
func (h *Head) again(ctx context.Context, old, b *batch.Batch, arguments [][]string) (batch.Batch, bool, error) {
	err := h.same(ctx, old, b, arguments)
	if err == nil && old.Status == batch.Created {
		h.drive(old.ID)
	}
	return *old, true, err
}

// comparePage is how many items are compared at a time.
const comparePage = 500

// same returns batch.ErrExists unless a request is the one that made a batch.
func (h *Head) same(ctx context.Context, old, b *batch.Batch, arguments [][]string) error {
	differs := fmt.Errorf("%w: %s was created by another request with this key: use another key", batch.ErrExists, old.ID)
	// Digests of the rest are the same for an empty list and for none, which is what a store returns.
	if old.Items != b.Items || !bytes.Equal(batch.Digest(old, nil), batch.Digest(b, nil)) {
		return differs
	}
	for from := 0; from < old.Items; from += comparePage {
		items, err := h.options.Store.Outline(ctx, old.ID, from, comparePage, 0)
		if err != nil {
			return err
		}
		for i := range items {
			if !slices.Equal(items[i].Arguments, arguments[items[i].Index]) {
				return differs
			}
		}
	}
	return nil
}

// Cancel ends a batch. See batch.Store.
func (h *Head) Cancel(ctx context.Context, id, reason string) error {
	err := h.options.Store.Cancel(ctx, id, reason, h.now())
	if err == nil {
		h.drive(id)
	}
	return err
}

// Retry lets items that have failed for good run again, and returns how many.
func (h *Head) Retry(ctx context.Context, id string) (int, error) {
	n, err := h.options.Store.Retry(ctx, id)
	if n > 0 {
		h.drive(id)
	}
	return n, err
}

// Delete removes a batch that is over.
func (h *Head) Delete(ctx context.Context, id string) error { return h.options.Store.Delete(ctx, id) }
