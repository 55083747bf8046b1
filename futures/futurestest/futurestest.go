// Package futurestest provides a cluster in memory for the tests of
// applications. It runs futures in the goroutine that awaits them, on a virtual
// clock: no test waits for a delay, a backoff or a worker, and each run of a
// test is the same.
//
//	func TestGreeting(t *testing.T) {
//		cluster := futurestest.New(t)
//		cluster.Register(Greet.Bind(greet))
//		f, err := Greet.Submit(t.Context(), cluster.Client, "Ada")
//		...
//		text, err := f.Await(t.Context())
//	}
//
// An await runs the futures that are ready. When none is ready, the clock jumps
// to the time of the first delayed future. If none is delayed either, the await
// fails with ErrStuck and says why its future does not run: schedules fire only while
// Advance moves the clock. A function may
// submit and await futures itself, by Client or by the one of futures.FromContext,
// which is the same; it must pass on the context that it was given. The worker has
// one slot, which a function that awaits gives to others, as any worker does; up
// to 1,000 functions of one name may await at a time. While a function runs, only
// Elapse moves the clock and tells it of a cancel: one that waits for its context
// to end would wait forever.
package futurestest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/workers"
)

// ErrStuck is returned by an await whose future can't end because nothing is
// left to run.
var ErrStuck = errors.New("futurestest: nothing is left that could run")

const (
	// never is longer than any test: time passing triggers only what futures ask
	// for.
	never = 100 * 365 * 24 * time.Hour
	// depth is how many functions of one name may await others at a time.
	depth = 1000
	// plenty is enough of each resource for every future to run.
	plenty = 1 << 50
)

// Cluster is a cluster in memory with one worker.
type Cluster struct {
	// Client is a client of the cluster. It is closed at the end of the test.
	Client *futures.Client
	// Store holds the cluster, for transactions of the test's own; see
	// futures.Client.SubmitTx.
	Store kv.Database

	t      testing.TB
	clock  *clock.Virtual
	worker *workers.Worker
	around []workers.Middleware
	root   frame
	// calls are the frames of running bundles, by their tokens.
	calls   sync.Map
	modules modules

	stepClient seam.Client
	stepWorker seam.Worker
	schedules  schedule.Walk

	complete func(futures.View) (any, error) // of promises, or nil
}

// frame is one level that drives the cluster: the test, or a running function.
// The goroutines of one level take turns.
type frame struct{ mu sync.Mutex }

type frameKey struct{}

// New returns a cluster that ends with the test. Its worker serves the queue
// "default" and the given ones, and satisfies all requirements. The clock
// starts at the same time in each test.
func New(t testing.TB, queues ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, clock: clock.NewVirtual(time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC))}
	db := embedded.OpenMemory(embedded.Options{Inline: true})
	c.Store = db
	cluster, err := fdbmodel.Open(context.Background(), db, "test", fdbmodel.Options{
		Clock: c.clock, Config: layout.Config{Heartbeat: never / 100, DeadAfter: never},
	})
	if err != nil {
		t.Fatalf("futurestest: %v", err)
	}
	c.stepClient.Drive = c.drive
	c.Client, err = futures.FromCluster(cluster, futures.Options{Seam: &c.stepClient})
	if err != nil {
		t.Fatalf("futurestest: %v", err)
	}
	c.stepWorker.Manual, c.stepWorker.AllLabels = true, true
	c.worker, err = workers.New(c.Client, workers.Options{
		Name: "futurestest", Queues: append([]string{layout.DefaultQueue}, queues...), Seam: &c.stepWorker,
		Slots: 1, MaxAwaiting: depth, CPU: plenty, RAM: plenty, GPU: plenty, Poll: never / 100,
		Modules: &c.modules, Middleware: []workers.Middleware{c.wrap},
	})
	if err != nil {
		t.Fatalf("futurestest: %v", err)
	}
	t.Cleanup(func() {
		err := errors.Join(c.stepWorker.Leave(context.Background()), c.Client.Close(context.Background()), db.Close())
		if err != nil {
			t.Errorf("futurestest: %v", err)
		}
	})
	return c
}

