package audit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/storetest"
)

// ran counts how often each future was realized.
type ran struct {
	mu    sync.Mutex
	times map[layout.ID]int
}

// work has a worker claim and finish until ctx ends.
func (r *ran) work(ctx context.Context, w *fdbmodel.Registration) error {
	answer, err := w.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 8}, Max: 8})
	if err != nil {
		return err
	}
	for i := range answer.Futures {
		f := &answer.Futures[i]
		outcomes, err := w.Finish(ctx, []fdbmodel.Completion{{Future: f, Result: &layout.Result{}}})
		if err != nil {
			return err
		}
		r.mu.Lock()
		if outcomes[0] == fdbmodel.Applied {
			r.times[f.ID]++
		}
		r.mu.Unlock()
	}
	return nil
}

// left repairs the cluster, and says what is missing until all futures are realized.
func (r *ran) left(t *testing.T, c *fdbmodel.Cluster, ids []layout.ID) string {
	ctx := context.Background()
	report, err := audit.Check(ctx, c, audit.Options{})
	require.NoError(t, err)
	if report.Repairable() > 0 {
		_, err = audit.Repair(ctx, c, report, audit.Options{})
		require.NoError(t, err)
		return fmt.Sprint("to be repaired: ", report.Problems)
	}
	counts, err := c.Counts(ctx)
	require.NoError(t, err)
	// A worker may not have been told yet of an end that the counts have.
	r.mu.Lock()
	defer r.mu.Unlock()
	if counts.Total(layout.Realized) < int64(len(ids)) || len(r.times) < len(ids) {
		return fmt.Sprintf("%d submitted, %d run, counted %v", len(ids), len(r.times), counts)
	}
	return ""
}

// janitor does once what a janitor does.
func janitor(ctx context.Context, c *fdbmodel.Cluster) error {
	_, _, due := maintenance.Of(c).PromoteDue(ctx)
	_, _, admitted := lanes.Of(c).AdmitDue(ctx)
	_, _, resolved := c.ResolveEdges(ctx)
	return errors.Join(due, admitted, resolved)
}

// TestRepairsBesideWorkers damages and repairs a cluster while futures are submitted and run. None is
// lost, and none runs twice unless the damage was to offer it twice.
func TestRepairsBesideWorkers(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"keys go": true, "keys go and come back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repairBeside(t, gone)
		})
	}
}

func repairBeside(t *testing.T, gone bool) {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	db := storetest.New(t)
	c, err := fdbmodel.Open(ctx, db, "busy", fdbmodel.Options{Config: layout.Config{Shards: 2}})
	require.NoError(t, err)
	require.NoError(t, lanes.Of(c).SetKind(ctx, "narrow", layout.LaneKind{Width: 2}))
	all := &ran{times: map[layout.ID]int{}}
	var group, strikers sync.WaitGroup
	failures := make(chan error, 10)
	loop := func(ctx context.Context, group *sync.WaitGroup, fn func() error) {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := fn(); err != nil && ctx.Err() == nil {
					failures <- err
					return
				}
			}
		})
	}
	for range 2 {
		w, err := c.Register(ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 8}})
		require.NoError(t, err)
		loop(running, &group, func() error { return all.work(running, w) })
	}
	loop(running, &group, func() error { return janitor(running, c) })

	striking, rest := context.WithCancel(ctx)
	defer rest()
	v := &vandal{c: c, db: db, random: rand.New(rand.NewPCG(1, 2)), gone: gone}
	loop(striking, &strikers, func() error { v.strike(t, 3); return nil })
	loop(striking, &strikers, func() error {
		report, err := audit.Check(striking, c, audit.Options{})
		if err == nil {
			_, err = audit.Repair(striking, c, report, audit.Options{})
		}
		return err
	})
	var ids []layout.ID
	for n := range storetest.Fewer(30, 10) {
		subs := make([]fdbmodel.Submission, 10)
		for i := range subs {
			spec := layout.Spec{Function: "go:f", Tags: []string{fmt.Sprint(n % 3)}}
			switch i % 5 {
			case 1:
				spec.Lane = layout.Lane{Kind: "narrow", Key: fmt.Sprint(n % 4)}
			case 2:
				subs[i].Unique = &fdbmodel.Unique{Key: fmt.Sprint(n, i)}
			case 3:
				subs[i].Inputs = ids[max(0, len(ids)-3):]
			case 4:
				subs[i].NotBefore = c.Now().Add(time.Millisecond)
			}
			subs[i].Spec = spec
		}
		got, err := c.Submit(ctx, subs)
		require.NoError(t, err)
		for i := range got {
			ids = append(ids, got[i].ID)
		}
	}
	rest()
	strikers.Wait()
	within := time.Now().Add(2 * time.Minute)
	for left := all.left(t, c, ids); left != ""; left = all.left(t, c, ids) {
		select {
		case err := <-failures:
			require.NoError(t, err, "a loop ended")
		default:
			require.True(t, time.Now().Before(within), left)
		}
	}
	stop()
	group.Wait()
	require.Empty(t, failures)
	modeltest.RequireSound(t, c)
	for _, id := range ids {
		require.NotZero(t, all.times[id], "future %s", id)
		require.True(t, !gone || all.times[id] == 1, "future %s ran %d times", id, all.times[id])
	}
}

// TestInterruptedRepairs ends repairs before each of their commits, and repairs again.
func TestInterruptedRepairs(t *testing.T) {
	t.Parallel()
	for n := 1; n < storetest.Fewer(12, 2); n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			p := modeltest.Populate(t)
			v := &vandal{c: p.C, db: p.DB, random: rand.New(rand.NewPCG(3, 4))}
			v.strike(t, 300)
			before := belongings(t, p)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			left := n
			db := &modeltest.BeforeCommits{Database: p.DB, Call: map[string]func(){}}
			var count func()
			count = func() {
				if left--; left == 0 {
					cancel()
				}
				db.Call[repairTag] = count
			}
			db.Call[repairTag] = count
			o := fdbmodel.Options{Config: p.C.Config(), Clock: p.C.Clock()}
			c, err := fdbmodel.Open(context.Background(), db, "check", o)
			require.NoError(t, err)
			_, err = audit.Repair(ctx, c, p.Check(t), audit.Options{})
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, repair(t, p.C).Problems)
			require.Equal(t, before, belongings(t, p))
		})
	}
}
