package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// The functions of the workload, by what they do.
const (
	fnUpper   = "upper"   // its arguments in capitals
	fnFlaky   = "flaky"   // fails in every other run
	fnBroken  = "broken"  // fails always
	fnPanic   = "panic"   // panics always
	fnSlow    = "slow"    // takes its time, sometimes longer than it may
	fnPoison  = "poison"  // kills its worker while there are faults
	fnUnknown = "unknown" // known to no worker until the faults end
	fnParent  = "parent"  // submits others, some of them parents, and awaits them
)

// timeout is that of all functions that have one, slowest how long those take at
// most that take their time, and longest the timeout of those that have none.
const (
	timeout = 500 * time.Millisecond
	slowest = 3 * timeout / 2
	longest = 20 * time.Second
)

// maxDepth is how deeply parents are nested.
const maxDepth = 3

// maxOutput is the largest result, a little above those of the workload.
const maxOutput = 40_000

// tooMuch is more processor time than any worker has, and infeasibleAfter how long
// futures wait that none can run.
const (
	tooMuch         = 100_000
	infeasibleAfter = 15 * time.Second
)

// maxPace is the fastest pace, in starts per second.
const maxPace = 1

// request is a future as the workload wants it.
type request struct {
	submission fdbmodel.Submission
	// acknowledged is set once a submit said that it exists.
	acknowledged bool
	ended        *layout.Notice
	cancelled    bool
}

// clientProcess is the one client: it submits, cancels, retries and awaits. Its
// memory survives its crashes, as that of an application's own database does.
type clientProcess struct {
	schedule
	world    *world
	cluster  *fdbmodel.Cluster
	session  layout.SessionID
	mailbox  *fdbmodel.Mailbox
	requests []*request
	byID     map[layout.ID]*request
	refresh  time.Time
	resub    time.Time
}

