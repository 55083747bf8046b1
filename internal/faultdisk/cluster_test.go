package faultdisk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/fdbmodel/transfer"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/faultdisk"
)

const cluster = "images"

var hashSeed = maphash.MakeSeed()

// digest is a hash of all rows of a store.
func digest(ctx context.Context, db kv.Database) (uint64, error) {
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for all := (kv.Range{End: []byte{0xff}}); ; {
		page, err := tx.Snapshot().GetRange(all, kv.RangeOptions{}).Wait(ctx)
		if err != nil {
			return 0, err
		}
		for _, item := range page.Items {
			fmt.Fprintf(&h, "%d %d ", len(item.Key), len(item.Value))
			_, _ = h.Write(item.Key)
			_, _ = h.Write(item.Value)
		}
		if !page.More {
			return h.Sum64(), nil
		}
		all.Begin = append(bytes.Clone(page.Items[len(page.Items)-1].Key), 0)
	}
}

// ledger is a store that remembers what its rows were after each commit, and
// compares images of it with that.
type ledger struct {
	kv.Database
	world *world
	dir   string
	// acked is the digest after the last commit, and waiting are those of images
	// that were taken during the present one.
	acked   uint64
	waiting []uint64
}

func (l *ledger) Begin(o kv.Options) kv.Tx { return &ledgerTx{l.Database.Begin(o), l} }

// Traits passes on those of the store.
func (l *ledger) Traits() kv.Traits { return kv.TraitsOf(l.Database) }

type ledgerTx struct {
	kv.Tx
	ledger *ledger
}

func (t *ledgerTx) Commit(ctx context.Context) (kv.Committed, error) {
	c, err := t.Tx.Commit(ctx)
	if err == nil {
		t.ledger.settle()
	}
	return c, err
}

// settle compares the images that were taken since the last time with what the
// store had then and has now.
func (l *ledger) settle() {
	now, err := digest(context.Background(), l.Database)
	require.NoError(l.world.t, err)
	for _, image := range l.waiting {
		if image != l.acked && image != now {
			require.Fail(l.world.t, "an image has neither what was acknowledged nor the next commit", l.dir)
		}
	}
	l.acked, l.waiting = now, nil
}

// world is a cluster on a disk of which images are taken at calls.
type world struct {
	t      *testing.T
	ctx    context.Context
	random *rand.Rand
	clock  *clock.Virtual
	disk   *faultdisk.Disk
	stores map[string]*ledger
	every  int
	calls  int
	images int
}

func newWorld(t *testing.T, seed uint64, every int) *world {
	w := &world{t: t, ctx: context.Background(), random: rand.New(rand.NewPCG(seed, 2)), every: every,
		clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000)), disk: faultdisk.New(), stores: map[string]*ledger{}}
	w.disk.Before = func(call faultdisk.Call) error {
		if w.calls++; w.calls%w.every == 0 {
			w.look(call)
		}
		return nil
	}
	return w
}

func (w *world) options(disk *faultdisk.Disk) embedded.Options {
	return embedded.Options{FS: disk, Clock: w.clock, Inline: true, SegmentSize: 16 << 10, CheckpointBytes: 64 << 10,
		LargeValue: 1 << 10}
}

func (w *world) model() fdbmodel.Options {
	seed := [32]byte{byte(w.calls), byte(w.calls >> 8), byte(w.calls >> 16)}
	return fdbmodel.Options{Clock: w.clock, Random: rand.NewChaCha8(seed),
		Sleep:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Config: layout.Config{Shards: 2, Heartbeat: time.Second, DeadAfter: 3 * time.Second, Retention: time.Minute}}
}

// open opens a store and keeps a ledger of it.
func (w *world) open(dir string) *ledger {
	l := w.stores[dir]
	if l == nil {
		l = &ledger{world: w, dir: dir}
		w.stores[dir] = l
		empty := embedded.OpenMemory(embedded.Options{})
		var err error
		l.acked, err = digest(w.ctx, empty)
		require.NoError(w.t, err)
		require.NoError(w.t, empty.Close())
	}
	store, err := embedded.Open(w.ctx, dir, w.options(w.disk))
	require.NoError(w.t, err)
	l.Database = store
	l.settle()
	return l
}

