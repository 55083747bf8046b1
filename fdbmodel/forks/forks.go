// Package forks makes new futures from those that are over, with the steps that these have
// recorded before some step.
package forks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/fork"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// Why a future is not forked. Nothing was changed.
var (
	// ErrUnforkable is returned for a future that no worker ran by itself: a promise, a value that
	// was put, an item of a batch, a bundle or a member of one.
	ErrUnforkable = errors.New("the future can't be forked")
	// ErrNoStep is returned for a step that the future has not recorded.
	ErrNoStep = errors.New("the future has not recorded this step")
	// ErrNothingFailed is returned for a fork from the step that failed, where none did, or where no
	// step before it is recorded, so that all would run again.
	ErrNothingFailed = errors.New("there is no step that failed")
	// ErrAmbiguous is returned for failed or start where a step has that name.
	ErrAmbiguous = errors.New("a step has that name too")
	// ErrForked is returned where the forks of this name have one of the future that went on
	// elsewhere, or was given other values.
	ErrForked = errors.New("it was forked otherwise under this name")
)

// Limits of forks.
const (
	// MaxBytes is the most that the records of the steps of a fork take, in bytes. Values above
	// steps.MaxInline don't count.
	MaxBytes = 8_000_000
	// MaxName is the maximum length of the name of forks that are made together, in bytes.
	MaxName = 64
	// MaxSet is the maximum number of values that a fork is given.
	MaxSet = 100

	atOnce      = 50      // forks of one transaction
	bytesAtOnce = 500_000 // of the records of one transaction, unless one fork takes more
)

// Forks makes the forks of one cluster. Its methods may be called from many goroutines.
type Forks struct {
	cluster *fdbmodel.Cluster
	keys    layout.Keyspace
}

// Of returns the forks of a cluster.
func Of(c *fdbmodel.Cluster) *Forks { return &Forks{cluster: c, keys: c.Keys()} }

// Request says what to fork, and how.
type Request struct {
	Source layout.ID
	// From says where the fork goes on. Defaults to the step that failed.
	From Point
	// Set are values of steps in place of those that were recorded, or beside them; at most MaxSet.
	Set []Value
	// Name makes the request repeatable: the id of the fork follows from name and source, so that
	// a repeated one finds the fork. It is the label of the fork, too. Defaults to none.
	Name string
	// ID is that of the fork. Defaults to the one that follows from Name, or else to one that is drawn.
	ID layout.ID
}

// Value is what a step is said to have returned.
type Value struct {
	Step string
	JSON []byte // at most layout.MaxPut bytes
}

// Made is the answer to a Request.
type Made struct {
	Source, ID layout.ID
	// Fork is the record of the fork, and State its state.
	Fork  layout.Fork
	State layout.State
	// Existed is set if an earlier request with the same name and source has made it.
	Existed bool
	// Err says why the future is not forked: ErrNotFound, ErrTransition for one that is not over, an
	// error of this package, ErrIDInUse, ErrTooLarge, or an error of Submit. Nothing was made then.
	Err error
}

// IDOf returns the id of the fork of a future under a name.
func (f *Forks) IDOf(name string, source layout.ID) layout.ID {
	return layout.KeyedID(f.cluster.Name(), "\x00fork\x00"+name+"\x00"+source.String())
}

// Make makes forks, in transactions of some each, and returns once they are durable. Each one is
// a future of its own: it has the function, as its name is resolved today, the arguments, inputs, queue, lane,
// requirements, retries, tags and label of its source, but no unique name, key, schedule, session or
// trace; of its time limits those that are not over. It exists together with its steps. A source
// must be over, and is not changed; it may be removed afterwards.
//
// An error of one request is in its answer. Any other error is returned with the answers before
// it. An unknown commit is retried, and recognised by the id of each fork.
func (f *Forks) Make(ctx context.Context, requests []Request) (made []Made, err error) {
	return f.each(ctx, requests, false)
}

// Preview returns what Make would, and makes nothing: the forks that don't exist have a state of 0.
func (f *Forks) Preview(ctx context.Context, requests []Request) (made []Made, err error) {
	return f.each(ctx, requests, true)
}

func (f *Forks) each(ctx context.Context, requests []Request, preview bool) (made []Made, err error) {
	requests, err = f.identified(requests)
	if err != nil {
		return nil, err
	}
	for len(requests) > 0 {
		part := run{forks: f, requests: requests[:min(len(requests), atOnce)], preview: preview, refused: map[int]error{},
			tried: map[layout.ID]bool{}, stored: map[place]int{}}
		done, err := part.commit(ctx)
		if err != nil {
			return made, err
		}
		made, requests = append(made, done...), requests[len(done):]
	}
	return made, nil
}

