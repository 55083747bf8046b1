package workers

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// long reports whether the long variant of the tests was asked for.
func long() bool { return os.Getenv("FUTURA_LONG") == "1" }

// bed is a cluster on a store of its own.
type bed struct {
	t       testing.TB
	ctx     context.Context
	db      kv.Database
	cluster *fdbmodel.Cluster
	clock   *clock.Virtual // nil on the machine's clock

	mu   sync.Mutex
	runs []*running // on a virtual clock, those that were started
}

func newBed(t testing.TB, config layout.Config, clk *clock.Virtual) *bed {
	return bedOn(t, storetest.New(t), config, clk)
}

// bedOn is one on a store that the test made.
func bedOn(t testing.TB, db kv.Database, config layout.Config, clk *clock.Virtual) *bed {
	b := &bed{t: t, ctx: context.Background(), db: db, clock: clk}
	o := fdbmodel.Options{Config: config}
	if clk != nil {
		o.Clock = clk
	}
	var err error
	b.cluster, err = fdbmodel.Open(b.ctx, b.db, "test", o)
	require.NoError(t, err)
	return b
}

// virtualBed is one on a clock that the test moves.
func virtualBed(t testing.TB) *bed { return newBed(t, layout.Config{}, clock.NewVirtual(epoch)) }

// inBubble runs a test in which the clock moves only when all goroutines wait: a busy
// machine delays the clock as it does workers. A server is outside of such a bubble.
func inBubble(t *testing.T, test func(*testing.T)) {
	if storetest.OnServer {
		test(t)
		return
	}
	bubble.Test(t, test)
}

// realBed is one on the machine's clock, in which no worker dies for the machine being busy.
func realBed(t testing.TB) *bed {
	return newBed(t, layout.Config{Heartbeat: 100 * time.Millisecond, DeadAfter: time.Minute}, nil)
}

// register has a worker of one slot that nothing drives.
func (b *bed) register() *fdbmodel.Registration {
	reg, err := b.cluster.Register(b.ctx, layout.WorkerInfo{Capacity: layout.Resources{Slots: 1}})
	require.NoError(b.t, err)
	return reg
}

func (b *bed) submit(subs ...fdbmodel.Submission) []layout.ID {
	answers, err := b.cluster.Submit(b.ctx, subs)
	require.NoError(b.t, err)
	ids := make([]layout.ID, len(answers))
	for i := range answers {
		ids[i] = answers[i].ID
	}
	return ids
}

func (b *bed) one(function string, change ...func(*fdbmodel.Submission)) layout.ID {
	return b.submit(b.describe(function, change...))[0]
}

func (b *bed) describe(function string, change ...func(*fdbmodel.Submission)) fdbmodel.Submission {
	s := fdbmodel.Submission{Spec: layout.Spec{Function: function}}
	for _, f := range change {
		f(&s)
	}
	return s
}

func (b *bed) many(n int, function string) []layout.ID {
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i] = b.describe(function)
	}
	return b.submit(subs...)
}

func (b *bed) row(id layout.ID) layout.Row {
	row, err := b.cluster.Get(b.ctx, id)
	require.NoError(b.t, err)
	return row
}

// awaitBound is when a test gives up waiting for something that must come.
const awaitBound = 3 * time.Minute

// tickOfClock is how often the virtual clock is moved: seldom enough that
// workers keep up with it.
func tickOfClock() time.Duration {
	if storetest.OnServer {
		return 10 * time.Millisecond
	}
	return time.Millisecond
}

// await looks until done, and moves a virtual clock meanwhile, a fortieth of a
// heartbeat at a time, and slowly while workers are late: the next heartbeat of an idle one may be
// due only later.
func (b *bed) await(what string, done func() bool) {
	b.t.Helper()
	give := time.NewTimer(awaitBound)
	defer give.Stop()
	tick := time.NewTicker(tickOfClock())
	defer tick.Stop()
	const slower = 50
	for waited := 0; !done(); {
		select {
		case <-give.C:
			require.FailNow(b.t, "did not come: "+what)
		case <-tick.C:
		}
		if b.clock == nil {
			continue
		}
		if waited++; b.keepUp() || waited >= slower {
			waited = 0
			b.clock.Advance(b.cluster.Config().Heartbeat / 40)
		}
	}
}