// look takes images of the disk, before a call, and checks the clusters in them.
func (w *world) look(call faultdisk.Call) {
	for _, loss := range faultdisk.Losses() {
		w.images++
		image := w.disk.Image(loss, w.random)
		for dir, l := range w.stores {
			store, err := embedded.Open(w.ctx, dir, w.options(image))
			require.NoError(w.t, err, "before %v, loss %d", call, loss)
			sum, err := digest(w.ctx, store)
			require.NoError(w.t, err)
			l.waiting = append(l.waiting, sum)
			o := w.model()
			o.Existing = true
			c, err := fdbmodel.Open(w.ctx, store, cluster, o)
			if !errors.Is(err, fdbmodel.ErrNotFound) && !errors.Is(err, fdbmodel.ErrIncomplete) {
				require.NoError(w.t, err)
				report, err := audit.Check(w.ctx, c, audit.Options{})
				require.NoError(w.t, err)
				require.Empty(w.t, report.Problems, "before %v, loss %d", call, loss)
			}
			require.NoError(w.t, store.Close())
		}
	}
}

// work lets futures be submitted, claimed, finished, cancelled and swept.
func (w *world) work(rounds int) {
	var c *fdbmodel.Cluster
	var worker *fdbmodel.Registration
	store := w.stores["store"]
	for i := range rounds {
		if i%10 == 0 {
			if store != nil {
				require.NoError(w.t, worker.Leave(w.ctx))
				require.NoError(w.t, store.Close())
			}
			store = w.open("store")
			var err error
			c, err = fdbmodel.Open(w.ctx, store, cluster, w.model())
			require.NoError(w.t, err)
			worker, err = c.Register(w.ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 8}})
			require.NoError(w.t, err)
		}
		w.round(c, worker, i)
		if i%13 == 0 {
			require.NoError(w.t, store.Database.(*embedded.Store).Checkpoint(w.ctx))
		}
	}
	require.NoError(w.t, worker.Leave(w.ctx))
	require.NoError(w.t, store.Close())
}

func (w *world) round(c *fdbmodel.Cluster, worker *fdbmodel.Registration, i int) {
	w.clock.Advance(time.Second)
	sizes := []int{3, 700, 5000, 30_000}
	subs := []fdbmodel.Submission{
		{Spec: layout.Spec{Function: "go:f", MaxRetries: 1}, Args: make([]byte, sizes[i%4])},
		{Spec: layout.Spec{Function: "go:f"}, Args: []byte("x")},
	}
	submitted, err := c.Submit(w.ctx, subs)
	require.NoError(w.t, err)
	answer, err := worker.Claim(w.ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 8}, Max: 1 + i%3})
	require.NoError(w.t, err)
	var done []fdbmodel.Completion
	for n := range answer.Futures {
		f := &answer.Futures[n]
		completion := fdbmodel.Completion{Future: f, Result: &layout.Result{Value: []byte("v")}}
		switch (i + n) % 5 {
		case 0:
			ref, err := results.Of(c).Store(w.ctx, f.ID, f.Token, make([]byte, 20_000))
			require.NoError(w.t, err)
			completion.Result = &layout.Result{ValueRef: &ref, Size: ref.Size}
		case 1:
			completion.Result, completion.Exception = nil, &layout.Exception{Kind: layout.KindError, Message: "m"}
		}
		done = append(done, completion)
	}
	if len(done) > 0 {
		_, err = worker.Finish(w.ctx, done)
		require.NoError(w.t, err)
	}
	if i%4 == 0 {
		_, _, err = c.Cancel(w.ctx, submitted[1].ID, "not needed")
		require.NoError(w.t, err)
	}
	if i%9 == 0 {
		w.clock.Advance(time.Minute)
		_, _, err = maintenance.Of(c).ExpireDone(w.ctx)
		require.NoError(w.t, err)
	}
}

// migrate copies the cluster to another store of the disk.
func (w *world) migrate() {
	from, to := w.open("store"), w.open("young")
	_, err := transfer.Migrate(w.ctx, from, to, cluster, transfer.Options{Model: w.model(), IgnoreLive: true})
	require.NoError(w.t, err)
	require.NoError(w.t, from.Close())
	require.NoError(w.t, to.Close())
}

// TestImagesOfACluster fails the power before calls of a cluster that works and is
// migrated: in each image are exactly the commits that were acknowledged, and
// perhaps the one under way, and the invariants of the model hold.
func TestImagesOfACluster(t *testing.T) {
	t.Parallel()
	rounds, every := 30, 31
	if os.Getenv("FUTURA_LONG") == "1" {
		rounds, every = 60, 4
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := newWorld(t, seed, every)
	w.work(rounds)
	w.migrate()
	fmt.Printf("crash images of a cluster: %d\n", w.images)
	require.Greater(t, w.images, 50)
}
