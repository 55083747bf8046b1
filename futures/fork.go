package futures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Why a future is not forked. Nothing was made.
var (
	// ErrUnforkable is returned for a promise, a value that was put, an item of a batch, and what runs in bundles.
	ErrUnforkable = forks.ErrUnforkable
	// ErrNoStep is returned for a step that the future has not recorded.
	ErrNoStep = forks.ErrNoStep
	// ErrNothingFailed is returned for a fork from the step that failed where none did, or where no step before
	// it is recorded, so that all would run again.
	ErrNothingFailed = forks.ErrNothingFailed
	// ErrAmbiguousStep is returned for failed or start where a step has that name.
	ErrAmbiguousStep = forks.ErrAmbiguous
	// ErrForked is returned where a future was forked under the same name from elsewhere, or with other values.
	ErrForked = forks.ErrForked
)

// ForkPoint says where a fork goes on. The zero value is the step that failed.
type ForkPoint = forks.Point

// ForkFromStep has a fork go on at a recorded step: it, and those recorded after it, run again.
func ForkFromStep(name string) ForkPoint { return forks.FromStep(name) }

// ForkFromFailed has a fork go on behind all recorded steps, with what failed: a step that failed is
// not recorded. It is for futures that have failed behind at least one step.
func ForkFromFailed() ForkPoint { return forks.FromFailed() }

// ForkFromStart has all of it run again.
func ForkFromStart() ForkPoint { return forks.FromStart() }

// ParseForkPoint reads failed, start, or the name of a step; step:NAME is the step of any name.
func ParseForkPoint(text string) (ForkPoint, error) { return forks.ParsePoint(text) }

// ForkOptions say how futures are forked. The zero value goes on from the step that failed.
type ForkOptions struct {
	// From is where a fork goes on.
	From ForkPoint
	// Set has values of steps, which are encoded as JSON: in place of recorded ones, or of steps that have not
	// run, such as the one that failed. The function decodes them from JSON as it decodes any value: a number
	// with a fraction is no integer. At most 100. A sleep can't be set.
	Set map[string]any
	// Name makes a repeated fork of the same future under this name find the first one. It is the label of
	// the forks. At most 64 bytes. Defaults to none, for ForkMany it is required.
	Name string
	// WaitForRoom waits while a limit of the cluster is exceeded; see Task.WaitForRoom.
	WaitForRoom bool
}

// Forked is a fork of a future.
type Forked struct {
	Source ID `json:"source" format:"uuid"`
	ID     ID `json:"id" format:"uuid"`
	// From says where it goes on, as a part of a sentence. Step is the step that was named, if one was, and
	// After the last step that was copied.
	From  string `json:"from"`
	Step  string `json:"step,omitempty"`
	After string `json:"after,omitempty"`
	// Copied is how many recorded steps it began with, Set how many of its steps were given values.
	Copied int    `json:"copied_steps"`
	Set    int    `json:"set_steps,omitempty"`
	Name   string `json:"name,omitempty"`
	// State is empty in a preview, for one that does not exist.
	State string `json:"state,omitempty"`
	// Existed is set if it was made before, under the same name.
	Existed     bool      `json:"existed,omitempty"`
	SubmittedAt time.Time `json:"submitted_at,omitzero"`
}

func forkedOf(m *forks.Made) Forked {
	f := forkedAs(m.Source, m.ID, &m.Fork)
	if f.Existed = m.Existed; m.State != 0 {
		f.State = m.State.String()
	}
	return f
}

// ForkOf returns what a fork was made from, for the record of one; nil for other futures.
func ForkOf(row *layout.Row) *Forked {
	if row.Spec.Fork == nil {
		return nil
	}
	f := forkedAs(row.Spec.Fork.From, row.ID, row.Spec.Fork)
	return &f
}

func forkedAs(source, id ID, of *layout.Fork) Forked {
	return Forked{Source: source, ID: id, From: forks.Text(of), Step: of.Step, After: of.After,
		Copied: of.Copied, Set: of.Set, Name: of.Name}
}

// Fork makes a future from one that is over: with the same function, on today's code, arguments, inputs,
// queue, lane, requirements, retries, label and tags, and with the steps that were recorded before a point,
// so that these do not run again. It has an id of its own and no unique name, key, schedule or session; a
// deadline and a time when it expires that are over are dropped. The source stays as it is, and the fork
// does not need it.
//
// It returns ErrNotFound, ErrTransition for a future that is not over, ErrUnforkable, ErrNoStep,
// ErrNothingFailed, ErrAmbiguousStep, ErrForked, ErrBadSpec and ErrBadName for what Set or Name can't be,
// ErrTooLarge if the records of the steps take more than 8 MB beside values above 4 KiB, a LimitError, and
// the errors of Submit. The fork exists together with its steps, or not at all. An unknown commit is
// resolved; if ctx ends meanwhile, the fork may exist: repeat the call with the same Name.
func (c *Client) Fork(ctx context.Context, id ID, o ForkOptions) (Forked, error) {
	request, err := c.forkRequest(&o)
	if err != nil {
		return Forked{}, err
	}
	request.Source = id
	made, err := c.admitForks(ctx, []forks.Request{request}, o.WaitForRoom)
	if err == nil {
		err = made[0].Err
	}
	if err != nil {
		return Forked{}, err
	}
	return forkedOf(&made[0]), nil
}