// Register registers a function with the worker as go:NAME. It must come before
// the first Await, Advance and Run. An invalid or registered name fails the
// test.
func (c *Cluster) Register(name string, fn func(context.Context, []byte) ([]byte, error)) {
	c.t.Helper()
	if err := c.worker.Register(name, fn); err != nil {
		c.t.Fatalf("futurestest: %v", err)
	}
}

// Use puts middleware around the calls of all functions, the first one outermost,
// as workers.Options.Middleware does. It must come before the first Await,
// Advance and Run.
func (c *Cluster) Use(m ...workers.Middleware) { c.around = append(c.around, m...) }

// wrap gives a call a level of its own, within the middleware of the test.
func (c *Cluster) wrap(next workers.Call) workers.Call {
	for _, m := range slices.Backward(c.around) {
		next = m(next)
	}
	return func(ctx context.Context, args []byte) ([]byte, error) {
		return next(context.WithValue(ctx, frameKey{}, new(frame)), args)
	}
}

// Now returns the time of the cluster.
func (c *Cluster) Now() time.Time { return c.clock.Now() }

// Run runs every ready future, and those that become ready as a result, without
// letting time pass. It is for tests that don't await.
func (c *Cluster) Run() {
	c.t.Helper()
	c.Advance(0)
}

// Advance moves the clock by d. Futures that become due meanwhile run at their
// time: delayed ones, those of schedules, and further attempts of failed ones.
// Finished futures are removed once the retention of 24 hours has passed. Functions
// must not call it; see Elapse.
func (c *Cluster) Advance(d time.Duration) {
	c.t.Helper()
	c.root.mu.Lock()
	defer c.root.mu.Unlock()
	if err := c.advance(context.Background(), c.clock.Now().Add(d)); err != nil {
		c.t.Fatalf("futurestest: advance by %v: %v", d, err)
	}
}

// Elapse moves the clock by d and runs nothing. A function calls it to simulate
// that it takes that long: its context ends if that exceeds its timeout, or if
// its future was cancelled meanwhile.
func (c *Cluster) Elapse(d time.Duration) {
	c.clock.Advance(d)
	c.stepWorker.TakeCancels()
}

func (c *Cluster) advance(ctx context.Context, until time.Time) error {
	for {
		if _, err := c.runReady(ctx); err != nil {
			return err
		}
		due, found, err := c.firstDue(ctx)
		if err != nil {
			return err
		}
		if due, found, err = c.orSchedule(ctx, due, found); err != nil {
			return err
		}
		if !found || due.After(until) {
			break
		}
		if err := c.jump(ctx, due); err != nil {
			return err
		}
	}
	if err := c.jump(ctx, until); err != nil {
		return err
	}
	_, err := c.runReady(ctx)
	return err
}

// jump moves the clock, never backwards, and makes ready what is due: the
// janitor of the worker looks only at intervals.
func (c *Cluster) jump(ctx context.Context, to time.Time) error {
	c.clock.Advance(max(0, to.Sub(c.clock.Now())))
	if _, _, err := maintenance.Of(c.Client.Cluster()).PromoteDue(ctx); err != nil {
		return err
	}
	if _, _, err := lanes.Of(c.Client.Cluster()).AdmitDue(ctx); err != nil {
		return err
	}
	for next := to; !next.After(to) && !next.IsZero(); {
		var err error
		if _, next, err = maintenance.Of(c.Client.Cluster()).EndOverdue(ctx); err != nil {
			return err
		}
	}
	_, _, err := schedule.Of(c.Client.Cluster()).Fire(ctx, &c.schedules)
	return err
}

