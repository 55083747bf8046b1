package fdbmodel

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/embedded"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

// population is a cluster with a future in each state and of each kind.
type population struct {
	c      *Cluster
	db     kv.Database
	worker *Registration
	ids    map[State]ID
	large  ID // realized, with chunks
	middle ID // ready, with a key for its arguments
	claim  Token
}

func populate(t *testing.T) *population {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	c, err := Open(ctx, db, "check", Options{Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000))})
	require.NoError(t, err)
	p := &population{c: c, db: db, ids: map[State]ID{}}
	_, err = c.PutModule(ctx, []byte("not really a module"), "alias")
	require.NoError(t, err)
	p.worker, err = c.Register(ctx, WorkerInfo{Functions: []string{"go:f"}, Capacity: Resources{Slots: 9}})
	require.NoError(t, err)
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
	p.ids[Failed] = submit(10)
	finish(Completion{Future: claim(), Exception: &Exception{Kind: KindError, Message: "m"}})
	p.ids[Claimed] = submit(10)
	p.claim = claim().Token
	got, err := c.Submit(ctx, []Submission{{Spec: Spec{Function: "go:f"}, NotBefore: c.Now().Add(time.Hour)}})
	require.NoError(t, err)
	p.ids[Delayed] = got[0].ID
	p.ids[Ready] = submit(10)
	p.middle = submit(5000)
	return p
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
	require.Equal(t, int64(7), report.Futures)
}

func TestCheckFindsEachBrokenInvariant(t *testing.T) {
	t.Parallel()
	spec := func(p *population, id ID) *Spec {
		row, err := p.c.Get(context.Background(), id)
		require.NoError(t, err)
		return row.Spec
	}
	record := func(v any) []byte {
		b, err := encodeRecord(v)
		require.NoError(t, err)
		return b
	}
	for name, b := range map[string]struct {
		want Invariant
		how  func(*population, kv.Tx)
	}{
		"ready key gone": {InvariantPlace, func(p *population, tx kv.Tx) {
			tx.Clear(p.c.keys.ready(p.ids[Ready], spec(p, p.ids[Ready])))
		}},
		"ready key of another function": {InvariantPlace, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.ready(p.ids[Ready], spec(p, p.ids[Ready])), []byte("go:other"))
		}},
		"delayed key gone": {InvariantPlace, func(p *population, tx kv.Tx) {
			row, err := p.c.Get(context.Background(), p.ids[Delayed])
			require.NoError(t, err)
			tx.Clear(p.c.keys.delayed(p.ids[Delayed], row.Attempts.Due))
		}},
		"claimed future in the index": {InvariantPlace, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.ready(p.ids[Claimed], spec(p, p.ids[Claimed])), []byte("go:f"))
		}},
		"index key of nobody": {InvariantStray, func(p *population, tx kv.Tx) {
			id := p.ids[Ready]
			id[3]++
			tx.Set(p.c.keys.ready(id, spec(p, p.ids[Ready])), []byte("go:f"))
		}},
		"delayed key of nobody": {InvariantStray, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.delayed(p.ids[Ready], 12345), nil)
		}},
		"claim that no list has": {InvariantClaim, func(p *population, tx kv.Tx) {
			tx.Clear(p.c.keys.claims(p.claim.Worker, p.claim.Sequence))
		}},
		"result without claim": {InvariantRecords, func(p *population, tx kv.Tx) {
			tx.Clear(p.c.keys.state(p.ids[Realized], stateClaim))
		}},
		"cancel of a realized future": {InvariantRecords, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.state(p.ids[Realized], stateCancel), record(&CancelRequest{}))
		}},
		"failure without attempt": {InvariantRecords, func(p *population, tx kv.Tx) {
			tx.Clear(p.c.keys.state(p.ids[Failed], stateAttempts))
		}},
		"state without spec": {InvariantRecords, func(p *population, tx kv.Tx) {
			tx.Clear(p.c.keys.spec(p.ids[Failed]))
		}},
		"chunk gone": {InvariantChunks, func(p *population, tx kv.Tx) {
			tx.Clear(p.c.keys.chunk(p.large, *spec(p, p.large).ArgsRef, 1))
		}},
		"arguments gone": {InvariantArgs, func(p *population, tx kv.Tx) { tx.Clear(p.c.keys.args(p.middle)) }},
		"counter off": {InvariantCounts, func(p *population, tx kv.Tx) {
			id := p.ids[Ready]
			tx.Atomic(kv.Add, p.c.keys.count(id.shard(p.c.keys.shards), DefaultQueue, "", Ready), littleEndian(1))
		}},
		"counter gone": {InvariantCounts, func(p *population, tx kv.Tx) {
			id := p.ids[Ready]
			tx.Clear(p.c.keys.count(id.shard(p.c.keys.shards), DefaultQueue, "", Ready))
		}},
		"heartbeat of the dead": {InvariantFence, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.worker("gone", workerHeartbeat), record(&Heartbeat{}))
		}},
		"idle and dead": {InvariantFence, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.idle(DefaultQueue, "gone"), record(&Resources{}))
		}},
		"bytes that are no record": {InvariantReadable, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.spec(p.ids[Ready]), []byte{1, 0xc1})
		}},
		"key that nobody writes": {InvariantKnown, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.global("what"), nil)
		}},
		"key in a shard that nobody writes": {InvariantKnown, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.shard(3, "what"), nil)
		}},
		"alias of no module": {InvariantModule, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.alias("lost"), record(&aliasRecord{CID: "bafk"}))
		}},
		"piece of a module gone": {InvariantModule, func(p *population, tx kv.Tx) {
			cid, err := ModuleCID([]byte("not really a module"))
			require.NoError(t, err)
			tx.Clear(p.c.keys.codeBody(cid, 0))
		}},
		"record of a newer version": {InvariantNewer, func(p *population, tx kv.Tx) {
			tx.Set(p.c.keys.spec(p.ids[Claimed]), []byte{recordVersion + 1})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := populate(t)
			p.write(t, func(tx kv.Tx) { b.how(p, tx) })
			report := p.check(t)
			var found []Invariant
			for _, problem := range report.Problems {
				found = append(found, problem.Invariant)
				require.NotEmpty(t, problem.Text)
				require.NotEmpty(t, problem.Keys)
			}
			require.Contains(t, found, b.want, "%+v", report.Problems)
		})
	}
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
