package futures

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// DefaultMaxRetries is how often a failed attempt is followed by another,
// unless a task says otherwise.
const DefaultMaxRetries = 3

// Task describes a future to submit. Function is required.
type Task struct {
	// Function is go:NAME, wasm:CID, wasm:CID/METHOD or wasm:ALIAS.
	Function string
	// Args are at most 8 MiB; Client.Cluster().PutArgs takes more.
	Args []byte
	// Codec is fdbmodel.CodecRaw, CodecMsgpack or CodecArgv. Defaults to raw.
	Codec string
	// Argv and Env are what a WASM function finds as its arguments and
	// environment.
	Argv []string
	Env  map[string]string
	// Queue defaults to "default", Group to none, Priority to 0, the lowest.
	Queue, Group string
	Priority     uint8
	// Requirements default to a slot and nothing else.
	Requirements fdbmodel.Requirements
	// MaxRetries defaults to DefaultMaxRetries.
	MaxRetries *int
	// Backoff defaults to 1 s, doubled up to 5 min.
	Backoff fdbmodel.Backoff
	// Timeout bounds one attempt. Defaults to no bound.
	Timeout time.Duration
	// Delay, or else NotBefore, is when the future becomes ready. Default to
	// at once.
	Delay     time.Duration
	NotBefore time.Time
	// ID, or else Key, make the submit repeatable: the same one with the same
	// content is the same future. Default to a new id.
	ID  ID
	Key string
	// NoNotify is for futures that this client will not await: their end is
	// not made known to it. Defaults to false.
	NoNotify bool
}

func (c *Client) submission(t *Task) fdbmodel.Submission {
	retries := DefaultMaxRetries
	if t.MaxRetries != nil {
		retries = *t.MaxRetries
	}
	s := fdbmodel.Submission{
		ID: t.ID, Key: t.Key, Args: t.Args, NotBefore: t.NotBefore,
		Spec: fdbmodel.Spec{
			Function: t.Function, Codec: t.Codec, Argv: t.Argv, Env: t.Env, Queue: t.Queue, Group: t.Group,
			Priority: t.Priority, Requirements: t.Requirements, MaxRetries: retries, Backoff: t.Backoff, Timeout: t.Timeout,
		},
	}
	if t.Delay > 0 {
		s.NotBefore = c.cluster.Now().Add(t.Delay)
	}
	if !t.NoNotify {
		s.Spec.Session = c.session
	}
	return s
}

// Submit makes a future and returns once it is durable. Concurrent calls share
// transactions. It returns what fdbmodel.Cluster.Submit returns.
func (c *Client) Submit(ctx context.Context, t Task) (*Future, error) {
	s := c.submission(&t)
	if !t.NoNotify {
		if err := c.waiting.open(ctx); err != nil {
			return nil, err
		}
	}
	c.waiting.beginSubmit()
	defer c.waiting.endSubmit()
	answer, err := c.batcher.submit(ctx, s)
	if err != nil {
		return nil, err
	}
	return c.handle(answer, t.NoNotify), nil
}

// SubmitMany makes futures, in transactions of up to fdbmodel.MaxSubmit each.
// On an error the futures that exist are returned, in the order of the tasks.
func (c *Client) SubmitMany(ctx context.Context, tasks []Task) ([]*Future, error) {
	subs, quiet := make([]fdbmodel.Submission, len(tasks)), true
	for i := range tasks {
		subs[i] = c.submission(&tasks[i])
		quiet = quiet && tasks[i].NoNotify
	}
	if !quiet {
		if err := c.waiting.open(ctx); err != nil {
			return nil, err
		}
	}
	c.waiting.beginSubmit()
	defer c.waiting.endSubmit()
	answers, err := c.cluster.Submit(ctx, subs)
	handles := make([]*Future, len(answers))
	for i := range answers {
		handles[i] = c.handle(answers[i], tasks[i].NoNotify)
	}
	return handles, err
}

// handle makes a future known to the await loop before anybody awaits it. One
// that existed, or that makes no notice, is subscribed when it is awaited.
func (c *Client) handle(s fdbmodel.Submitted, quiet bool) *Future {
	f := &Future{client: c, id: s.ID, existed: s.Existed, foreign: s.Existed || quiet}
	if !f.foreign {
		f.entry = c.waiting.entry(s.ID)
	}
	return f
}