// admitForks makes forks once the cluster has room for them. Those that were made before under their name need none.
func (c *Client) admitForks(ctx context.Context, requests []forks.Request, wait bool) ([]forks.Made, error) {
	n, named := len(requests), requests[0].Name != ""
	done, err := c.admit(ctx, n, wait && !named)
	if named && errors.Is(err, ErrLimit) {
		there, failed := forks.Of(c.cluster).Preview(ctx, requests)
		if failed != nil {
			return nil, failed
		}
		n = 0
		for i := range there {
			if there[i].Err == nil && !there[i].Existed {
				n++
			}
		}
		if n == 0 {
			return there, nil
		}
		if wait || n < len(requests) {
			done, err = c.admit(ctx, n, wait)
		}
	}
	if err != nil {
		return nil, err
	}
	defer done()
	return c.makeForks(ctx, requests)
}

// makeForks makes forks as the tracer wants, which learns their functions from no task: it gets empty ones.
func (c *Client) makeForks(ctx context.Context, requests []forks.Request) (made []forks.Made, err error) {
	_, _ = c.traced(ctx, make([]Task, len(requests)), func(ctx context.Context) (all []*Future, told error) {
		made, err = forks.Of(c.cluster).Make(ctx, requests)
		for i := range made {
			if told = errors.Join(told, made[i].Err); made[i].Err == nil {
				all = append(all, c.Future(made[i].ID))
			}
		}
		return all, errors.Join(err, told)
	})
	return made, err
}

// forkRequest returns what all requests with these options have in common.
func (c *Client) forkRequest(o *ForkOptions) (r forks.Request, err error) {
	if err := c.usable(); err != nil {
		return r, err
	}
	if o.Name != "" {
		if err := forks.CheckName(o.Name); err != nil {
			return r, err
		}
	}
	r = forks.Request{From: o.From, Name: o.Name}
	for _, step := range slices.Sorted(maps.Keys(o.Set)) {
		value, err := json.Marshal(o.Set[step])
		if err != nil {
			return r, fmt.Errorf("%w: the value for step %.80s: %w", ErrBadSpec, step, err)
		}
		r.Set = append(r.Set, forks.Value{Step: step, JSON: value})
	}
	return r, nil
}

// Forks returns up to limit forks of a future, at most 1,000, after one of them, in the order of their
// ids; last is where more begin, the zero ID at the end. It returns ErrNotFound.
func (c *Client) Forks(ctx context.Context, id, after ID, limit int) (all []Forked, last ID, err error) {
	if err := c.usable(); err != nil {
		return nil, last, err
	}
	found, last, err := forks.Of(c.cluster).List(ctx, id, after, limit)
	all = make([]Forked, len(found))
	for i := range found {
		f := &found[i]
		all[i] = forkedAs(id, f.ID, &f.Fork)
		all[i].State, all[i].SubmittedAt = f.State.String(), f.SubmittedAt.UTC()
	}
	return all, last, err
}

// ForkQuery says which futures ForkMany forks, and how far it goes.
type ForkQuery struct {
	// Filter finds them. Its State defaults to Failed, and must be one in which futures are over.
	Filter Filter
	// Limit is how many futures are forked at most, with those that were before under this name: a repeated
	// call with another limit goes on. Defaults to no limit.
	Limit int
	// Preview makes nothing.
	Preview bool
	// Cursor goes on where an earlier answer ended. Until has ForkMany return after that time, by the clock of the
	// cluster, with a cursor.
	Cursor []byte
	Until  time.Time
	// Progress is called with what was done so far. Defaults to nil.
	Progress func(*ForkedMany)
}

// maxExamples is how many examples an answer has of each kind.
const maxExamples = 10

