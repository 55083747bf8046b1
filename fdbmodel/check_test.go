package fdbmodel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// population is a cluster with a future in each state and of each kind.
type population struct {
	c      *Cluster
	db     kv.Database
	worker *Registration
	ids    map[State]ID
	held   [2]ID // the second one is assigned to the worker
	large  ID    // realized, with chunks
	middle ID    // ready, with a key for its arguments
	claim  Token
	result ChunkRef // of large
	args   ChunkRef // of large
}

func populate(t *testing.T) *population {
	ctx := context.Background()
	db := storetest.New(t)
	c, err := Open(ctx, db, "check", Options{Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000))})
	require.NoError(t, err)
	p := &population{c: c, db: db, ids: map[State]ID{}}
	_, err = c.PutModule(ctx, []byte("not really a module"), "alias")
	require.NoError(t, err)
	p.worker, err = c.Register(ctx, WorkerInfo{
		Functions: []string{"go:f"}, Capacity: Resources{Slots: 9}, Address: "10.0.0.1:1",
	})
	require.NoError(t, err)
	require.NoError(t, c.OpenMailbox("s").Refresh(ctx))
	submit := func(args int) ID {
		got, err := c.Submit(ctx, []Submission{{Spec: Spec{Function: "go:f", Session: "s"}, Args: make([]byte, args)}})
		require.NoError(t, err)
		return got[0].ID
	}
	claim := func() *ClaimedFuture {
		answer, err := p.worker.Claim(ctx, ClaimRequest{Free: Resources{Slots: 1}, Max: 1})
		require.NoError(t, err)
		require.Len(t, answer.Futures, 1)
		return &answer.Futures[0]
	}
	finish := func(done Completion) {
		outcomes, err := p.worker.Finish(ctx, []Completion{done})
		require.NoError(t, err)
		require.Equal(t, []Outcome{Applied}, outcomes)
	}
	p.ids[Realized] = submit(10)
	finish(Completion{Future: claim(), Result: &Result{Value: []byte("v")}})
	p.large = submit(100_000)
	f := claim()
	ref, err := c.PutResult(ctx, f.ID, f.Token, make([]byte, 200_000))
	require.NoError(t, err)
	finish(Completion{Future: f, Result: &Result{ValueRef: &ref, Size: ref.Size}})
	p.result, p.args = ref, *f.Spec.ArgsRef
	p.ids[Failed] = submit(10)
	finish(Completion{Future: claim(), Exception: &Exception{Kind: KindError, Message: "m"}})
	p.ids[Claimed] = submit(10)
	p.claim = claim().Token
	got, err := c.Submit(ctx, []Submission{{Spec: Spec{Function: "go:f"}, NotBefore: c.Now().Add(time.Hour)}})
	require.NoError(t, err)
	p.ids[Delayed] = got[0].ID
	p.ids[Ready] = submit(10)
	p.middle = submit(5000)
	spec := Spec{Function: "go:f", Group: "g", Held: true}
	got, err = c.Submit(ctx, []Submission{{Spec: spec}, {Spec: spec}})
	require.NoError(t, err)
	p.held = [2]ID{got[0].ID, got[1].ID}
	require.NoError(t, c.CreateBatch(ctx, &BatchRecord{ID: "b", Template: []byte("{}"), Made: true, CreatedAt: 7}))
	_, _, err = c.AssignChunk(ctx, "b", BatchChunk{Worker: p.worker.ID(), ID: "c"}, p.held[1:], anyBatch)
	require.NoError(t, err)
	p.goIdle(t)
	require.Empty(t, p.check(t).Notes)
	require.Empty(t, p.check(t).Problems)
	return p
}

// goIdle puts the worker into the ring of the idle, as one that knows none of the
// functions.
func (p *population) goIdle(t *testing.T) {
	watch, err := p.worker.GoIdle(context.Background(), ClaimRequest{Runs: func(string) bool { return false }})
	require.NoError(t, err)
	watch.Cancel()
}

func (p *population) get(t *testing.T, id ID) Row {
	row, err := p.c.Get(context.Background(), id)
	require.NoError(t, err)
	return row
}

func (p *population) check(t *testing.T) CheckReport {
	report, err := p.c.Check(context.Background(), CheckOptions{})
	require.NoError(t, err)
	return report
}

func (p *population) write(t *testing.T, fn func(kv.Tx)) {
	tx := p.db.Begin(kv.Options{})
	fn(tx)
	_, err := tx.Commit(context.Background())
	require.NoError(t, err)
}

func TestCheckOfHealthyCluster(t *testing.T) {
	t.Parallel()
	p := populate(t)
	report := p.check(t)
	require.Empty(t, report.Problems)
	require.Equal(t, int64(9), report.Futures)
}

