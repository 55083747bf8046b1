package futures

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// Result is what a future came to.
type Result struct {
	Value     []byte
	Codec     string
	ExitCode  int
	Stderr    []byte
	Truncated bool // Stderr is the end of a longer stream
	Attempt   int
	Worker    fdbmodel.WorkerID
	RunTime   time.Duration
}

// Outcome is a Result or an error.
type Outcome struct {
	Result Result
	Err    error
}

// Future is a handle on a future.
type Future struct {
	client  *Client
	id      ID
	existed bool
	foreign bool

	mu    sync.Mutex
	entry *entry
}

// ID returns the future's id.
func (f *Future) ID() ID { return f.id }

// Existed tells whether the future was there before it was submitted here.
func (f *Future) Existed() bool { return f.existed }

// Cancel asks for the end of the future.
func (f *Future) Cancel(ctx context.Context, reason string) (fdbmodel.Outcome, error) {
	outcome, _, err := f.client.cluster.Cancel(ctx, f.id, reason)
	return outcome, err
}

// Done is closed when the future's end is known here.
func (f *Future) Done() <-chan struct{} { return f.known().done }

// known makes the future one of those that the client waits for.
func (f *Future) known() *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.entry == nil {
		f.entry = f.client.waiting.entry(f.id)
	}
	if f.foreign {
		f.foreign = false
		f.client.waiting.subscribe(f.id)
	}
	return f.entry
}

// Await returns the result once the future is over. It returns a *FailedError
// if it failed for good, ErrNotFound if there is no such future, and ErrClosed.
func (f *Future) Await(ctx context.Context) (Result, error) {
	if err := f.client.waiting.open(ctx); err != nil {
		return Result{}, err
	}
	e := f.known()
	select {
	case <-e.done:
		return e.outcome.Result, e.outcome.Err
	default:
	}
	select {
	case <-e.done:
		return e.outcome.Result, e.outcome.Err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	case <-f.client.base.Done():
		return Result{}, ErrClosed
	}
}

// AwaitAll returns the results of all futures in their order. If some failed,
// theirs are empty and the error joins the failures.
func (c *Client) AwaitAll(ctx context.Context, fs []*Future) ([]Result, error) {
	results := make([]Result, len(fs))
	var failures []error
	for _, f := range fs {
		if err := c.waiting.open(ctx); err != nil {
			return nil, err
		}
		f.known()
	}
	for i, f := range fs {
		r, err := f.Await(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			failures = append(failures, err)
		}
		results[i] = r
	}
	return results, errors.Join(failures...)
}

// AwaitEach returns the futures with their outcomes as they come. It ends with
// ctx, whose error is then the outcome of each that is left.
func (c *Client) AwaitEach(ctx context.Context, fs []*Future) iter.Seq2[*Future, Outcome] {
	return func(yield func(*Future, Outcome) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan int, len(fs))
		for i, f := range fs {
			if err := c.waiting.open(ctx); err != nil {
				yield(f, Outcome{Err: err})
				return
			}
			f.known().notify(func() { ended <- i })
		}
		left := map[int]struct{}{}
		for i := range fs {
			left[i] = struct{}{}
		}
		for len(left) > 0 {
			select {
			case i := <-ended:
				delete(left, i)
				if !yield(fs[i], fs[i].known().outcome) {
					return
				}
			case <-ctx.Done():
				for i := range left {
					if !yield(fs[i], Outcome{Err: ctx.Err()}) {
						return
					}
				}
				return
			case <-c.base.Done():
				for i := range left {
					if !yield(fs[i], Outcome{Err: ErrClosed}) {
						return
					}
				}
				return
			}
		}
	}
}

// entry is a future that the client waits for, or whose end it knows.
type entry struct {
	done    chan struct{}
	outcome Outcome

	mu    sync.Mutex
	over  bool
	calls []func()
}

// notify calls fn once, when the end is known.
func (e *entry) notify(fn func()) {
	e.mu.Lock()
	over := e.over
	if !over {
		e.calls = append(e.calls, fn)
	}
	e.mu.Unlock()
	if over {
		fn()
	}
}

func (e *entry) finish(o Outcome) {
	e.mu.Lock()
	if e.over {
		e.mu.Unlock()
		return
	}
	e.over, e.outcome = true, o
	calls := e.calls
	e.calls = nil
	close(e.done)
	e.mu.Unlock()
	for _, fn := range calls {
		fn()
	}
}