// ForkedMany is what became of many futures.
type ForkedMany struct {
	// Name is that of the forks.
	Name string `json:"name"`
	// Matched is how many were found that are, or can be, forked: Forked now, or in a preview could be, and
	// Existed before.
	Matched int `json:"matched"`
	Forked  int `json:"forked"`
	Existed int `json:"existed"`
	// Refused were found and can't be forked, or not from there. OfBatches, Cancelled and OfName were left
	// alone: items of batches, futures that were cancelled, and forks of this name.
	Refused   int `json:"refused"`
	OfBatches int `json:"of_batches"`
	Cancelled int `json:"cancelled"`
	OfName    int `json:"of_name"`
	// First are the first of Forked, and Refusals the first that were refused.
	First    []Forked      `json:"first"`
	Refusals []ForkRefusal `json:"refusals,omitempty"`
	// Cursor is set if more is left. After an error it is where the futures begin of which some are not forked yet.
	Cursor []byte `json:"-"`
}

// ForkRefusal says why a future was not forked.
type ForkRefusal struct {
	Source ID     `json:"source" format:"uuid"`
	Reason string `json:"reason"`
}

// ForkMany is Fork for all futures that a filter finds, apart from items of batches, futures that were
// cancelled, and forks of the same name. Futures that can't be forked, or not from there, are counted as
// refused, with reasons. Under the name of the options each future is forked once: a call that was
// interrupted is repeated, and makes what is missing. Forks are made in transactions of up to 50; with an
// error it returns what was done until then. It returns ErrBadName without a name, ErrBadSpec for a state in which
// futures are not over, and the errors of List and of the store.
func (c *Client) ForkMany(ctx context.Context, q ForkQuery, o ForkOptions) (done ForkedMany, err error) {
	done = ForkedMany{Name: o.Name, First: []Forked{}}
	if err := forks.CheckName(o.Name); err != nil {
		return done, err
	}
	request, err := c.forkRequest(&o)
	if err != nil {
		return done, err
	}
	if q.Filter.State == 0 {
		q.Filter.State = Failed
	}
	if !q.Filter.State.Terminal() {
		return done, fmt.Errorf("%w: futures that are %s are not forked: use realized or failed", ErrBadSpec, q.Filter.State)
	}
	many := manyForks{client: c, query: &q, options: &o, request: request, done: &done}
	for done.Cursor = q.Cursor; ; {
		items, next, err := inspect.Sweep(ctx, c.cluster, q.Filter, done.Cursor, many.wants,
			func(ids []ID) error { return many.make(ctx, ids) })
		done.OfBatches += items
		switch {
		case errors.Is(err, errEnough), err == nil && q.Limit > 0 && done.Matched == q.Limit:
			done.Cursor = nil
			return done, nil
		case err != nil:
			return done, err // what is missing of this page comes after the cursor
		}
		if done.Cursor = next; len(next) == 0 || !q.Until.IsZero() && c.cluster.Now().After(q.Until) {
			return done, nil
		}
	}
}

// manyForks makes the forks of a query.
type manyForks struct {
	client  *Client
	query   *ForkQuery
	options *ForkOptions
	request forks.Request
	done    *ForkedMany
}

// errEnough ends a sweep at the limit of its query.
var errEnough = errors.New("as many as were asked for")

// forksAtOnce is how many forks are asked for between two reports of progress.
const forksAtOnce = 50

func (m *manyForks) wants(row *layout.Row) bool {
	ending := row.Ending()
	switch {
	case row.Spec.Held():
		return row.State() == m.query.Filter.State
	case ending.Cancelled():
		m.done.Cancelled++
		return false
	case row.Spec.Fork != nil && row.Spec.Fork.Name == m.options.Name:
		m.done.OfName++
		return false
	}
	return row.State() == m.query.Filter.State
}

func (m *manyForks) make(ctx context.Context, ids []ID) error {
	for len(ids) > 0 {
		n := min(len(ids), forksAtOnce)
		if m.query.Limit > 0 {
			if n = min(n, m.query.Limit-m.done.Matched); n <= 0 {
				return errEnough
			}
		}
		requests := make([]forks.Request, n)
		for i := range requests {
			requests[i] = m.request
			requests[i].Source = ids[i]
		}
		made, err := m.some(ctx, requests)
		for i := range made {
			m.count(&made[i])
		}
		if m.query.Progress != nil {
			m.query.Progress(m.done)
		}
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

func (m *manyForks) some(ctx context.Context, requests []forks.Request) ([]forks.Made, error) {
	if m.query.Preview {
		return forks.Of(m.client.cluster).Preview(ctx, requests)
	}
	return m.client.admitForks(ctx, requests, m.options.WaitForRoom)
}

func (m *manyForks) count(one *forks.Made) {
	d := m.done
	if one.Err != nil {
		if d.Refused++; len(d.Refusals) < maxExamples {
			d.Refusals = append(d.Refusals, ForkRefusal{one.Source, one.Err.Error()})
		}
		return
	}
	if d.Matched++; one.Existed {
		d.Existed++
		return
	}
	if d.Forked++; len(d.First) < maxExamples {
		d.First = append(d.First, forkedOf(one))
	}
}