// orSchedule returns when the first schedule fires, if that is before due. An await
// does not wait for schedules, which never end.
func (c *Cluster) orSchedule(ctx context.Context, due time.Time, found bool) (first time.Time, any bool, err error) {
	list, err := c.Client.Schedules(ctx, "", 0)
	for i := range list {
		s := &list[i]
		if s.PausedAt.IsZero() && len(s.Next) > 0 && (!found || s.Next[0].Before(due)) {
			due, found = s.Next[0], true
		}
	}
	return due, found, err
}

// frameOf returns the level that a context is of.
func (c *Cluster) frameOf(ctx context.Context) *frame {
	if f, inside := ctx.Value(frameKey{}).(*frame); inside {
		return f
	}
	if info, inside := workers.InfoFrom(ctx); inside {
		if f, found := c.calls.Load(info.Token); found {
			return f.(*frame)
		}
	}
	return &c.root
}

// drive is called by each await.
func (c *Cluster) drive(ctx context.Context) error {
	f := c.frameOf(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	ran, err := c.runReady(ctx)
	if err != nil || ran {
		return err
	}
	// The janitor settles what those who end futures leave.
	if settled, _, err := c.Client.Cluster().ResolveEdges(ctx); err != nil || settled > 0 {
		return err
	}
	if completed, err := c.completePromises(ctx); err != nil || completed {
		return err
	}
	due, found, err := c.firstDue(ctx)
	if err != nil {
		return err
	}
	if !found {
		return c.stuck(ctx)
	}
	return c.jump(ctx, due)
}

// runReady runs until nothing is ready, and reports whether anything ran.
func (c *Cluster) runReady(ctx context.Context) (ran bool, err error) {
	ctx = context.WithoutCancel(ctx)
	for {
		now := c.clock.Now()
		next, err := c.stepWorker.Step(ctx, now)
		if err != nil {
			return ran, err
		}
		if _, err := c.stepClient.Step(ctx, now); err != nil {
			return ran, err
		}
		if next.After(now) {
			return ran, nil
		}
		ran = true
	}
}

// firstDue returns when the first delayed future is due, the first lane that its rate
// holds back, or the first future that ends because it still waits.
func (c *Cluster) firstDue(ctx context.Context) (first time.Time, found bool, err error) {
	if _, first, err = lanes.Of(c.Client.Cluster()).AdmitDue(ctx); err != nil {
		return first, false, err
	}
	found = !first.IsZero()
	for _, s := range []futures.State{futures.Delayed, futures.Ready, futures.Blocked} {
		err = errors.Join(err, c.each(ctx, s, func(v *futures.View) {
			for _, at := range []time.Time{v.DueAt, v.ExpiresAt, v.Deadline} {
				if !at.IsZero() && (!found || at.Before(first)) {
					first, found = at, true
				}
			}
		}))
	}
	return first, found, err
}

func (c *Cluster) each(ctx context.Context, s futures.State, fn func(*futures.View)) error {
	var cursor []byte
	for {
		views, next, err := c.Client.List(ctx, futures.Filter{State: s}, cursor, inspect.MaxList)
		if err != nil {
			return err
		}
		for i := range views {
			fn(&views[i])
		}
		if cursor = next; cursor == nil {
			return nil
		}
	}
}

// stuck says why the open futures do not run.
func (c *Cluster) stuck(ctx context.Context) error {
	const most = 5
	var lines []string
	for _, s := range []futures.State{futures.Ready, futures.Claimed, futures.Blocked} {
		err := c.each(ctx, s, func(v *futures.View) {
			if len(lines) == most {
				return
			}
			if e, err := c.Client.Explain(ctx, v.ID); err == nil {
				lines = append(lines, fmt.Sprintf("\n\t%s of %s is %s: %s", v.ID, v.Function, e.State, e.Text))
			}
		})
		if err != nil {
			return err
		}
	}
	if n := c.worker.Stats().Awaiting; n >= depth {
		lines = append(lines, fmt.Sprintf("\n\t%d functions await others; at most %d of one name may at a time: nest them "+
			"less deeply", n, depth))
	}
	return fmt.Errorf("%w%s", ErrStuck, strings.Join(lines, ""))
}