// Intervals of the await loop.
const (
	ackInterval = time.Second
	ackAfter    = 1000
	// recheckInterval is how often all that is awaited is subscribed again, in
	// case the session was taken for dead.
	recheckInterval = 30 * time.Second
	retryInterval   = 100 * time.Millisecond
)

// waiting is the client's one loop that listens to its mailbox.
type waiting struct {
	client  *Client
	mailbox *fdbmodel.Mailbox

	openMu  sync.Mutex
	isOpen  bool
	mu      sync.Mutex
	entries map[ID]*entry
	asked   []ID // to be subscribed
	// early are ends that came while the submit of their future had not
	// returned. They are kept while any submit is under way.
	early   map[ID]struct{}
	submits int
	news    chan struct{}

	watch                         kv.Watch
	unacked                       int
	ackAt, refreshAt, recheckNext time.Time
}

func (w *waiting) init(c *Client) {
	w.client, w.entries, w.news = c, map[ID]*entry{}, make(chan struct{}, 1)
	w.mailbox = c.cluster.OpenMailbox(c.session)
}

func (w *waiting) opened() bool {
	w.openMu.Lock()
	defer w.openMu.Unlock()
	return w.isOpen
}

// open begins the session: its record is there before anything is submitted
// for it.
func (w *waiting) open(ctx context.Context) error {
	w.openMu.Lock()
	defer w.openMu.Unlock()
	if w.client.base.Err() != nil {
		return ErrClosed
	}
	if w.isOpen {
		return nil
	}
	if err := w.mailbox.Refresh(ctx); err != nil {
		return err
	}
	now := w.client.cluster.Now()
	w.refreshAt, w.recheckNext = now.Add(w.client.cluster.SessionInterval()), now.Add(recheckInterval)
	w.isOpen = true
	if !w.client.options.Manual {
		w.client.wg.Go(w.loop)
	}
	return nil
}

// beginSubmit and endSubmit enclose a submit and the entries of its futures.
func (w *waiting) beginSubmit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.submits++
}

func (w *waiting) endSubmit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.submits--; w.submits == 0 {
		w.early = nil
	}
}

func (w *waiting) entry(id ID) *entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[id]
	if e == nil {
		e = &entry{done: make(chan struct{})}
		w.entries[id] = e
	}
	if _, early := w.early[id]; early {
		// The loop takes it from the store once more.
		delete(w.early, id)
		w.ask(id)
	}
	return e
}