// startClient starts the client, or starts it again after a crash.
func (w *world) startClient(ctx context.Context) error {
	old := w.client
	c := &clientProcess{world: w, byID: map[layout.ID]*request{}}
	if old != nil {
		c.requests, c.byID = old.requests, old.byID
	}
	err := w.insist(ctx, func() error {
		var err error
		c.cluster, err = w.openCluster(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.session, err = c.cluster.DrawSessionID(); err != nil {
		return err
	}
	c.mailbox = c.cluster.OpenMailbox(c.session)
	c.schedule = schedule{actor: c, next: w.clock.Now()}
	w.client = c
	return nil
}

// insist repeats what only faults can make fail.
func (w *world) insist(ctx context.Context, fn func() error) error {
	for n := 0; ; n++ {
		err := fn()
		if err == nil || !kv.Retryable(err) || n == 100 || ctx.Err() != nil {
			return err
		}
	}
}

func (c *clientProcess) step(ctx context.Context, now time.Time) (time.Time, error) {
	w := c.world
	if len(c.requests) < w.options.Futures && !w.healing && w.random.IntN(4) == 0 {
		if err := c.submitSome(ctx, now); err != nil {
			return now, err
		}
	}
	if err := c.meddle(ctx); err != nil {
		return now, err
	}
	if !now.Before(c.refresh) {
		c.refresh = now.Add(c.cluster.SessionInterval())
		if err := c.mailbox.Refresh(ctx); err != nil {
			return now, err
		}
	}
	if err := c.listen(ctx); err != nil {
		return now, err
	}
	// A new session knows nothing of what older ones submitted.
	if !now.Before(c.resub) {
		c.resub = now.Add(5 * time.Second)
		if err := c.subscribeOpen(ctx); err != nil {
			return now, err
		}
	}
	return now.Add(time.Duration(50+w.random.IntN(400)) * time.Millisecond), nil
}

// submitSome submits a batch under ids of its own, so that what an unknown
// result left behind can be asked for again.
func (c *clientProcess) submitSome(ctx context.Context, now time.Time) error {
	w := c.world
	n := min(1+w.random.IntN(8), w.options.Futures-len(c.requests))
	var subs []fdbmodel.Submission
	var batch []*request
	for range n {
		r := &request{submission: c.draw(now)}
		if w.random.IntN(3) > 0 {
			ids, err := c.cluster.DrawIDs(1)
			if err != nil {
				return err
			}
			r.submission.ID = ids[0]
		} else {
			r.submission.Key = fmt.Sprintf("key-%d", len(c.requests))
			r.submission.ID = layout.KeyedID(c.cluster.Name(), r.submission.Key)
		}
		c.requests = append(c.requests, r)
		c.byID[r.submission.ID] = r
		batch = append(batch, r)
		subs = append(subs, r.submission)
	}
	answers, err := c.cluster.Submit(ctx, subs)
	for i := range answers {
		batch[i].acknowledged = true
	}
	if err != nil {
		w.report.Unknown++
	}
	w.report.Submitted += n
	return err
}

func (c *clientProcess) draw(now time.Time) fdbmodel.Submission {
	w := c.world
	functions := []string{fnUpper, fnUpper, fnUpper, fnUpper, fnFlaky, fnFlaky, fnBroken, fnPanic, fnUnknown, fnSlow,
		fnSlow, fnPoison, fnParent, fnParent}
	s := fdbmodel.Submission{
		Args: fmt.Appendf(nil, "future-%d", len(c.requests)),
		Spec: layout.Spec{
			Function: "go:" + functions[w.random.IntN(len(functions))], Session: c.session, MaxRetries: w.random.IntN(4),
			Priority: uint8(w.random.IntN(3)), Backoff: layout.Backoff{Base: 200 * time.Millisecond, Max: 2 * time.Second},
		},
	}
	if w.random.IntN(6) == 0 {
		s.NotBefore = now.Add(time.Duration(w.random.IntN(8000)) * time.Millisecond)
	}
	if w.random.IntN(5) == 0 {
		s.Spec.Requirements.CPU = int64(500 * w.random.IntN(4))
	}
	if w.random.IntN(8) == 0 {
		s.Spec.Requirements.Labels = map[string]string{"zone": w.zone()}
	}
	if w.random.IntN(20) == 0 {
		s.Spec.Requirements.CPU = tooMuch
	}
	if s.Spec.Function == "go:"+fnSlow || w.random.IntN(5) == 0 {
		s.Spec.Timeout = timeout
	}
	if s.Spec.Function == "go:"+fnParent {
		s.Spec.Timeout = 0
	}
	if w.random.IntN(4) == 0 {
		s.Spec.Pace = &layout.Pace{
			Key: fmt.Sprintf("host-%d", w.random.IntN(2)), PerSecond: maxPace * (0.1 + 0.9*w.random.Float64()),
		}
	}
	if w.random.IntN(12) == 0 {
		s.Args = append(s.Args, make([]byte, 2000+w.random.IntN(30_000))...)
	}
	return s
}

// zone draws the value of a label of futures and workers.
func (w *world) zone() string { return []string{"a", "b"}[w.random.IntN(2)] }

// meddle cancels or retries something now and then.
func (c *clientProcess) meddle(ctx context.Context) error {
	w := c.world
	if w.healing || len(c.requests) == 0 || w.random.IntN(12) > 0 {
		return nil
	}
	r := c.requests[w.random.IntN(len(c.requests))]
	if r.ended != nil {
		return nil
	}
	r.cancelled = true
	_, _, err := c.cluster.Cancel(ctx, r.submission.ID, "simulated")
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return nil
	}
	return err
}

func (c *clientProcess) listen(ctx context.Context) error {
	for {
		notices, watch, err := c.mailbox.Listen(ctx)
		if err != nil {
			return err
		}
		if watch != nil {
			watch.Cancel()
			return c.mailbox.Acknowledge(ctx)
		}
		for i := range notices {
			if err := c.take(ctx, notices[i]); err != nil {
				return err
			}
		}
	}
}

func (c *clientProcess) take(ctx context.Context, n layout.Notice) error {
	r := c.byID[n.ID]
	if r == nil {
		return fmt.Errorf("notice of future %s, which was never submitted", n.ID)
	}
	if n.Result == nil && n.Exception == nil {
		row, err := c.cluster.Get(ctx, n.ID)
		if err != nil {
			return err
		}
		n.Result, n.Exception = row.Result, row.Exception
	}
	if r.ended != nil {
		return sameEnd(r.ended, &n)
	}
	r.ended = &n
	return nil
}

// subscribeOpen asks for the end of all that is open, and submits again what no
// submit has acknowledged: the same id and content is the same future.
func (c *clientProcess) subscribeOpen(ctx context.Context) error {
	var ids []layout.ID
	for _, r := range c.requests {
		if r.ended == nil {
			ids = append(ids, r.submission.ID)
		}
	}
	over, missing, err := c.cluster.Subscribe(ctx, c.session, ids)
	if err != nil {
		return err
	}
	for i := range over {
		if err := c.take(ctx, over[i]); err != nil {
			return err
		}
	}
	for _, id := range missing {
		r := c.byID[id]
		if r.acknowledged {
			return fmt.Errorf("future %s was acknowledged and is gone", id)
		}
		r.submission.Spec.Session = c.session
		if _, err := c.cluster.Submit(ctx, []fdbmodel.Submission{r.submission}); err != nil {
			return err
		}
		r.acknowledged = true
	}
	return nil
}

func (c *clientProcess) finished() bool { return c.open() == 0 }

func (c *clientProcess) open() int {
	n := 0
	for _, r := range c.requests {
		if r.ended == nil {
			n++
		}
	}
	return n
}