// identified returns requests that have ids.
func (f *Forks) identified(requests []Request) ([]Request, error) {
	all := make([]Request, len(requests))
	for i := range requests {
		r := &all[i]
		if *r = requests[i]; !r.ID.IsZero() {
			continue
		}
		if r.Name != "" {
			r.ID = f.IDOf(r.Name, r.Source)
			continue
		}
		drawn, err := f.cluster.DrawIDs(1)
		if err != nil {
			return nil, err
		}
		r.ID = drawn[0]
	}
	return all, nil
}

// CheckName returns ErrBadName unless forks may have the name: 1 to 64 bytes of printable characters.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName || !layout.IsPrintableLine(name) {
		return fmt.Errorf("%w: name %.80q of forks: use 1 to %d bytes of printable characters", layout.ErrBadName, name,
			MaxName)
	}
	return nil
}

// isOver returns an error unless a future may be forked.
func isOver(row *layout.Row) error {
	spec, what := row.Spec, ""
	switch {
	case spec.IsPromise():
		what = "a promise: make another one"
	case spec.IsPut():
		what = "a value that was put: put it again"
	case spec.Held():
		what = fmt.Sprintf("an item of batch %.80s: retry it there", spec.Owner)
	case spec.Bundle || spec.Member:
		what = "of a bundle, which has no steps: retry it, or submit it again"
	}
	if what != "" {
		return fmt.Errorf("%w: %s is %s", ErrUnforkable, row.ID, what)
	}
	if s := row.State(); !s.Terminal() {
		return fmt.Errorf("future %s is %s: forking one that is not over is %w; cancel it first", row.ID, s,
			fdbmodel.ErrTransition)
	}
	return nil
}

// submission returns what a fork is submitted as. Large arguments and many inputs are beside its spec.
func (f *Forks) submission(ctx context.Context, tx kv.Reader, source *layout.Row, r *Request, of *layout.Fork,
) (s fdbmodel.Submission, err error) {
	spec := *source.Spec
	s.Args, s.Inputs = spec.Args, layout.UnpackIDs(spec.Inputs)
	if spec.ArgsKey {
		if s.Args, err = tx.Get(f.keys.Args(source.ID)).Wait(ctx); err == nil && s.Args == nil {
			err = fmt.Errorf("%w: arguments of future %s", fdbmodel.ErrNotFound, source.ID)
		}
	}
	spec.Fork, spec.Unique, spec.Schedule, spec.ScheduledAt, spec.Session, spec.Trace = of, nil, "", 0, "", nil
	now := layout.Millis(f.cluster.Now())
	for _, limit := range []*int64{&spec.ExpiresAt, &spec.Deadline} {
		if *limit <= now {
			*limit = 0
		}
	}
	if r.Name != "" {
		spec.Label = r.Name
	}
	spec.FollowTrace(ctx)
	s.ID, s.Spec = r.ID, spec
	return s, err
}

// Listed is a fork of a future.
type Listed struct {
	ID          layout.ID
	Fork        layout.Fork
	State       layout.State
	SubmittedAt time.Time
}

// MaxList is the maximum number of forks that one List returns.
const MaxList = 1000

// List returns up to limit forks of a future behind one of them, in the order of their ids, and the
// last one if there are more. It returns ErrNotFound. Forks that were removed, or can't be read, are left out.
func (f *Forks) List(ctx context.Context, source, behind layout.ID, limit int,
) (all []Listed, last layout.ID, err error) {
	if limit <= 0 || limit > MaxList {
		limit = MaxList
	}
	keys := fork.Keys(f.keys)
	err = f.cluster.View(ctx, func(attempt kv.Attempt) error {
		tx := attempt.Snapshot()
		all, last = nil, layout.ID{}
		row, err := read.Existing(ctx, tx, f.keys, source)
		if err != nil || !row.Forks {
			return err
		}
		r := kv.Prefix(keys.Of(source))
		if !behind.IsZero() {
			r.Begin = kv.After(keys.Fork(source, behind))
		}
		page, err := tx.GetRange(r, kv.RangeOptions{Limit: limit + 1}).Wait(ctx)
		if err != nil {
			return err
		}
		items := page.Items[:min(limit, len(page.Items))]
		asked := make([]read.Pending, len(items))
		for i, item := range items {
			id, err := keys.ID(item.Key, source)
			if err != nil {
				return fmt.Errorf("fork of future %s: %w: %w", source, layout.ErrBadRecord, err)
			}
			asked[i] = read.Record(tx, f.keys, id)
		}
		for i := range asked {
			row, _, err := asked[i].Wait(ctx)
			if err != nil && !layout.IsUnreadable(err) {
				return err
			}
			if err == nil && row.Spec != nil && row.Spec.Fork != nil {
				all = append(all, Listed{row.ID, *row.Spec.Fork, row.State(), time.UnixMilli(row.Spec.SubmittedAt)})
			}
			if len(page.Items) > limit {
				last = row.ID
			}
		}
		return nil
	})
	return all, last, err
}