// Submission is what SubmitTx put into a transaction.
type Submission struct {
	// Futures are the handles, in the order of the tasks.
	Futures []*Future

	client  *Client
	answers []fdbmodel.Submitted
}

// SubmitTx makes futures in a transaction of the caller's: they exist if it
// commits. It returns what fdbmodel.Cluster.SubmitTx returns. Ids are drawn
// here; a transaction that runs again must pass tasks with ids or keys of its
// own if an unknown result may lie behind it.
func (c *Client) SubmitTx(ctx context.Context, tx kv.Tx, tasks []Task) (*Submission, error) {
	if err := c.waiting.open(ctx); err != nil {
		return nil, err
	}
	subs := make([]fdbmodel.Submission, len(tasks))
	for i := range tasks {
		subs[i] = c.submission(&tasks[i])
	}
	answers, err := c.cluster.SubmitTx(ctx, tx, subs)
	if err != nil {
		return nil, err
	}
	s := &Submission{client: c, answers: answers}
	for i := range answers {
		// It is asked for when it is awaited, which is after the commit.
		s.Futures = append(s.Futures, c.handle(answers[i], true))
	}
	return s, nil
}

// Committed tells idle workers that the transaction committed at version.
// Without it they find the futures within their poll interval.
func (s *Submission) Committed(ctx context.Context, version kv.Version) {
	s.client.cluster.Wake(ctx, version, s.answers)
}

// committers is how many batches of concurrent Submits are under way at most.
const committers = 64

// batcher joins concurrent Submits. A call that finds a committer free goes at
// once; the others wait together for the next one.
type batcher struct {
	client *Client
	mu     sync.Mutex
	busy   int
	queue  []*submitCall
}

type submitCall struct {
	submission fdbmodel.Submission
	answer     fdbmodel.Submitted
	err        error
	done       chan struct{}
}

func (b *batcher) init(c *Client) { b.client = c }

func (b *batcher) submit(ctx context.Context, s fdbmodel.Submission) (fdbmodel.Submitted, error) {
	b.mu.Lock()
	if b.client.options.Manual || b.busy < committers {
		b.busy++
		b.mu.Unlock()
		answers, err := b.client.cluster.Submit(ctx, []fdbmodel.Submission{s})
		b.next()
		if err != nil {
			return fdbmodel.Submitted{}, err
		}
		return answers[0], nil
	}
	call := &submitCall{submission: s, done: make(chan struct{})}
	b.queue = append(b.queue, call)
	b.mu.Unlock()
	select {
	case <-call.done:
		return call.answer, call.err
	case <-ctx.Done():
		// The batch may still be written.
		return fdbmodel.Submitted{}, errors.Join(kv.ErrUnknownResult, ctx.Err())
	}
}

// next hands the committer to those who wait, or frees it.
func (b *batcher) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.busy--
		return
	}
	n := min(len(b.queue), fdbmodel.MaxSubmit)
	calls := b.queue[:n:n]
	b.queue = b.queue[n:]
	b.client.wg.Go(func() {
		b.run(calls)
		b.next()
	})
}

// run submits a batch. A mistake in one of its futures is not its neighbours'.
func (b *batcher) run(calls []*submitCall) {
	subs := make([]fdbmodel.Submission, len(calls))
	for i := range calls {
		subs[i] = calls[i].submission
	}
	cluster, ctx := b.client.cluster, b.client.base
	answers, err := cluster.Submit(ctx, subs)
	for i := range calls {
		switch {
		case i < len(answers):
			calls[i].answer = answers[i]
		case len(calls) > 1 && mistake(err):
			one, err := cluster.Submit(ctx, subs[i:i+1])
			if err == nil {
				calls[i].answer = one[0]
			}
			calls[i].err = err
		default:
			calls[i].err = err
		}
		close(calls[i].done)
	}
}

// mistake tells whether err comes from what was asked, and not from the store.
func mistake(err error) bool {
	for _, m := range []error{
		fdbmodel.ErrBadSpec, fdbmodel.ErrBadName, fdbmodel.ErrTooLarge, fdbmodel.ErrIDInUse, fdbmodel.ErrNotFound,
	} {
		if errors.Is(err, m) {
			return true
		}
	}
	return false
}
