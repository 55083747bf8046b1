package top

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

const (
	// readTime bounds one reading.
	readTime = 10 * time.Second
	// slowEvery is how often at most is read what costs more, and changes with heartbeats.
	slowEvery = 10 * time.Second
	// slowRest is how long that rests after a reading, in times of what it took.
	slowRest = 10

	maxFailed  = 5   // that failed lately
	maxFutures = 100 // of a list
	maxJobLogs = 100
)

// Query is what is read beside what all views show.
type Query struct {
	// List has the newest futures read, those in State unless that is 0.
	List  bool
	State layout.State
}

// Reader reads snapshots of a cluster. Use one reading at a time.
type Reader struct {
	client *futures.Client
	slow   slowly
}

// slowly is what is read less often than the rest.
type slowly struct {
	functions []httpapi.ActivityFunction
	logs      []httpapi.JobLog
	again     time.Time
}

// NewReader returns a reader.
func NewReader(c *futures.Client) *Reader { return &Reader{client: c} }

// Read returns what a cluster does. It reads the counters, workers, pauses, kinds of lanes, five futures
// that failed and what q asks for; at most every 10 s, and for up to a tenth of the time, also
// the last hour of functions and 100 logs of jobs. It fails after 10 s without an answer.
func (r *Reader) Read(ctx context.Context, q Query) (*Snapshot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, errSlow)
	defer cancel()
	c := r.client.Cluster()
	s := &Snapshot{Cluster: c.Name(), At: c.Now().UTC().Truncate(time.Millisecond)}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		counts, err := c.Counts(ctx)
		s.count(counts)
		return err
	})
	all.Go(func() error {
		members, err := c.Workers(ctx)
		s.Workers = make([]httpapi.Worker, len(members))
		for i := range members {
			s.Workers[i] = httpapi.WorkerOf(&members[i])
		}
		sortWorkers(s.Workers)
		return err
	})
	all.Go(func() error {
		list, err := r.client.Pauses(ctx)
		for i := range list {
			s.pauses = append(s.pauses, httpapi.PauseOf(&list[i]))
		}
		return err
	})
	all.Go(func() (err error) {
		s.kinds, err = r.client.LaneKinds(ctx)
		return err
	})
	all.Go(func() (err error) {
		s.Failed, err = r.list(ctx, layout.Failed, maxFailed)
		return err
	})
	if q.List {
		all.Go(func() (err error) {
			s.futures, err = r.list(ctx, q.State, maxFutures)
			return err
		})
	}
	all.Go(func() error { return r.readSlowly(ctx) })
	if err := all.Wait(); err != nil {
		return nil, slowCause(ctx, err)
	}
	s.Functions, s.logs = r.slow.functions, r.slow.logs
	s.Wrong = wrong(s)
	return s, nil
}

// list returns the newest futures that are no items of batches.
func (r *Reader) list(ctx context.Context, state layout.State, limit int) ([]httpapi.Future, error) {
	filter := inspect.Filter{State: state, Newest: true, LeftOut: new(int)}
	rows, _, err := inspect.List(ctx, r.client.Cluster(), filter, nil, limit)
	views := make([]httpapi.Future, len(rows))
	for i := range rows {
		views[i] = httpapi.ListView(&rows[i])
	}
	return views, err
}

// readSlowly reads what is due.
func (r *Reader) readSlowly(ctx context.Context) error {
	start := time.Now()
	if start.Before(r.slow.again) {
		return nil
	}
	c := r.client.Cluster()
	hour, err := httpapi.ReadActivity(ctx, r.client, time.Hour, time.Minute)
	if err != nil {
		return err
	}
	list, err := joblog.Of(c).Page(ctx, "", maxJobLogs)
	if err != nil {
		return err
	}
	logs := make([]httpapi.JobLog, len(list))
	for i := range list {
		logs[i] = httpapi.JobLogOf(&list[i])
	}
	slices.SortStableFunc(hour.Functions, func(a, b httpapi.ActivityFunction) int {
		return cmp.Or(cmp.Compare(b.FailedAttempts, a.FailedAttempts), cmp.Compare(b.Succeeded, a.Succeeded))
	})
	end := time.Now()
	r.slow = slowly{hour.Functions, logs, end.Add(max(slowEvery, slowRest*end.Sub(start)))}
	return nil
}

// Future returns what there is to say of a future, line by line: where it is and why, and its
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
	return describe(&e, &v), nil
}

// Notes passes the lines that are written to it on, without waiting: it drops those that are not
// read in time. The zero value drops all.
type Notes struct {
	mu   sync.Mutex
	rest []byte
	to   chan string
}

// NewNotes returns notes.
func NewNotes() *Notes { return &Notes{to: make(chan string, 16)} }

// Write implements io.Writer.
func (n *Notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rest = append(n.rest, p...)
	for {
		line, rest, whole := cutLine(n.rest)
		if !whole {
			return len(p), nil
		}
		n.rest = rest
		select {
		case n.to <- line:
		default:
		}
	}
}
