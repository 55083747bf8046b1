package futures

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Submit creates a future and returns once it is durable. Concurrent calls
// share transactions; an invalid task fails only its own call. It returns
// ErrBadSpec, ErrBadName, ErrTooLarge, ErrIDInUse, ErrUnfit, a NotUniqueError, a
// LimitError if the cluster has no room, ErrLaneFull, and ErrNotFound for an unknown
// module or alias.
//
// An unknown commit is resolved: the future is created once. If ctx ends during
// the transaction, the error is ErrUnknownResult joined with ctx's: the future
// may exist. Give the task a Key to be able to submit it again.
func (c *Client) Submit(ctx context.Context, t Task) (*Future, error) {
	if c.options.Tracer == nil {
		return c.submit(ctx, t)
	}
	made, err := c.traced(ctx, []Task{t}, func(ctx context.Context) ([]*Future, error) {
		f, err := c.submit(ctx, t)
		if err != nil {
			return nil, err
		}
		return []*Future{f}, nil
	})
	if err != nil {
		return nil, err
	}
	return made[0], nil
}

func (c *Client) submit(ctx context.Context, t Task) (*Future, error) {
	if err := c.prepare(t.NoNotify); err != nil {
		return nil, err
	}
	s, err := c.submission(ctx, &t)
	if err == nil {
		err = c.requireFit(ctx, []Task{t}, []fdbmodel.Submission{s})
	}
	if err == nil {
		err = c.ensureCalls(ctx, t)
	}
	var done func()
	if err == nil {
		done, err = c.admitAll(ctx, []fdbmodel.Submission{s}, t.WaitForRoom)
	}
	if err != nil {
		return nil, err
	}
	defer done()
	if err := c.writeAhead(ctx, &s); err != nil {
		return nil, err
	}
	f, err := c.commits.submit(ctx, s)
	if c.forgetActors(err, t) {
		if err = c.ensureCalls(ctx, t); err == nil {
			f, err = c.commits.submit(ctx, s)
		}
	}
	return f, err
}

// SubmitMany creates futures, in transactions of up to 100 each, one after the
// other. It returns the errors of Submit; except for ErrIDInUse and a NotUniqueError, a
// mistake in one of the tasks is found before any future is created, and so is a limit
// that has no room for all of them, unless one of the tasks waits for room. With an error it
// returns the handles of the futures that certainly exist: those of the first
// tasks.
func (c *Client) SubmitMany(ctx context.Context, tasks []Task) ([]*Future, error) {
	return c.traced(ctx, tasks, func(ctx context.Context) ([]*Future, error) { return c.submitMany(ctx, tasks) })
}

func (c *Client) submitMany(ctx context.Context, tasks []Task) ([]*Future, error) {
	subs, err := c.submissions(ctx, tasks)
	if err == nil {
		err = c.requireFit(ctx, tasks, subs)
	}
	if err == nil {
		err = c.ensureCalls(ctx, tasks...)
	}
	for i := 0; err == nil && i < len(subs); i++ {
		err = c.writeAhead(ctx, &subs[i])
	}
	if err != nil {
		return nil, err
	}
	made, err := c.commitAdmitted(ctx, subs, waitsForRoom(tasks))
	if len(made) == 0 && c.forgetActors(err, tasks...) {
		if err = c.ensureCalls(ctx, tasks...); err == nil {
			made, err = c.commitAdmitted(ctx, subs, waitsForRoom(tasks))
		}
	}
	return made, err
}

// commit creates futures whose ids are already known: notices of their ends may
// arrive before it returns. With an error it returns the first futures, which
// certainly exist.
func (c *Client) commit(ctx context.Context, subs []fdbmodel.Submission) ([]*Future, error) {
	if err := c.identify(subs); err != nil {
		return nil, err
	}
	handles := make([]*Future, len(subs))
	for i := range subs {
		handles[i] = &Future{client: c, id: subs[i].ID}
	}
	c.registry.expect(handles, subs)
	answers, err := c.cluster.Submit(ctx, subs)
	for i := range answers {
		handles[i].answered(&answers[i])
		handles[i].lane = subs[i].Spec.Lane
	}
	c.registry.confirm(handles, answers, c.listener.wake)
	for i := range answers {
		handles[i].id = answers[i].ID // another one's, if that has its unique key
	}
	return handles[:len(answers)], err
}

// identify gives submissions their ids. Random ids share a shard with their
// neighbours, so that one transaction touches one place in the store.
func (c *Client) identify(subs []fdbmodel.Submission) (err error) {
	left := 0
	for i := range subs {
		if subs[i].ID.IsZero() && subs[i].Key != "" {
			subs[i].ID = layout.KeyedID(c.cluster.Name(), subs[i].Key)
		}
		if subs[i].ID.IsZero() {
			left++
		}
	}
	var ids []ID
	for i := range subs {
		if !subs[i].ID.IsZero() {
			continue
		}
		if len(ids) == 0 {
			if ids, err = c.cluster.DrawIDs(min(left, layout.MaxSubmit)); err != nil {
				return err
			}
		}
		subs[i].ID, subs[i].Drawn, ids = ids[0], true, ids[1:]
		left--
	}
	return nil
}