// row returns a future in a state, to be changed.
func (p *population) row(t *testing.T, s State) *Row {
	row, err := p.c.Get(context.Background(), p.ids[s])
	require.NoError(t, err)
	return &row
}

func mustRecord(t *testing.T, v any) []byte {
	b, err := encodeRecord(v)
	require.NoError(t, err)
	return b
}

func mustStamped(t *testing.T, v any) []byte {
	b, err := encodeStamped(v)
	require.NoError(t, err)
	return b
}

func TestCheckFindsEachBrokenInvariant(t *testing.T) {
	t.Parallel()
	covered := map[Invariant]bool{}
	for n, b := range slices.Concat(breakRow, breakRest) {
		for _, i := range b.want {
			covered[i] = true
		}
		if storetest.OnServer && testing.Short() && n%4 > 0 {
			continue // a cluster for each is slow to make there
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			p := populate(t)
			p.write(t, func(tx kv.Tx) { b.how(t, p, tx) })
			report := p.check(t)
			var found []Invariant
			for _, problem := range report.Problems {
				found = append(found, problem.Invariant)
				require.NotEmpty(t, problem.Text)
				require.NotEmpty(t, problem.Keys)
			}
			slices.Sort(found)
			require.Equal(t, b.want, found, "%+v", report.Problems)
			require.Equal(t, int64(len(found)), report.Broken)
			require.Empty(t, report.Notes)
		})
	}
	require.Len(t, covered, 24, "every invariant but that of newer records")
}

// TestCheckNotes has what is no problem.
func TestCheckNotes(t *testing.T) {
	t.Parallel()
	for _, b := range []breakage{
		{"worker to be reaped", only(InvariantWorker), func(t *testing.T, p *population, _ kv.Tx) {
			members, err := p.c.Workers(context.Background())
			require.NoError(t, err)
			dead, err := p.c.DeclareDead(context.Background(), members[0].ID, members[0].Beat)
			require.NoError(t, err)
			require.True(t, dead)
		}},
		{"wake of a worker that has left", only(InvariantWorker), func(t *testing.T, p *population, tx kv.Tx) {
			tx.Set(p.c.keys.worker("gone", workerWake), mustStamped(t, struct{}{}))
		}},
		{"pieces of nobody's result", only(InvariantChunks), func(t *testing.T, p *population, _ kv.Tx) {
			token := Token{Worker: "gone", Sequence: 4}
			_, err := p.c.PutResult(context.Background(), p.ids[Ready], token, make([]byte, 10))
			require.NoError(t, err)
		}},
		{"mail of a session that is gone", only(InvariantMail), func(_ *testing.T, p *population, tx kv.Tx) {
			tx.Clear(p.c.keys.session("s"))
		}},
		{"module without its end", only(InvariantModule), func(_ *testing.T, p *population, tx kv.Tx) {
			tx.Set(p.c.keys.codeBody("bafk", 0), []byte("x"))
		}},
		{"newer spec", only(InvariantNewer), func(_ *testing.T, p *population, tx kv.Tx) {
			tx.Set(p.c.keys.spec(p.ids[Claimed]), []byte{recordVersion + 1})
		}},
		{"newer worker", only(InvariantNewer), func(_ *testing.T, p *population, tx kv.Tx) {
			tx.Set(p.c.keys.worker(p.worker.ID(), workerAlive), []byte{recordVersion + 1})
		}},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			p := populate(t)
			p.write(t, func(tx kv.Tx) { b.how(t, p, tx) })
			report := p.check(t)
			require.Empty(t, report.Problems)
			require.Len(t, report.Notes, 1, "%+v", report.Notes)
			require.Equal(t, b.want[0], report.Notes[0].Invariant)
			require.Equal(t, int64(1), report.Pending+report.Newer)
			require.Equal(t, b.want[0] == InvariantNewer, report.Newer == 1)
		})
	}
}

// TestCheckOfManyPages has more keys than pages of each kind.
func TestCheckOfManyPages(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c, err := Open(ctx, db, "pages", Options{Config: Config{Shards: 1}})
	require.NoError(t, err)
	w, err := c.Register(ctx, WorkerInfo{Functions: []string{"go:f"}, Capacity: Resources{Slots: 200}})
	require.NoError(t, err)
	subs := make([]Submission, 700)
	for i := range subs {
		subs[i].Spec = Spec{Function: "go:f"}
	}
	_, err = c.Submit(ctx, subs)
	require.NoError(t, err)
	answer, err := w.Claim(ctx, ClaimRequest{Free: Resources{Slots: 128}, Max: 128})
	require.NoError(t, err)
	for i := range answer.Futures {
		done := []Completion{{Future: &answer.Futures[i], Result: &Result{}}}
		_, err := w.Finish(ctx, done)
		require.NoError(t, err)
	}
	id := answer.Futures[0].ID
	_, err = c.PutArgs(ctx, id, make([]byte, 25*chunkSize))
	require.NoError(t, err)
	report, err := c.Check(ctx, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Len(t, report.Notes, 3, "one for each page of pieces")
	require.Equal(t, int64(700), report.Futures)
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.GetRange(c.keys.all(), kv.RangeOptions{}).Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(len(page.Items)), report.Keys)
}

