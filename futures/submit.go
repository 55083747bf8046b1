package futures

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Submit makes a future and returns once it is durable. Concurrent calls share
// transactions; what is wrong with one of them fails that one only. It returns
// ErrBadSpec, ErrBadName, ErrTooLarge and ErrIDInUse of fdbmodel, and
// ErrNotFound for a module or alias that is unknown.
//
// An unknown commit is resolved: the future is made once. If ctx ends while the
// transaction is under way, the error is kv.ErrUnknownResult joined with ctx's:
// the future may exist. Give the task a Key to be able to submit it again.
func (c *Client) Submit(ctx context.Context, t Task) (*Future, error) {
	if err := c.prepare(t.NoNotify); err != nil {
		return nil, err
	}
	s, err := c.submission(&t)
	if err == nil {
		err = c.writeAhead(ctx, &s)
	}
	if err != nil {
		return nil, err
	}
	generation := c.registry.beginSubmit()
	answer, err := c.commits.submit(ctx, s)
	if err != nil {
		c.registry.endSubmit(generation, nil)
		return nil, err
	}
	f := c.handle(answer)
	if t.NoNotify || answer.Existed {
		c.registry.endSubmit(generation, nil)
	} else {
		c.listener.fetch(c.registry.endSubmit(generation, []*Future{f}))
	}
	return f, nil
}

// SubmitMany makes futures, in transactions of up to layout.MaxSubmit each,
// one after the other. It returns what Submit returns; a mistake in one of the
// tasks is found before any future is made, but for ErrIDInUse. On an error the
// handles of the futures that surely exist are returned with it: those of the
// first tasks.
func (c *Client) SubmitMany(ctx context.Context, tasks []Task) ([]*Future, error) {
	subs, err := c.submissions(tasks)
	for i := 0; err == nil && i < len(subs); i++ {
		err = c.writeAhead(ctx, &subs[i])
	}
	if err != nil {
		return nil, err
	}
	generation := c.registry.beginSubmit()
	answers, err := c.cluster.Submit(ctx, subs)
	handles, notified := make([]*Future, len(answers)), make([]*Future, 0, len(answers))
	for i := range answers {
		handles[i] = c.handle(answers[i])
		if !tasks[i].NoNotify && !answers[i].Existed {
			notified = append(notified, handles[i])
		}
	}
	c.listener.fetch(c.registry.endSubmit(generation, notified))
	return handles, err
}

// submissions turns tasks into what the model takes, and prepares for their ends.
func (c *Client) submissions(tasks []Task) ([]fdbmodel.Submission, error) {
	subs, quiet := make([]fdbmodel.Submission, len(tasks)), true
	for i := range tasks {
		var err error
		if subs[i], err = c.submission(&tasks[i]); err != nil {
			if len(tasks) > 1 {
				err = fmt.Errorf("future %d of %d: %w", i+1, len(tasks), err)
			}
			return nil, err
		}
		quiet = quiet && tasks[i].NoNotify
	}
	return subs, c.prepare(quiet)
}

// writeAhead writes arguments that are too large for the submit itself, under the
// id that the future will have. Without that future they are swept.
func (c *Client) writeAhead(ctx context.Context, s *fdbmodel.Submission) error {
	if len(s.Args) <= layout.MaxArgs {
		return nil
	}
	switch {
	case !s.ID.IsZero():
	case s.Key != "":
		s.ID = layout.KeyedID(c.cluster.Name(), s.Key)
	default:
		ids, err := c.cluster.DrawIDs(1)
		if err != nil {
			return err
		}
		s.ID = ids[0]
	}
	ref, err := c.cluster.PutArgs(ctx, s.ID, s.Args)
	s.Args, s.Spec.ArgsRef = nil, &ref
	return err
}

// prepare opens the mailbox that notices go to, unless none are wanted.
func (c *Client) prepare(quiet bool) error {
	if quiet {
		return c.usable()
	}
	return c.listen()
}

func (c *Client) handle(s fdbmodel.Submitted) *Future {
	return &Future{client: c, id: s.ID, existed: s.Existed}
}

// Submission is what SubmitTx put into a transaction.
type Submission struct {
	// Futures are the handles, in the order of the tasks. Await them after the
	// commit: before it there is no such future.
	Futures []*Future

	client  *Client
	answers []fdbmodel.Submitted
}

// SubmitTx makes futures in a transaction of the caller's, together with the
// caller's own writes: they exist if it commits. Arguments are at most 16 KiB
// each. It returns what Submit returns, and ErrTooLarge. After the commit the
// caller calls Committed.
//
// Within kv.Transact it is called in each run, and draws new ids in each. So
// that a run with an unknown result and its repetition make the same futures,
// give the tasks IDs or Keys.
func (c *Client) SubmitTx(ctx context.Context, tx kv.Tx, tasks []Task) (*Submission, error) {
	subs, err := c.submissions(tasks)
	if err != nil {
		return nil, err
	}
	s := &Submission{client: c, Futures: make([]*Future, len(tasks))}
	if len(tasks) == 0 {
		return s, nil
	}
	if s.answers, err = c.cluster.SubmitTx(ctx, tx, subs); err != nil {
		return nil, err
	}
	for i := range s.answers {
		s.Futures[i] = c.handle(s.answers[i])
	}
	return s, nil
}

// Committed wakes idle workers, given the version of the transaction's commit.
// It is a hint: without it they find the futures within their poll interval.
func (s *Submission) Committed(ctx context.Context, version kv.Version) {
	s.client.cluster.Wake(ctx, version, s.answers)
}