// submissions turns tasks into submissions of the model, and prepares for their
// ends.
func (c *Client) submissions(ctx context.Context, tasks []Task) ([]fdbmodel.Submission, error) {
	subs, quiet := make([]fdbmodel.Submission, len(tasks)), true
	for i := range tasks {
		var err error
		if subs[i], err = c.submission(ctx, &tasks[i]); err != nil {
			if len(tasks) > 1 {
				err = fmt.Errorf("future %d of %d: %w", i+1, len(tasks), err)
			}
			return nil, err
		}
		quiet = quiet && tasks[i].NoNotify
	}
	return subs, c.prepare(quiet)
}

// writeAhead writes arguments that are too large for the submit's transaction,
// under the id that the future will have. The janitor sweeps them if the future
// is never created.
func (c *Client) writeAhead(ctx context.Context, s *fdbmodel.Submission) error {
	if len(s.Args) <= layout.MaxArgs {
		return nil
	}
	one := []fdbmodel.Submission{*s}
	if err := c.identify(one); err != nil {
		return err
	}
	*s = one[0]
	ref, err := c.cluster.PutArgs(ctx, s.ID, s.Args)
	s.Args, s.Spec.ArgsRef = nil, &ref
	return err
}

// detach gives a submission memory of its own.
func detach(s *fdbmodel.Submission) {
	s.Args, s.Inputs = bytes.Clone(s.Args), slices.Clone(s.Inputs)
	spec := &s.Spec
	spec.Argv, spec.Env, spec.Trace = slices.Clone(spec.Argv), maps.Clone(spec.Env), maps.Clone(spec.Trace)
	spec.Tags, spec.Requirements.Labels = slices.Clone(spec.Tags), maps.Clone(spec.Requirements.Labels)
	if s.Unique != nil {
		unique := *s.Unique
		s.Unique = &unique
	}
	if spec.Growth != nil {
		growth := *spec.Growth
		spec.Growth = &growth
	}
}

// prepare opens the mailbox that notices go to, unless none are wanted.
func (c *Client) prepare(quiet bool) error {
	if quiet {
		return c.usable()
	}
	return c.listen()
}

// TxFutures are the futures that SubmitTx added to a transaction.
type TxFutures struct {
	// Futures are the handles, in the order of the tasks. Await them after the
	// commit: before it they do not exist.
	Futures []*Future

	client  *Client
	answers []fdbmodel.Submitted
	actors  []string // the types of them whose kinds of lanes exist once they are committed
	done    func()   // says that they are committed, or nil
}

// SubmitTx creates futures in a transaction of the caller's, together with the
// caller's own writes: they exist if it commits. Arguments are at most 16 KiB
// each. It returns the errors of Submit, and ErrTooLarge for larger arguments. A transaction in which
// tasks were refused that look well by themselves (a full lane, a name that is taken) can't commit any more.
// After the commit the caller calls Committed.
//
// Within kv.Transact it is called in each run, and draws new ids in each. Give
// the tasks IDs or Keys, so that a retry after an unknown result submits the
// same futures.
func (c *Client) SubmitTx(ctx context.Context, tx kv.Tx, tasks []Task) (s *TxFutures, err error) {
	_, err = c.traced(ctx, tasks, func(ctx context.Context) ([]*Future, error) {
		if s, err = c.submitTx(ctx, tx, tasks); err != nil {
			return nil, err
		}
		return s.Futures, nil
	})
	return s, err
}

func (c *Client) submitTx(ctx context.Context, tx kv.Tx, tasks []Task) (*TxFutures, error) {
	subs, err := c.submissions(ctx, tasks)
	if err == nil {
		err = c.requireFit(ctx, tasks, subs)
	}
	if err != nil {
		return nil, err
	}
	s := &TxFutures{client: c, Futures: make([]*Future, len(tasks))}
	if len(tasks) == 0 {
		return s, nil
	}
	if s.actors, err = c.ensureCallsTx(ctx, tx, tasks); err != nil {
		return nil, err
	}
	if s.done, err = c.admitAll(ctx, subs, waitsForRoom(tasks)); err != nil {
		return nil, err
	}
	if s.answers, err = c.cluster.SubmitTx(ctx, tx, subs); err != nil {
		c.forgetActors(err, tasks...)
		s.done()
		return nil, err
	}
	for i := range s.answers {
		s.Futures[i] = &Future{client: c, id: s.answers[i].ID}
		s.Futures[i].answered(&s.answers[i])
		s.Futures[i].lane = subs[i].Spec.Lane
	}
	return s, nil
}

// Committed wakes idle workers, given the version of the transaction's commit.
// It is a hint: without it they find the futures within their poll interval.
func (s *TxFutures) Committed(ctx context.Context, version kv.Version) {
	if s.done != nil {
		s.done()
	}
	for _, name := range s.actors {
		now := s.client.cluster.Now()
		s.client.actors.LoadOrStore(name, kindFound{now, now})
	}
	s.client.cluster.Wake(ctx, version, s.answers)
}