// ask is called under mu.
func (w *waiting) ask(id ID) {
	w.asked = append(w.asked, id)
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// subscribe asks the loop to have the end of a future made known.
func (w *waiting) subscribe(id ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ask(id)
}

func (w *waiting) loop() {
	clk := w.client.cluster.Clock()
	for w.client.base.Err() == nil {
		next, err := w.step(w.client.base, clk.Now())
		if err != nil && w.client.base.Err() == nil {
			w.client.options.Logger.Warn("await is retried", "error", err)
			next = clk.Now().Add(retryInterval)
		}
		var fired <-chan struct{}
		if w.watch != nil {
			fired = w.watch.Done()
		}
		timer := clk.At(next)
		select {
		case <-fired:
			w.watch = nil
		case <-w.news:
		case <-timer.C():
		case <-w.client.base.Done():
		}
		timer.Stop()
	}
	if w.watch != nil {
		w.watch.Cancel()
	}
}

// Step runs one round of a client with Options.Manual and returns when the next
// is due at the latest.
func (c *Client) Step(ctx context.Context, now time.Time) (time.Time, error) {
	if !c.waiting.opened() {
		return now.Add(ackInterval), nil
	}
	next, err := c.waiting.step(ctx, now)
	if c.waiting.watch != nil {
		c.waiting.watch.Cancel()
		c.waiting.watch = nil
	}
	return next, err
}

// step does everything that is due.
func (w *waiting) step(ctx context.Context, now time.Time) (time.Time, error) {
	if !now.Before(w.refreshAt) {
		w.refreshAt = now.Add(w.client.cluster.SessionInterval())
		if err := w.mailbox.Refresh(ctx); err != nil {
			return now, err
		}
	}
	if !now.Before(w.recheckNext) {
		w.recheckNext = now.Add(recheckInterval)
		w.askAll()
	}
	if err := w.subscribeAsked(ctx); err != nil {
		return now, err
	}
	if err := w.drain(ctx); err != nil {
		return now, err
	}
	if w.unacked > 0 && !now.Before(w.ackAt) {
		if err := w.acknowledge(ctx, now); err != nil {
			return now, err
		}
	}
	next := w.refreshAt
	if w.unacked > 0 && w.ackAt.Before(next) {
		next = w.ackAt
	}
	return next, nil
}

func (w *waiting) acknowledge(ctx context.Context, now time.Time) error {
	err := w.mailbox.Acknowledge(ctx)
	if err == nil {
		w.unacked, w.ackAt = 0, now.Add(ackInterval)
	}
	return err
}

// drain takes all mail and leaves a watch for what comes next.
func (w *waiting) drain(ctx context.Context) error {
	if w.watch != nil {
		select {
		case <-w.watch.Done():
			w.watch = nil
		default:
			return nil
		}
	}
	for {
		notices, watch, err := w.mailbox.Listen(ctx)
		if err != nil {
			return err
		}
		if watch != nil {
			w.watch = watch
			return nil
		}
		for i := range notices {
			if err := w.deliver(ctx, &notices[i]); err != nil {
				return err
			}
		}
		if w.unacked += len(notices); w.unacked >= ackAfter {
			if err := w.acknowledge(ctx, w.client.cluster.Now()); err != nil {
				return err
			}
		}
	}
}

// deliver ends an entry. An entry whose handle is gone is forgotten with it.
func (w *waiting) deliver(ctx context.Context, n *fdbmodel.Notice) error {
	w.mu.Lock()
	e := w.entries[n.ID]
	delete(w.entries, n.ID)
	if e == nil && w.submits > 0 {
		if w.early == nil {
			w.early = map[ID]struct{}{}
		}
		w.early[n.ID] = struct{}{}
	}
	w.mu.Unlock()
	if e == nil {
		return nil
	}
	outcome, err := w.client.outcome(ctx, n)
	if err != nil {
		w.mu.Lock()
		w.entries[n.ID] = e
		w.asked = append(w.asked, n.ID)
		w.mu.Unlock()
		return err
	}
	e.finish(outcome)
	return nil
}

// outcome reads what a notice does not carry itself.
func (c *Client) outcome(ctx context.Context, n *fdbmodel.Notice) (Outcome, error) {
	result, exception := n.Result, n.Exception
	if result == nil && exception == nil {
		row, err := c.cluster.Get(ctx, n.ID)
		if errors.Is(err, ErrNotFound) {
			return Outcome{Err: err}, nil
		}
		if err != nil {
			return Outcome{}, err
		}
		if row.State() == fdbmodel.Realized {
			result = row.Result
		} else {
			exception = row.Exception
		}
	}
	if result == nil {
		stderr, err := c.cluster.Stderr(ctx, n.ID, exception.Stderr, exception.StderrRef)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Outcome{}, err
		}
		return Outcome{Err: failedError(n.ID, exception, stderr)}, nil
	}
	value, err := c.cluster.ResultValue(ctx, n.ID, result)
	if errors.Is(err, ErrNotFound) {
		return Outcome{Err: err}, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	stderr, err := c.cluster.Stderr(ctx, n.ID, result.Stderr, result.StderrRef)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Outcome{}, err
	}
	return Outcome{Result: Result{
		Value: value, Codec: result.Codec, ExitCode: result.ExitCode, Stderr: stderr, Truncated: result.Truncated,
		Attempt: result.Attempt, Worker: result.Worker, RunTime: result.RunTime,
	}}, nil
}

func (w *waiting) askAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = w.asked[:0]
	for id := range w.entries {
		w.asked = append(w.asked, id)
	}
}

func (w *waiting) subscribeAsked(ctx context.Context) error {
	w.mu.Lock()
	ids := w.asked
	w.asked = nil
	w.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	over, missing, err := w.client.cluster.Subscribe(ctx, w.client.session, ids)
	if err != nil {
		w.mu.Lock()
		w.asked = append(w.asked, ids...)
		w.mu.Unlock()
		return err
	}
	for _, id := range missing {
		w.mu.Lock()
		e := w.entries[id]
		delete(w.entries, id)
		w.mu.Unlock()
		if e != nil {
			e.finish(Outcome{Err: errNotFound(id)})
		}
	}
	for i := range over {
		if err := w.deliver(ctx, &over[i]); err != nil {
			return err
		}
	}
	return nil
}

// close ends what is still awaited.
func (w *waiting) close() {
	w.mu.Lock()
	entries := w.entries
	w.entries = map[ID]*entry{}
	w.mu.Unlock()
	for _, e := range entries {
		e.finish(Outcome{Err: ErrClosed})
	}
}
