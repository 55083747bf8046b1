package fdbmodel

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// CountedRanges is a store that counts the ranges that transactions with a tag
// read from their snapshot.
type CountedRanges struct {
	kv.Database
	Tag    string
	Ranges atomic.Int64
}

type countedTx struct {
	kv.Tx
	db *CountedRanges
}

type countedReader struct {
	kv.Reader
	db *CountedRanges
}

func (d *CountedRanges) Begin(o kv.Options) kv.Tx {
	tx := d.Database.Begin(o)
	if o.Tag != d.Tag {
		return tx
	}
	return countedTx{tx, d}
}

func (t countedTx) Snapshot() kv.Reader { return countedReader{t.Tx.Snapshot(), t.db} }

func (r countedReader) GetRange(span kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	r.db.Ranges.Add(1)
	return r.Reader.GetRange(span, o)
}

// TestAWokenWorkerLooksWhereItsWorkIs wakes an idle worker of a cluster with
// many shards, within its process and through the store.
func TestAWokenWorkerLooksWhereItsWorkIs(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		t.Run(map[bool]string{false: "process", true: "store"}[elsewhere], func(t *testing.T) {
			t.Parallel()
			const shards = 64
			ctx, db := context.Background(), &CountedRanges{Database: storetest.New(t), Tag: "futura-claim"}
			c, err := Open(ctx, db, "hint", Options{Config: layout.Config{Shards: shards}})
			require.NoError(t, err)
			submitter := c
			if elsewhere {
				submitter, err = Open(ctx, db, "hint", Options{})
				require.NoError(t, err)
			}
			w := &waker{t, ctx, db, c}
			worker, thief := w.register(9, "go:f"), w.register(9, "go:f")
			wanted := ClaimRequest{Free: worker.info.Capacity, Max: 8}
			claim := func(r *Registration) int {
				answer, err := r.Claim(ctx, wanted)
				require.NoError(t, err)
				return len(answer.Futures)
			}
			claim(worker) // meets the classes
			submit := func() {
				hint := worker.RequestHint(wanted)
				defer hint.Cancel()
				watch := w.idle(worker)
				_, err := submitter.Submit(ctx, []Submission{{Spec: layout.Spec{Function: "go:f"}}})
				require.NoError(t, err)
				if elsewhere {
					<-watch.Done()
				} else {
					<-hint.C()
				}
			}
			for range 4 {
				submit()
				before := db.Ranges.Load()
				require.Equal(t, 1, claim(worker))
				require.Less(t, db.Ranges.Load()-before, int64(shards/4))
			}
			// What it was woken for is gone, and something else has come unheard.
			submit()
			require.Equal(t, 1, claim(thief))
			tx := db.Begin(kv.Options{})
			_, err = submitter.SubmitTx(ctx, tx, []Submission{{Spec: layout.Spec{Function: "go:f"}}})
			require.NoError(t, err)
			_, err = tx.Commit(ctx)
			require.NoError(t, err)
			require.Equal(t, 1, claim(worker))
		})
	}
}

// TestHintsWhileAWokenWorkerBeginsAreMissed wakes a worker for one of several
// futures in several shards.
func TestHintsWhileAWokenWorkerBeginsAreMissed(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), storetest.New(t)
	c, err := Open(ctx, db, "hint", Options{Config: layout.Config{Shards: 64}})
	require.NoError(t, err)
	w := &waker{t, ctx, db, c}
	worker := w.register(9, "go:f")
	wanted := ClaimRequest{Free: worker.info.Capacity, Max: 8}
	for claimed := 0; claimed < 6; {
		answer, err := worker.Claim(ctx, wanted)
		require.NoError(t, err)
		claimed += len(answer.Futures)
		hint := worker.RequestHint(wanted)
		require.Equal(t, claimed == 1, hint.Missed(), "%d claimed", claimed)
		if claimed == 0 {
			for shard := range byte(6) {
				_, err := c.Submit(ctx, []Submission{{ID: layout.ID{1, 15: shard}, Spec: layout.Spec{Function: "go:f"}}})
				require.NoError(t, err)
			}
			<-hint.C()
		}
		hint.Cancel()
	}
}

// hintedBy returns the shard that a hint within the process sends a worker to.
func hintedBy(t *testing.T, r *Registration, act func()) int {
	t.Helper()
	hint := r.RequestHint(ClaimRequest{Free: r.info.Capacity})
	defer hint.Cancel()
	act()
	require.Len(t, hint.C(), 1, "it is woken")
	woken := r.wakes.AskWoken(nil)
	require.True(t, woken.IsKnown())
	return woken.Shard()
}

// TestAFutureThatEntersThePoolLeadsToItsShard has futures that enter the pool
// after their submit.
func TestAFutureThatEntersThePoolLeadsToItsShard(t *testing.T) {
	t.Parallel()
	const shards = 64
	ctx, clk := context.Background(), clock.NewVirtual(time.UnixMilli(1_900_000_000_000))
	db := storetest.New(t)
	c, err := Open(ctx, db, "hint", Options{Clock: clk, Config: layout.Config{Shards: shards}})
	require.NoError(t, err)
	worker := (&waker{t, ctx, db, c}).register(9, "go:f")
	id := func() layout.ID {
		for {
			ids, err := c.DrawIDs(1)
			require.NoError(t, err)
			if ids[0].Shard(shards) > 0 {
				return ids[0]
			}
		}
	}
	retried, delayed := id(), id()
	_, err = c.Submit(ctx, []Submission{
		{ID: retried, Spec: layout.Spec{Function: "go:f"}},
		{ID: delayed, Spec: layout.Spec{Function: "go:f"}, NotBefore: clk.Now().Add(time.Hour)},
	})
	require.NoError(t, err)
	_, _, err = c.Cancel(ctx, retried, "")
	require.NoError(t, err)
	require.Equal(t, retried.Shard(shards), hintedBy(t, worker, func() { require.NoError(t, c.Retry(ctx, retried)) }))
	clk.Advance(2 * time.Hour)
	require.Equal(t, delayed.Shard(shards), hintedBy(t, worker, func() {
		promoted, err := c.promoteNow(ctx, delayed)
		require.NoError(t, err)
		require.True(t, promoted)
	}))
}

// TestAHintIsUsedOnce has a worker in the ring that finds nothing where it was
// sent to.
func TestAHintIsUsedOnce(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		w := newWaker(t)
		submitter := w.c
		if elsewhere {
			var err error
			submitter, err = Open(w.ctx, w.db, "wake", Options{})
			require.NoError(t, err)
		}
		worker, thief := w.register(9, "go:f"), w.register(9, "go:f")
		hint := worker.RequestHint(ClaimRequest{Free: worker.info.Capacity})
		defer hint.Cancel()
		w.idle(worker)
		answers, err := submitter.Submit(w.ctx, []Submission{{Spec: layout.Spec{Function: "go:f"}}})
		require.NoError(t, err)
		require.Len(t, claimedBy(w, thief, 1), 1)
		for _, want := range []int{answers[0].ID.Shard(w.c.config.Shards), -1, -1} {
			tx := w.db.Begin(kv.Options{})
			woken := worker.wakes.AskWoken(tx)
			if !woken.IsKnown() {
				require.NoError(t, woken.Wait(w.ctx))
			}
			tx.Cancel()
			require.Equal(t, want, woken.Shard())
		}
		require.Empty(t, claimedBy(w, worker, 1))
	}
}
