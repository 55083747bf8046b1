package audit_test

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
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/storetest"
)

func TestCheckOfHealthyCluster(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	report := p.Check(t)
	require.Empty(t, report.Problems)
	require.Equal(t, p.Futures(), report.Futures)
}

func TestCheckFindsEachBrokenInvariant(t *testing.T) {
	t.Parallel()
	covered := map[audit.Invariant]bool{}
	for n, b := range slices.Concat(breakRow, breakEdges, breakUnique, breakLanes, breakLife, breakRest, breakJobs,
		breakSchedules, breakLimits, breakPromises, breakSteps, breakForks, breakActors) {
		for _, i := range b.want {
			covered[i] = true
		}
		if storetest.OnServer && testing.Short() && n%16 > 0 {
			continue // a cluster for each is slow to make there
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			p := modeltest.Populate(t)
			p.Write(t, func(tx kv.Tx) { b.how(t, p, tx) })
			report := p.Check(t)
			var found []audit.Invariant
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
	for _, place := range layout.Places() {
		require.True(t, covered[audit.Invariant(place.Kind)], place.Kind)
	}
	require.Len(t, covered, 38+len(layout.Places()), "every invariant but that of newer records")
}

// TestCheckNotes covers findings that are not problems.
func TestCheckNotes(t *testing.T) {
	t.Parallel()
	for _, b := range []breakage{
		{"worker to be reaped", only(audit.InvariantWorker), func(t *testing.T, p *modeltest.Population, _ kv.Tx) {
			modeltest.DeclareDead(t, p.C, p.Worker.ID())
		}},
		{"wake of a worker that has left", only(audit.InvariantWorker),
			func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
				tx.Set(p.C.Keys().Worker("gone", layout.WorkerWake), layout.EncodeWake())
			}},
		{"pieces of nobody's result", only(audit.InvariantChunks), func(t *testing.T, p *modeltest.Population, _ kv.Tx) {
			token := layout.Token{Worker: "gone", Sequence: 4}
			_, err := results.Of(p.C).Store(context.Background(), p.IDs[layout.Failed], token, make([]byte, 10))
			require.NoError(t, err)
		}},
		{"mail of a session that is gone", only(audit.InvariantMail), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(p.C.Keys().Session("s"))
		}},
		{"module without its end", only(audit.InvariantModule), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().ModulePiece("bafk", 0), []byte("x"))
		}},
		{"newer spec", only(audit.InvariantNewer), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Spec(p.IDs[layout.Claimed]), []byte{layout.RecordVersion + 1})
		}},
		{"newer worker", only(audit.InvariantNewer), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Worker(p.Worker.ID(), layout.WorkerAlive), []byte{layout.RecordVersion + 1})
		}},
		{"newer copy of an object", only(audit.InvariantNewer), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			row := p.Row(t, layout.Realized)
			row.Result.Object = "h"
			tx.Set(p.C.Keys().State(row.ID, layout.StateResult), layout.EncodeStamped(row.Result))
			key := tuple.AppendStamp(p.C.Keys().CopiesOf(row.ID), [10]byte{1}, 0)
			tx.Set(key, []byte{layout.RecordVersion + 1})
		}},
		{"newer lane", only(audit.InvariantNewer), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Lane(narrow), []byte{layout.RecordVersion + 1})
		}},
		{"newer lane below a total", only(audit.InvariantNewer), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Lane(turnsA), []byte{layout.RecordVersion + 1})
		}},
		{"newer settings of lanes", only(audit.InvariantNewer), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().LaneKind(turnsA.Kind), []byte{layout.RecordVersion + 1})
		}},
		{"newer total of lanes", only(audit.InvariantNewer), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().LaneTotal(turnsA.Kind), []byte{layout.RecordVersion + 1})
		}},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			p := modeltest.Populate(t)
			p.Write(t, func(tx kv.Tx) { b.how(t, p, tx) })
			report := p.Check(t)
			require.Empty(t, report.Problems)
			require.Len(t, report.Notes, 1, "%+v", report.Notes)
			require.Equal(t, b.want[0], report.Notes[0].Invariant)
			require.Equal(t, int64(1), report.Pending+report.Newer)
			require.Equal(t, b.want[0] == audit.InvariantNewer, report.Newer == 1)
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
	report := modeltest.RequireSound(t, c)
	require.Len(t, report.Notes, 3, "one for each page of pieces")
	require.Equal(t, int64(700), report.Futures)
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.GetRange(c.Keys().All(), kv.RangeOptions{}).Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(len(page.Items)), report.Keys)
}

// TestCheckOfBusyCluster checks while workers, clients and janitors run.
func TestCheckOfBusyCluster(t *testing.T) {
	t.Parallel()
	checks := 20
	if storetest.OnServer {
		checks = 5
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db := storetest.New(t)
	c, err := fdbmodel.Open(ctx, db, "busy", fdbmodel.Options{Config: layout.Config{Shards: 2,
		Retention: time.Millisecond}})
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
			subs[i].Spec = layout.Spec{Function: "go:f", Owner: "g"}
		}
		made, err := c.Submit(ctx, subs)
		if err != nil {
			return err
		}
		ids := make([]layout.ID, len(made))
		for i := range made {
			ids[i] = made[i].ID
		}
		_, err = c.Assign(ctx, fdbmodel.Assignment{To: workers[n%2], Reason: fmt.Sprint(n % 3)}, ids)
		return err
	})
	loop(func(int) error {
		_, _, err := maintenance.Of(c).PromoteDue(ctx)
		_, _, failed := maintenance.Of(c).ExpireDone(ctx)
		return errors.Join(err, failed)
	})
	for range checks {
		modeltest.RequireSound(t, c)
	}
	stop()
	group.Wait()
	require.Empty(t, failures)
	modeltest.RequireSound(t, c)
}

func TestCheckIsBounded(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	p.Write(t, func(tx kv.Tx) {
		for i := range 50 {
			tx.Set(append(p.C.Keys().Global("what"), byte(i)), nil)
		}
	})
	report, err := audit.Check(context.Background(), p.C, audit.Options{Problems: 7})
	require.NoError(t, err)
	require.Len(t, report.Problems, 7)
	require.Equal(t, int64(50), report.Broken)
}

func TestDiscardLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	require.NoError(t, p.C.Discard(ctx, p.Large))
	require.ErrorIs(t, p.C.Discard(ctx, p.Large), fdbmodel.ErrNotFound)
	require.ErrorIs(t, p.C.Discard(ctx, p.IDs[layout.Ready]), fdbmodel.ErrTransition)
	require.Empty(t, p.Check(t).Problems)
	tx := p.DB.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.GetRange(p.C.Keys().All(), kv.RangeOptions{}).Wait(ctx)
	require.NoError(t, err)
	for _, item := range page.Items {
		// The done list may still name it, by value.
		require.False(t, bytes.Contains(item.Key, p.Large[:]))
	}
}