// keepUp reports whether the workers that run have beaten within little more than a
// heartbeat by the clock, which waits for them. On a busy machine they would be taken
// for dead.
func (b *bed) keepUp() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, late := b.clock.Now(), b.cluster.Config().Heartbeat*5/4
	b.runs = slices.DeleteFunc(b.runs, func(r *running) bool {
		select {
		case <-r.done:
			return true
		default:
			return false
		}
	})
	isLate := func(r *running) bool { return !r.frozen && now.Sub(r.beaten) > late }
	if !slices.ContainsFunc(b.runs, isLate) {
		return true
	}
	members, err := b.cluster.Workers(b.ctx)
	require.NoError(b.t, err)
	for _, r := range b.runs {
		id := r.ID()
		at := slices.IndexFunc(members, func(m fdbmodel.Member) bool { return m.ID == id })
		switch {
		case at < 0 || !bytes.Equal(members[at].Beat, r.beat):
			r.beaten = now
			if at >= 0 {
				r.beat = members[at].Beat
			}
		case isLate(r):
			return false
		}
	}
	return true
}

// awaitOver waits until all ids are realized or failed.
func (b *bed) awaitOver(ids ...layout.ID) {
	b.t.Helper()
	b.await("the end of all futures", func() bool {
		for len(ids) > 0 {
			row, err := b.cluster.Get(b.ctx, ids[0])
			require.NoError(b.t, err)
			if !row.State().Terminal() {
				return false
			}
			ids = ids[1:]
		}
		return true
	})
}

func (b *bed) counts() map[layout.State]int64 {
	counts, err := b.cluster.Counts(b.ctx)
	require.NoError(b.t, err)
	sums := map[layout.State]int64{}
	for k, n := range counts {
		sums[k.State] += n
	}
	return sums
}

func (b *bed) member(id layout.WorkerID) (fdbmodel.Member, bool) {
	members, err := b.cluster.Workers(b.ctx)
	require.NoError(b.t, err)
	for _, m := range members {
		if m.ID == id {
			return m, true
		}
	}
	return fdbmodel.Member{}, false
}

// running is a worker that runs.
type running struct {
	*Worker
	bed  *bed
	stop context.CancelFunc
	once sync.Once
	done chan struct{}
	err  error

	beat   []byte    // the last heartbeat that was seen
	beaten time.Time // when it was, by the virtual clock
	frozen bool      // so that the clock does not wait for it
}

func (b *bed) start(o Options, functions map[string]Function) *running {
	b.t.Helper()
	w, err := FromCluster(b.cluster, o)
	require.NoError(b.t, err)
	for name, fn := range functions {
		require.NoError(b.t, w.Register(name, fn))
	}
	return b.run(w)
}

// run is start for a worker that was made.
func (b *bed) run(w *Worker) *running {
	ctx, stop := context.WithCancel(b.ctx)
	r := &running{Worker: w, bed: b, stop: stop, done: make(chan struct{})}
	go func() {
		r.err = w.Run(ctx)
		close(r.done)
	}()
	b.t.Cleanup(func() { r.end() })
	select {
	case <-w.Ready():
	case <-r.done:
		require.NoError(b.t, r.err)
	}
	if b.clock != nil {
		b.mu.Lock()
		r.beaten = b.clock.Now()
		b.runs = append(b.runs, r)
		b.mu.Unlock()
	}
	return r
}

// freeze has a worker touch the store no more, as if its process were paused.
func (r *running) freeze() {
	r.bed.mu.Lock()
	defer r.bed.mu.Unlock()
	r.frozen = true
	r.Worker.freeze.begin()
}

// thaw has it go on.
func (r *running) thaw() {
	r.bed.mu.Lock()
	defer r.bed.mu.Unlock()
	r.frozen, r.beaten = false, r.bed.clock.Now()
	r.Worker.freeze.end()
}

// end stops the worker and waits for it.
func (r *running) end() {
	r.stop()
	r.bed.await("the end of a worker", func() bool {
		select {
		case <-r.done:
			return true
		default:
			return false
		}
	})
	r.once.Do(func() {
		if storetest.OnServer && errors.Is(r.err, errAway) {
			return // beside a busy server the clock has gone on by more than it has to answer
		}
		require.NoError(r.bed.t, r.err)
	})
}

func echo(_ context.Context, args []byte) ([]byte, error) { return args, nil }

// blocker is a function that begins, and ends when it is told to or, if heeds is
// set, when its context does.
type blocker struct {
	began chan Info
	end   chan struct{}
	heeds bool
}

func newBlocker(heeds bool) *blocker {
	return &blocker{began: make(chan Info, 1000), end: make(chan struct{}), heeds: heeds}
}

func (b *blocker) run(ctx context.Context, _ []byte) ([]byte, error) {
	info, _ := InfoFrom(ctx)
	b.began <- info
	var done <-chan struct{}
	if b.heeds {
		done = ctx.Done()
	}
	select {
	case <-b.end:
		return []byte("ended"), nil
	case <-done:
		return nil, context.Cause(ctx)
	}
}

// begins waits until a function has begun.
func (b *bed) begins(f *blocker) (info Info) {
	b.t.Helper()
	b.await("the begin of a function", func() bool {
		select {
		case info = <-f.began:
			return true
		default:
			return false
		}
	})
	return info
}
