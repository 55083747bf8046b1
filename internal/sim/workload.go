package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
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
	// acknowledged is set once a submit said that it exists, and abandoned once one
	// said that it can't.
	acknowledged, abandoned bool
	ended                   *layout.Notice
	cancelled               bool
	// missed is set if it ended and was removed while the client did not look.
	missed bool
	// earlier is how it had ended before it was retried; retried counts that.
	earlier *layout.Notice
	retried int
	// discarded is set once a discard was asked for, and gone once it was done.
	discarded, gone bool
	// name tells its runs from those of others, and refers are the inputs that its
	// arguments refer to.
	name   []byte
	refers []layout.ID
	// wanted is set if the client is to read its result, and read once it has.
	wanted, read bool
	pins         pins
}

// open reports whether the request is still to end.
func (r *request) open() bool { return r.ended == nil && !r.abandoned && !r.missed }

// clientProcess is the one client: it submits, cancels, retries, discards and
// awaits. Its memory survives its crashes, as that of an application's own
// database does.
type clientProcess struct {
	agenda
	world    *world
	process  *process
	cluster  *fdbmodel.Cluster
	session  layout.SessionID
	mailbox  *mailbox.Mailbox
	inbox    []layout.Notice // taken from the mailbox, not dealt with
	requests []*request
	byID     map[layout.ID]*request
	refresh  time.Time
	resub    time.Time
	// entitled are futures whose end the session is told, and overdue those that
	// had ended without that at the last look.
	entitled, overdue map[layout.ID]bool
}

// startClient starts the client, or starts it again after a crash.
func (w *world) startClient(ctx context.Context) error {
	c := &clientProcess{
		world: w, byID: map[layout.ID]*request{}, entitled: map[layout.ID]bool{}, overdue: map[layout.ID]bool{},
	}
	if old := w.client; old != nil {
		c.requests, c.byID = old.requests, old.byID
	}
	var err error
	if c.process, err = w.startProcess(ctx, &c.agenda, c); err != nil {
		return err
	}
	c.cluster = c.process.cluster
	if c.session, err = c.cluster.DrawSessionID(); err != nil {
		return err
	}
	c.mailbox = mailbox.Open(c.cluster, c.session)
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
	if err := c.plan(ctx); err != nil {
		return now, err
	}
	if w.report.Submitted < w.options.Futures+w.leaves && !w.healing && w.random.IntN(4) == 0 {
		if err := c.submitSome(ctx, now); err != nil {
			return now, err
		}
	}
	err := errors.Join(c.meddle(ctx), c.pinSome(ctx), c.meddleWithLanes(ctx), c.pauseMembers(ctx), c.appendJobs(ctx))
	if err != nil {
		return now, err
	}
	if !now.Before(c.refresh) {
		c.refresh = now.Add(c.mailbox.Interval())
		if err := c.mailbox.Refresh(ctx); err != nil {
			return now, err
		}
	}
	if err := c.listen(ctx); err != nil {
		return now, err
	}
	if err := c.readSome(ctx); err != nil {
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

// submitSome submits some futures, or, once, as many as a long list of inputs has.
func (c *clientProcess) submitSome(ctx context.Context, now time.Time) error {
	w := c.world
	if w.random.IntN(4) == 0 {
		r, err := c.drawPut(w.random.IntN(4) > 0)
		if err != nil {
			return err
		}
		return c.put(ctx, r)
	}
	if w.wide > 0 && len(c.requests) > w.options.Futures/4 {
		batch, err := c.drawWide(w.wide)
		w.wide = 0
		if err != nil {
			return err
		}
		return c.submit(ctx, batch)
	}
	if w.random.IntN(4) == 0 {
		return c.submitUnique(ctx, now)
	}
	n := w.beginBurst()
	if n == 0 {
		n = 1 + w.random.IntN(8)
	}
	defer func() { w.bundles.burst = layout.Lane{} }()
	var batch []*request
	for range n {
		r, err := c.add(c.draw(now))
		if err != nil {
			return err
		}
		batch = append(batch, r)
	}
	return c.submit(ctx, batch)
}

// add gives a submission an id of its own, so that what an unknown result left
// behind can be asked for again.
func (c *clientProcess) add(s fdbmodel.Submission) (*request, error) {
	if err := c.identify(&s); err != nil {
		return nil, err
	}
	r := &request{submission: s}
	if err := c.world.dress(r); err != nil {
		return nil, err
	}
	c.requests = append(c.requests, r)
	c.byID[s.ID] = r
	return r, nil
}

// identify gives a submission its id, or its key.
func (c *clientProcess) identify(s *fdbmodel.Submission) error {
	if c.world.random.IntN(3) == 0 {
		s.Key = fmt.Sprintf("key-%d", len(c.requests))
		s.ID = layout.KeyedID(c.cluster.Name(), s.Key)
		return nil
	}
	ids, err := c.cluster.DrawIDs(1)
	if err == nil {
		s.ID = ids[0]
	}
	return err
}

func (c *clientProcess) submit(ctx context.Context, batch []*request) error {
	w := c.world
	subs := make([]fdbmodel.Submission, len(batch))
	for i, r := range batch {
		subs[i] = r.submission
		c.mayReplace(r)
		w.lanes.ask(r.submission.ID)
	}
	w.report.Submitted += len(batch)
	answers, err := c.cluster.Submit(ctx, subs)
	for i := range answers {
		batch[i].acknowledged = true
		w.lanes.acknowledge(batch[i].submission.ID)
		c.entitled[batch[i].submission.ID] = true
	}
	if errors.Is(err, layout.ErrBadSpec) {
		return nil // an input does not exist; the batch is submitted again, in its order
	}
	if err != nil {
		w.report.Unknown++
	}
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
	s.Inputs = c.drawInputs()
	c.drawNear(&s)
	c.drawLane(&s)
	return s
}

// zone draws the value of a label of futures and workers.
func (w *world) zone() string { return []string{"a", "b"}[w.random.IntN(2)] }

// outcomeOf returns the expected outcome of a function for its arguments.
func outcomeOf(args []byte) []byte { return bytes.ToUpper(args) }
