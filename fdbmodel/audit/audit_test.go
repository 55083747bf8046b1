package audit

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

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// population is a cluster with a future in each state and of each kind.
type Population struct {
	C      *fdbmodel.Cluster
	Db     kv.Database
	Worker *fdbmodel.Registration
	Ids    map[layout.State]layout.ID
	held   [2]layout.ID // the second one is assigned to the worker
	Large  layout.ID    // realized, with chunks
	Middle layout.ID    // ready, with a key for its arguments
	claim  layout.Token
	result layout.ChunkRef // of large
	args   layout.ChunkRef // of large
}

func Populate(t *testing.T) *Population {
	ctx := context.Background()
	db := storetest.New(t)
	c, err := fdbmodel.Open(ctx, db, "check", fdbmodel.Options{Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000))})
	require.NoError(t, err)
	p := &Population{C: c, Db: db, Ids: map[layout.State]layout.ID{}}
	_, err = c.PutModule(ctx, []byte("not really a module"), "alias")
	require.NoError(t, err)
	p.Worker, err = c.Register(ctx, layout.WorkerInfo{
		Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 9}, Address: "10.0.0.1:1",
	})
	require.NoError(t, err)
	require.NoError(t, c.OpenMailbox("s").Refresh(ctx))
	submit := func(args int) layout.ID {
		got, err := c.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Session: "s"}, Args: make([]byte, args)}})
		require.NoError(t, err)
		return got[0].ID
	}
	claim := func() *fdbmodel.ClaimedFuture {
		answer, err := p.Worker.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
		require.NoError(t, err)
		require.Len(t, answer.Futures, 1)
		return &answer.Futures[0]
	}
	finish := func(done fdbmodel.Completion) {
		outcomes, err := p.Worker.Finish(ctx, []fdbmodel.Completion{done})
		require.NoError(t, err)
		require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
	}
	p.Ids[layout.Realized] = submit(10)
	finish(fdbmodel.Completion{Future: claim(), Result: &layout.Result{Value: []byte("v")}})
	p.Large = submit(100_000)
	f := claim()
	ref, err := c.PutResult(ctx, f.ID, f.Token, make([]byte, 200_000))
	require.NoError(t, err)
	finish(fdbmodel.Completion{Future: f, Result: &layout.Result{ValueRef: &ref, Size: ref.Size}})
	p.result, p.args = ref, *f.Spec.ArgsRef
	p.Ids[layout.Failed] = submit(10)
	finish(fdbmodel.Completion{Future: claim(), Exception: &layout.Exception{Kind: layout.KindError, Message: "m"}})
	p.Ids[layout.Claimed] = submit(10)
	p.claim = claim().Token
	got, err := c.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}, NotBefore: c.Now().Add(time.Hour)}})
	require.NoError(t, err)
	p.Ids[layout.Delayed] = got[0].ID
	p.Ids[layout.Ready] = submit(10)
	p.Middle = submit(5000)
	spec := layout.Spec{Function: "go:f", Group: "g", Held: true}
	got, err = c.Submit(ctx, []fdbmodel.Submission{{Spec: spec}, {Spec: spec}})
	require.NoError(t, err)
	p.held = [2]layout.ID{got[0].ID, got[1].ID}
	require.NoError(t, c.CreateBatch(ctx, &layout.BatchRecord{ID: "b", Template: []byte("{}"), Made: true, CreatedAt: 7}))
	_, _, err = c.AssignChunk(ctx, "b", layout.BatchChunk{Worker: p.Worker.ID(), ID: "c"}, p.held[1:], fdbmodel_test.AnyBatch)
	require.NoError(t, err)
	p.GoIdle(t)
	require.Empty(t, p.Check(t).Notes)
	require.Empty(t, p.Check(t).Problems)
	return p
}

// goIdle puts the worker into the ring of the idle, as one that knows none of the
// functions.
func (p *Population) GoIdle(t *testing.T) {
	watch, err := p.Worker.GoIdle(context.Background(), fdbmodel.ClaimRequest{Runs: func(string) bool { return false }})
	require.NoError(t, err)
	watch.Cancel()
}

