package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/futura-run/futura/fdbmodel/activity"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const (
	overviewPath = "/api/v1/overview"
	// rareEvery is how often at most is read what costs more and changes with heartbeats, and
	// rareRest for how long that rests, in times of what it took.
	rareEvery = 10 * time.Second
	rareRest  = 10

	overviewFailed = 5
	overviewLogs   = 100
)

// Overview is what a cluster does, and what is wrong with it.
type Overview struct {
	Cluster string        `json:"cluster"`
	At      time.Time     `json:"at"`
	Total   OverviewQueue `json:"total" doc:"Of all queues"`
	Alive   int           `json:"workers_alive"`
	Dead    int           `json:"workers_dead" doc:"Whose futures are being taken back"`
	Slots   int64         `json:"slots" doc:"Of the workers that are alive"`
	Free    int64         `json:"free_slots"`
	Wrong   []Trouble     `json:"wrong" doc:"What to look at, what is bad first; at most 20"`
	// Queues has 50 queues at most, and (other).
	Queues    []OverviewQueue    `json:"queues" doc:"The busiest first"`
	Functions []ActivityFunction `json:"functions" doc:"Those of the last hour, those that fail first"`
	Failed    []Future           `json:"failed" doc:"The newest five that have failed"`
	Workers   []Worker           `json:"-"` // the dead first

	pauses     []futures.Pause
	kinds      []futures.LaneKind
	logs       []JobLog
	unwritable error // as inspect.Unwritable has it
	badKinds   error // why one can't be read
}

// OverviewQueue is how many futures of a queue are in each state.
type OverviewQueue struct {
	activity.QueueCounts
	OldestReady *time.Time `json:"oldest_ready_at,omitempty" doc:"When the longest waiting ready future was submitted"`
}

// OverviewReader reads overviews of a cluster, one at a time.
type OverviewReader struct {
	client *futures.Client
	oldest *shared[map[string]time.Time]

	// What is read less often, and when it is due.
	functions []ActivityFunction
	logs      []JobLog
	ready     map[string]time.Time // the oldest of each queue
	// unwritable is what inspect.Unwritable says.
	unwritable error
	due        time.Time
}

// NewOverviewReader returns a reader.
func NewOverviewReader(client *futures.Client) *OverviewReader {
	return &OverviewReader{client: client, oldest: &shared[map[string]time.Time]{
		from: func(ctx context.Context) (map[string]time.Time, error) {
			return inspect.OldestReady(ctx, client.Cluster())
		},
	}}
}

// Read reads counters, workers, pauses, kinds of lanes and five futures that failed; every 10 s
// or less often also the last hour of functions, the oldest ready futures, 100 logs of jobs, and whether the store can
// be written, see inspect.Unwritable.
func (r *OverviewReader) Read(ctx context.Context) (*Overview, error) {
	c := r.client.Cluster()
	o := &Overview{Cluster: c.Name(), At: c.Now().UTC().Truncate(time.Millisecond)}
	var counts layout.Counts
	all, within := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{
		func(ctx context.Context) (err error) { counts, err = c.Counts(ctx); return err },
		func(ctx context.Context) (err error) { o.pauses, err = r.client.Pauses(ctx); return err },
		func(ctx context.Context) (err error) {
			if o.kinds, err = r.client.LaneKinds(ctx); layout.IsUnreadable(err) {
				o.badKinds, err = err, nil // it hides nothing else
			}
			return err
		},
		func(ctx context.Context) error {
			filter := inspect.Filter{State: layout.Failed, Newest: true, LeftOut: new(int)}
			rows, _, err := inspect.List(ctx, c, filter, nil, overviewFailed)
			o.Failed = viewsOf(rows, ListView)
			return err
		},
		func(ctx context.Context) error {
			members, err := c.Workers(ctx)
			o.Workers = viewsOf(members, WorkerOf)
			return err
		},
		r.readRarely,
	} {
		all.Go(func() error { return part(within) })
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	o.Functions, o.logs = r.functions, r.logs
	if traits := kv.TraitsOf(c.Database()); traits.Unwritable != nil || traits.Connection == "" {
		o.unwritable = traits.Unwritable // it costs nothing
	} else {
		o.unwritable = r.unwritable
	}
	o.sum(counts, r.ready)
	return o, nil
}

func (r *OverviewReader) readRarely(ctx context.Context) error {
	start := time.Now()
	if start.Before(r.due) {
		return nil
	}
	hour, err := ReadActivity(ctx, r.client, time.Hour, time.Minute)
	if err != nil {
		return err
	}
	logs, err := joblog.Of(r.client.Cluster()).Page(ctx, "", overviewLogs)
	if err != nil {
		return err
	}
	if r.ready, err = r.oldest.read(ctx); err != nil {
		return err
	}
	if r.unwritable, err = inspect.Unwritable(ctx, r.client.Cluster()); err != nil {
		return err
	}
	slices.SortStableFunc(hour.Functions, func(a, b ActivityFunction) int {
		return cmp.Or(cmp.Compare(b.FailedAttempts, a.FailedAttempts), cmp.Compare(b.Succeeded, a.Succeeded))
	})
	r.functions, r.logs = hour.Functions, viewsOf(logs, JobLogOf)
	r.due = time.Now().Add(max(rareEvery, rareRest*time.Since(start)))
	return nil
}

// sum adds up what was read, and puts first what is to be looked at first.
func (o *Overview) sum(counts layout.Counts, oldest map[string]time.Time) {
	for _, q := range activity.CountsByQueue(counts) {
		o.Total.Add(&q)
		queue := OverviewQueue{QueueCounts: q}
		if at, found := oldest[q.Queue]; found && q.Ready > 0 {
			at = at.UTC()
			queue.OldestReady = &at
		}
		o.Queues = append(o.Queues, queue)
	}
	for of, n := range counts { // not all queues are shown
		if at, found := oldest[of.Queue]; found && of.State == layout.Ready && n > 0 &&
			(o.Total.OldestReady == nil || at.Before(*o.Total.OldestReady)) {
			at = at.UTC()
			o.Total.OldestReady = &at
		}
	}
	slices.SortStableFunc(o.Queues, func(a, b OverviewQueue) int {
		return cmp.Compare(b.Ready+b.Claimed, a.Ready+a.Claimed)
	})
	for i := range o.Workers {
		if w := &o.Workers[i]; w.Alive {
			o.Alive, o.Slots, o.Free = o.Alive+1, o.Slots+int64(w.Capacity.Slots), o.Free+int64(w.Free.Slots)
		}
	}
	o.Dead = len(o.Workers) - o.Alive
	slices.SortStableFunc(o.Workers, func(a, b Worker) int {
		const order = workerDead + workerDraining + workerAlive
		return cmp.Or(cmp.Compare(strings.Index(order, a.State()), strings.Index(order, b.State())),
			cmp.Compare(a.Called(), b.Called()))
	})
	o.Wrong = o.wrong()
}

func (s *server) registerOverview() {
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, overviewPath, "overview", "What the cluster does",
		"And what is wrong with it. What costs more to read is up to 10 s old."),
		func(ctx context.Context, _ *struct{}) (*body[*Overview], error) {
			if err := stack.Reserve(ctx, overviewFailed*listedBytes); err != nil {
				return nil, err
			}
			return answerWith(s.overview.read(ctx))
		})
}