// TestCheckOfBusyCluster checks beside workers, clients and janitors.
func TestCheckOfBusyCluster(t *testing.T) {
	t.Parallel()
	checks := 20
	if storetest.OnServer {
		checks = 5
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db := storetest.New(t)
	c, err := Open(ctx, db, "busy", Options{Config: Config{Shards: 2, Retention: time.Millisecond}})
	require.NoError(t, err)
	var group sync.WaitGroup
	failures := make(chan error, 10)
	loop := func(fn func(n int) error) {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := fn(n); err != nil && ctx.Err() == nil {
					failures <- err
					return
				}
			}
		})
	}
	var workers []WorkerID
	for range 2 {
		w, err := c.Register(ctx, WorkerInfo{Functions: []string{"go:f"}, Capacity: Resources{Slots: 16}})
		require.NoError(t, err)
		workers = append(workers, w.ID())
		loop(func(n int) error {
			answer, err := w.Claim(ctx, ClaimRequest{Free: Resources{Slots: 16}, Max: 16})
			var done []Completion
			for i := range answer.Futures {
				d := Completion{Future: &answer.Futures[i], Result: &Result{}}
				if (n+i)%3 == 0 {
					d = Completion{Future: &answer.Futures[i], Exception: &Exception{Kind: KindError}}
				}
				done = append(done, d)
			}
			_, failed := w.Finish(ctx, done)
			return errors.Join(err, failed)
		})
	}
	loop(func(int) error {
		// Workers and janitors that are slower than this loop must not drown.
		if counts, err := c.Counts(ctx); err != nil || counts.Total(Ready)+counts.Total(Realized) > 1000 {
			return err
		}
		subs := make([]Submission, 20)
		for i := range subs {
			subs[i].Spec = Spec{Function: "go:f", MaxRetries: 1, Backoff: Backoff{Base: 1, Max: 1}}
		}
		_, err := c.Submit(ctx, subs)
		return err
	})
	loop(func(n int) error {
		if n >= 50 {
			<-ctx.Done() // held futures stay
			return nil
		}
		subs := make([]Submission, 10)
		for i := range subs {
			subs[i].Spec = Spec{Function: "go:f", Group: "g", Held: true}
		}
		made, err := c.Submit(ctx, subs)
		if err != nil {
			return err
		}
		ids := make([]ID, len(made))
		for i := range made {
			ids[i] = made[i].ID
		}
		_, err = c.Assign(ctx, workers[n%2], fmt.Sprint(n%3), ids)
		return err
	})
	loop(func(n int) error {
		_, _, err := c.PromoteDue(ctx, n%2)
		_, _, _, failed := c.ExpireDone(ctx, n%2)
		return errors.Join(err, failed)
	})
	for range checks {
		report, err := c.Check(ctx, CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Problems)
	}
	stop()
	group.Wait()
	require.Empty(t, failures)
	report, err := c.Check(context.Background(), CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

func TestCheckIsBounded(t *testing.T) {
	t.Parallel()
	p := populate(t)
	p.write(t, func(tx kv.Tx) {
		for i := range 50 {
			tx.Set(append(p.c.keys.global("what"), byte(i)), nil)
		}
	})
	report, err := p.c.Check(context.Background(), CheckOptions{Problems: 7})
	require.NoError(t, err)
	require.Len(t, report.Problems, 7)
	require.Equal(t, int64(50), report.Broken)
}

func TestDiscardLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := populate(t)
	require.NoError(t, p.c.Discard(ctx, p.large))
	require.ErrorIs(t, p.c.Discard(ctx, p.large), ErrNotFound)
	require.ErrorIs(t, p.c.Discard(ctx, p.ids[Ready]), ErrTransition)
	require.Empty(t, p.check(t).Problems)
	tx := p.db.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.GetRange(p.c.keys.all(), kv.RangeOptions{}).Wait(ctx)
	require.NoError(t, err)
	for _, item := range page.Items {
		// The done list may still name it, by value.
		require.False(t, bytes.Contains(item.Key, p.large[:]))
	}
}