func (p *Population) get(t *testing.T, id layout.ID) layout.Row {
	row, err := p.C.Get(context.Background(), id)
	require.NoError(t, err)
	return row
}

func (p *Population) Check(t *testing.T) Report {
	report, err := Check(context.Background(), p.C, Options{})
	require.NoError(t, err)
	return report
}

func (p *Population) Write(t *testing.T, fn func(kv.Tx)) {
	tx := p.Db.Begin(kv.Options{})
	fn(tx)
	_, err := tx.Commit(context.Background())
	require.NoError(t, err)
}

func TestCheckOfHealthyCluster(t *testing.T) {
	t.Parallel()
	p := Populate(t)
	report := p.Check(t)
	require.Empty(t, report.Problems)
	require.Equal(t, int64(9), report.Futures)
}

// row returns a future in a state, to be changed.
func (p *Population) Row(t *testing.T, s layout.State) *layout.Row {
	row, err := p.C.Get(context.Background(), p.Ids[s])
	require.NoError(t, err)
	return &row
}

func MustRecord(t *testing.T, v any) []byte {
	b, err := layout.Encode(v)
	require.NoError(t, err)
	return b
}

func MustStamped(t *testing.T, v any) []byte {
	b, err := layout.EncodeStamped(v)
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
			p := Populate(t)
			p.Write(t, func(tx kv.Tx) { b.how(t, p, tx) })
			report := p.Check(t)
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
		{"worker to be reaped", only(InvariantWorker), func(t *testing.T, p *Population, _ kv.Tx) {
			members, err := p.C.Workers(context.Background())
			require.NoError(t, err)
			dead, err := p.C.DeclareDead(context.Background(), members[0].ID, members[0].Beat)
			require.NoError(t, err)
			require.True(t, dead)
		}},
		{"wake of a worker that has left", only(InvariantWorker), func(t *testing.T, p *Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Worker("gone", layout.WorkerWake), MustStamped(t, struct{}{}))
		}},
		{"pieces of nobody's result", only(InvariantChunks), func(t *testing.T, p *Population, _ kv.Tx) {
			token := layout.Token{Worker: "gone", Sequence: 4}
			_, err := p.C.PutResult(context.Background(), p.Ids[layout.Ready], token, make([]byte, 10))
			require.NoError(t, err)
		}},
		{"mail of a session that is gone", only(InvariantMail), func(_ *testing.T, p *Population, tx kv.Tx) {
			tx.Clear(p.C.Keys().Session("s"))
		}},
		{"module without its end", only(InvariantModule), func(_ *testing.T, p *Population, tx kv.Tx) {
			tx.Set(p.C.Keys().CodeBody("bafk", 0), []byte("x"))
		}},
		{"newer spec", only(InvariantNewer), func(_ *testing.T, p *Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Spec(p.Ids[layout.Claimed]), []byte{layout.RecordVersion + 1})
		}},
		{"newer worker", only(InvariantNewer), func(_ *testing.T, p *Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Worker(p.Worker.ID(), layout.WorkerAlive), []byte{layout.RecordVersion + 1})
		}},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			p := Populate(t)
			p.Write(t, func(tx kv.Tx) { b.how(t, p, tx) })
			report := p.Check(t)
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
	c, err := fdbmodel.Open(ctx, db, "pages", fdbmodel.Options{Config: layout.Config{Shards: 1}})
	require.NoError(t, err)
	w, err := c.Register(ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 200}})
	require.NoError(t, err)
	subs := make([]fdbmodel.Submission, 700)
	for i := range subs {
		subs[i].Spec = layout.Spec{Function: "go:f"}
	}
	_, err = c.Submit(ctx, subs)
	require.NoError(t, err)
	answer, err := w.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 128}, Max: 128})
	require.NoError(t, err)
	for i := range answer.Futures {
		done := []fdbmodel.Completion{{Future: &answer.Futures[i], Result: &layout.Result{}}}
		_, err := w.Finish(ctx, done)
		require.NoError(t, err)
	}
	id := answer.Futures[0].ID
	_, err = c.PutArgs(ctx, id, make([]byte, 25*layout.ChunkSize))
	require.NoError(t, err)
	report, err := Check(ctx, c, Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Len(t, report.Notes, 3, "one for each page of pieces")
	require.Equal(t, int64(700), report.Futures)
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.GetRange(c.Keys().All(), kv.RangeOptions{}).Wait(ctx)
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
	c, err := fdbmodel.Open(ctx, db, "busy", fdbmodel.Options{Config: layout.Config{Shards: 2, Retention: time.Millisecond}})
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
	var workers []layout.WorkerID
	for range 2 {
		w, err := c.Register(ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 16}})
		require.NoError(t, err)
		workers = append(workers, w.ID())
		loop(func(n int) error {
			answer, err := w.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 16}, Max: 16})
			var done []fdbmodel.Completion
			for i := range answer.Futures {
				d := fdbmodel.Completion{Future: &answer.Futures[i], Result: &layout.Result{}}
				if (n+i)%3 == 0 {
					d = fdbmodel.Completion{Future: &answer.Futures[i], Exception: &layout.Exception{Kind: layout.KindError}}
				}
				done = append(done, d)
			}
			_, failed := w.Finish(ctx, done)
			return errors.Join(err, failed)
		})
	}
	loop(func(int) error {
		// Workers and janitors that are slower than this loop must not drown.
		if counts, err := c.Counts(ctx); err != nil || counts.Total(layout.Ready)+counts.Total(layout.Realized) > 1000 {
			return err
		}
		subs := make([]fdbmodel.Submission, 20)
		for i := range subs {
			subs[i].Spec = layout.Spec{Function: "go:f", MaxRetries: 1, Backoff: layout.Backoff{Base: 1, Max: 1}}
		}
		_, err := c.Submit(ctx, subs)
		return err
	})
	loop(func(n int) error {
		if n >= 50 {
			<-ctx.Done() // held futures stay
			return nil
		}
		subs := make([]fdbmodel.Submission, 10)
		for i := range subs {
			subs[i].Spec = layout.Spec{Function: "go:f", Group: "g", Held: true}
		}
		made, err := c.Submit(ctx, subs)
		if err != nil {
			return err
		}
		ids := make([]layout.ID, len(made))
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
		report, err := Check(ctx, c, Options{})
		require.NoError(t, err)
		require.Empty(t, report.Problems)
	}
	stop()
	group.Wait()
	require.Empty(t, failures)
	report, err := Check(context.Background(), c, Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

func TestCheckIsBounded(t *testing.T) {
	t.Parallel()
	p := Populate(t)
	p.Write(t, func(tx kv.Tx) {
		for i := range 50 {
			tx.Set(append(p.C.Keys().Global("what"), byte(i)), nil)
		}
	})
	report, err := Check(context.Background(), p.C, Options{Problems: 7})
	require.NoError(t, err)
	require.Len(t, report.Problems, 7)
	require.Equal(t, int64(50), report.Broken)
}

func TestDiscardLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := Populate(t)
	require.NoError(t, p.C.Discard(ctx, p.Large))
	require.ErrorIs(t, p.C.Discard(ctx, p.Large), fdbmodel.ErrNotFound)
	require.ErrorIs(t, p.C.Discard(ctx, p.Ids[layout.Ready]), fdbmodel.ErrTransition)
	require.Empty(t, p.Check(t).Problems)
	tx := p.Db.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.GetRange(p.C.Keys().All(), kv.RangeOptions{}).Wait(ctx)
	require.NoError(t, err)
	for _, item := range page.Items {
		// The done list may still name it, by value.
		require.False(t, bytes.Contains(item.Key, p.Large[:]))
	}
}
