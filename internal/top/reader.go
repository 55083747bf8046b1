package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

const (
	// readTime bounds a reading.
	readTime = 5 * time.Second
	// slowEvery is how often at most is read what costs more and changes with heartbeats, and
	// slowRest for how long that rests, in times of what it took.
	slowEvery = 10 * time.Second
	slowRest  = 10

	maxFailed  = 5   // that failed lately
	maxFutures = 100 // of a list
	maxJobLogs = 100
)

// errSlow ends a reading.
var errSlow = fmt.Errorf("the store did not answer within %v", readTime)

// Query is what is read beside what all views show: the newest futures, of all states if State
// is 0.
type Query struct {
	List  bool
	State layout.State
}

// Reader reads a cluster, one reading at a time.
type Reader struct {
	client *futures.Client

	// What is read less often, and when it is due.
	functions []httpapi.ActivityFunction
	logs      []httpapi.JobLog
	due       time.Time
}

// NewReader returns a reader.
func NewReader(c *futures.Client) *Reader { return &Reader{client: c} }

// Read reads counters, workers, pauses, kinds of lanes, five futures that failed, and what q asks
// for; every 10 s or less often also the last hour of functions, and 100 logs of jobs. It
// fails after 5 s without an answer.
func (r *Reader) Read(ctx context.Context, q Query) (*Snapshot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, errSlow)
	defer cancel()
	c := r.client.Cluster()
	s := &Snapshot{Cluster: c.Name(), At: c.Now().UTC().Truncate(time.Millisecond)}
	var counts layout.Counts
	parts := []func(context.Context) error{
		func(ctx context.Context) (err error) { counts, err = c.Counts(ctx); return err },
		func(ctx context.Context) (err error) { s.pauses, err = r.client.Pauses(ctx); return err },
		func(ctx context.Context) (err error) { s.kinds, err = r.client.LaneKinds(ctx); return err },
		func(ctx context.Context) (err error) {
			s.Failed, err = r.list(ctx, layout.Failed, maxFailed)
			return err
		},
		r.readSlowly,
		func(ctx context.Context) error {
			members, err := c.Workers(ctx)
			s.Workers = viewsOf(members, httpapi.WorkerOf)
			return err
		},
	}
	if q.List {
		parts = append(parts, func(ctx context.Context) (err error) {
			s.futures, err = r.list(ctx, q.State, maxFutures)
			return err
		})
	}
	all, within := errgroup.WithContext(ctx)
	for _, part := range parts {
		all.Go(func() error { return part(within) })
	}
	if err := all.Wait(); err != nil {
		return nil, slowCause(ctx, err)
	}
	s.Functions, s.logs = r.functions, r.logs
	s.sum(counts)
	return s, nil
}

// list returns the newest futures that are no items of batches.
func (r *Reader) list(ctx context.Context, state layout.State, limit int) ([]httpapi.Future, error) {
	filter := inspect.Filter{State: state, Newest: true, LeftOut: new(int)}
	rows, _, err := inspect.List(ctx, r.client.Cluster(), filter, nil, limit)
	return viewsOf(rows, httpapi.ListView), err
}

func (r *Reader) readSlowly(ctx context.Context) error {
	start := time.Now()
	if start.Before(r.due) {
		return nil
	}
	hour, err := httpapi.ReadActivity(ctx, r.client, time.Hour, time.Minute)
	if err != nil {
		return err
	}
	logs, err := joblog.Of(r.client.Cluster()).Page(ctx, "", maxJobLogs)
	if err != nil {
		return err
	}
	slices.SortStableFunc(hour.Functions, func(a, b httpapi.ActivityFunction) int {
		return cmp.Or(cmp.Compare(b.FailedAttempts, a.FailedAttempts), cmp.Compare(b.Succeeded, a.Succeeded))
	})
	r.functions, r.logs = hour.Functions, viewsOf(logs, httpapi.JobLogOf)
	r.due = time.Now().Add(max(slowEvery, slowRest*time.Since(start)))
	return nil
}

// Future returns what there is to say of a future, line by line: why it is where it is, and its
// last error.
func (r *Reader) Future(ctx context.Context, id futures.ID) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, errSlow)
	defer cancel()
	e, err := r.client.Explain(ctx, id)
	if err != nil {
		return nil, slowCause(ctx, err)
	}
	v, err := r.client.Get(ctx, id)
	if err != nil {
		return nil, slowCause(ctx, err)
	}
	lines := []string{
		fmt.Sprintf("%s (%s): %s", e.State, e.Reason, e.Text), "", "function   " + v.Function, "queue      " + v.Queue,
		"submitted  " + v.SubmittedAt.UTC().Format(time.RFC3339),
		fmt.Sprintf("attempt    %d of %d", v.Attempt, v.MaxAttempts),
		"worker     " + cmp.Or(string(v.Worker), "none"),
	}
	if f := v.Failure; f != nil {
		lines = append(lines, "", fmt.Sprintf("last error, of attempt %d at %s: %s%s", f.Attempt,
			f.At.UTC().Format(time.RFC3339), f.Kind, after(f.Message)))
	}
	return lines, nil
}

// slowCause is errSlow for what the time limit of a reading ended, otherwise the error.
func slowCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errSlow) {
		return cause
	}
	return err
}

func viewsOf[T, V any](list []T, view func(*T) V) []V {
	views := make([]V, len(list))
	for i := range list {
		views[i] = view(&list[i])
	}
	return views
}
