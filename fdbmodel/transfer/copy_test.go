package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/fdbmodel/transfer"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// rowsOf returns all futures with all their records.
func rowsOf(t *testing.T, c *fdbmodel.Cluster) map[layout.ID]string {
	rows := map[layout.ID]string{}
	list, _, err := inspect.List(context.Background(), c, inspect.Filter{}, nil, 0)
	require.NoError(t, err)
	for i := range list {
		row := &list[i]
		args, err := c.Args(context.Background(), row.ID, row.Spec)
		require.NoError(t, err)
		var value []byte
		if row.Result != nil && row.Result.Object != "" {
			value = []byte(row.Result.Object) // it stays where it is
		} else if row.Result != nil {
			value, err = results.Of(c).Value(context.Background(), row.ID, row.Result)
			require.NoError(t, err)
		}
		rows[row.ID] = fmt.Sprintf("%v %+v %x %x", row.State(), row.Attempts, args, value)
	}
	return rows
}

func requireSameCluster(t *testing.T, from, to *fdbmodel.Cluster) {
	require.Equal(t, rowsOf(t, from), rowsOf(t, to))
	config := from.Config()
	config.Incarnation++
	require.Equal(t, config, to.Config())
	before, err := from.Counts(context.Background())
	require.NoError(t, err)
	after, err := to.Counts(context.Background())
	require.NoError(t, err)
	require.Equal(t, before, after)
	stored, err := modules.Of(from).List(context.Background())
	require.NoError(t, err)
	same, err := modules.Of(to).List(context.Background())
	require.NoError(t, err)
	require.Equal(t, stored, same)
	modeltest.RequireSound(t, to)
}

func TestMigrateTakesEverythingAlong(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	p.Enrich(t)
	p.Leave(t)
	stages := map[string]int64{}
	o := transfer.Options{
		Model: fdbmodel.Options{Clock: p.C.Clock()}, Progress: func(stage string, done, all int64) { stages[stage] = done },
	}
	db := modeltest.OpenMemory(t)
	report, err := transfer.Migrate(ctx, p.DB, db, "check", o)
	require.NoError(t, err)
	require.Equal(t, p.Futures(), report.Futures)
	require.Equal(t, map[string]int64{"copied": p.Futures(), "verified": p.Futures()}, stages)
	to, err := fdbmodel.Open(ctx, db, "check", fdbmodel.Options{Clock: p.C.Clock()})
	require.NoError(t, err)
	requireSameCluster(t, p.C, to)

	back := modeltest.OpenMemory(t)
	again, err := transfer.Migrate(ctx, db, back, "check", o)
	require.NoError(t, err)
	require.Equal(t, report, again, "the checksum does not depend on the store")
}

// TestMigrateTakesClaimsOfTheDeadAlong checks that the futures that a dead
// worker held go back to the pool in the new cluster.
func TestMigrateTakesClaimsOfTheDeadAlong(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	modeltest.DeclareDead(t, p.C, p.Worker.ID())
	db := modeltest.OpenMemory(t)
	_, err := transfer.Migrate(ctx, p.DB, db, "check", transfer.Options{IgnoreLive: true})
	require.NoError(t, err)
	to, err := fdbmodel.Open(ctx, db, "check", fdbmodel.Options{Clock: p.C.Clock()})
	require.NoError(t, err)
	row, err := to.Get(ctx, p.IDs[layout.Claimed])
	require.NoError(t, err)
	require.Equal(t, layout.Claimed, row.State())
	_, err = to.Register(ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 1}})
	require.NoError(t, err)
	row, err = to.Get(ctx, p.IDs[layout.Claimed])
	require.NoError(t, err)
	require.Equal(t, layout.Delayed, row.State())
	require.Equal(t, 1, row.Attempts.Suspicion())
	require.Zero(t, row.Attempts.Crashes)
	report := modeltest.RequireSound(t, to)
	require.Empty(t, report.Notes)
}

// TestMigrateTakesAssignmentsAlong checks that the futures that waited for a
// dead worker go back to the pool in the new cluster.
func TestMigrateTakesAssignmentsAlong(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	p.Enrich(t)
	p.Write(t, func(tx kv.Tx) { tx.Clear(p.C.Keys().Incoming()) })
	modeltest.DeclareDead(t, p.C, p.Worker.ID())
	db := modeltest.OpenMemory(t)
	_, err := transfer.Migrate(ctx, p.DB, db, "check", transfer.Options{IgnoreLive: true})
	require.NoError(t, err)
	to, err := fdbmodel.Open(ctx, db, "check", fdbmodel.Options{Clock: p.C.Clock()})
	require.NoError(t, err)
	assigned, _, err := inspect.Keys(ctx, to, layout.SubAssigned, nil, 0)
	require.NoError(t, err)
	require.NotEmpty(t, assigned)
	_, err = to.Register(ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 1}})
	require.NoError(t, err)
	assigned, _, err = inspect.Keys(ctx, to, layout.SubAssigned, nil, 0)
	require.NoError(t, err)
	require.Empty(t, assigned)
	modeltest.RequireSound(t, to)
}

// TestMigrateRefusesTheLiving looks at a store of many processes: a worker or
// session whose heartbeat changes is alive.
func TestMigrateRefusesTheLiving(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	virtual := p.C.Clock().(*clock.Virtual)
	shared := struct{ kv.Database }{p.DB}
	migrate := func(during func()) error {
		done := make(chan error)
		go func() {
			_, err := transfer.Migrate(ctx, shared, modeltest.OpenMemory(t), "check",
				transfer.Options{Model: fdbmodel.Options{Clock: virtual}})
			done <- err
		}()
		for {
			if due, waits := virtual.Next(); waits && due.After(virtual.Now()) {
				break
			}
			runtime.Gosched()
		}
		during()
		virtual.Advance(p.C.Config().DeadAfter)
		return <-done
	}
	err := migrate(func() {
		_, err := p.Worker.Heartbeat(ctx, layout.Heartbeat{Free: layout.Resources{Slots: 1}, Running: 1})
		require.NoError(t, err)
	})
	require.ErrorIs(t, err, fdbmodel.ErrLive)
	require.ErrorContains(t, err, string(p.Worker.ID()))
	err = migrate(func() {
		box := mailbox.Open(p.C, "s")
		require.NoError(t, box.Refresh(ctx))
		require.NoError(t, box.Refresh(ctx))
	})
	require.ErrorIs(t, err, fdbmodel.ErrLive)
	require.ErrorContains(t, err, "session s")
	require.NoError(t, migrate(func() {}), "a client whose sign of life is unchanged is dead")
}

// TestMigrateOfALocalStore does not wait for workers of an earlier opening:
// they can't be alive. The clock does not advance, so a wait would not end.
func TestMigrateOfALocalStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	disk, virtual := vfs.NewMem(), clock.NewVirtual(time.UnixMilli(1_900_000_000_000))
	for opening := range 2 {
		db, err := embedded.Open(ctx, "store", embedded.Options{FS: disk})
		require.NoError(t, err)
		if opening == 1 {
			report, err := transfer.Migrate(ctx, db, modeltest.OpenMemory(t), "check",
				transfer.Options{Model: fdbmodel.Options{Clock: virtual}})
			require.NoError(t, err)
			require.Equal(t, int64(1), report.Futures)
		} else {
			c, err := fdbmodel.Open(ctx, db, "check", fdbmodel.Options{Clock: virtual})
			require.NoError(t, err)
			_, err = c.Register(ctx, layout.WorkerInfo{Capacity: layout.Resources{Slots: 1}})
			require.NoError(t, err)
			require.NoError(t, mailbox.Open(c, "s").Refresh(ctx))
			_, err = c.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}}})
			require.NoError(t, err)
		}
		require.NoError(t, db.Close())
	}
}

func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, o := modeltest.Populate(t), transfer.Options{IgnoreLive: true}
	_, err := transfer.Migrate(ctx, modeltest.OpenMemory(t), modeltest.OpenMemory(t), "check", o)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	_, err = transfer.Migrate(ctx, p.DB, modeltest.OpenMemory(t), "Bad", o)
	require.ErrorIs(t, err, layout.ErrBadName)
	other := modeltest.Populate(t)
	before := other.Items(t)
	_, err = transfer.Migrate(ctx, p.DB, other.DB, "check", o)
	require.ErrorIs(t, err, transfer.ErrNotEmpty)
	require.Equal(t, before, other.Items(t))

	opened := modeltest.OpenMemory(t)
	_, err = fdbmodel.Open(ctx, opened, "check", fdbmodel.Options{Config: layout.Config{Shards: 2}})
	require.NoError(t, err)
	_, err = transfer.Migrate(ctx, p.DB, opened, "check", o)
	require.NoError(t, err, "a cluster that was opened and never used is empty")
	c, err := fdbmodel.Open(ctx, opened, "check", fdbmodel.Options{})
	require.NoError(t, err)
	config := p.C.Config()
	config.Incarnation++
	require.Equal(t, config, c.Config())

	p.Write(t, func(tx kv.Tx) { tx.Set(p.C.Keys().Global("unheard"), nil) })
	_, err = transfer.Migrate(ctx, p.DB, modeltest.OpenMemory(t), "check", o)
	require.ErrorIs(t, err, layout.ErrBadRecord)
	require.ErrorContains(t, err, "unheard")
}

// hookedStore runs a function before a commit of its choice.
type hookedStore struct {
	kv.Database
	commits int
	hook    func(commit int) error
}

func (h *hookedStore) Begin(o kv.Options) kv.Tx { return &hookedTx{h.Database.Begin(o), h} }

type hookedTx struct {
	kv.Tx
	store *hookedStore
}

func (h *hookedTx) Commit(ctx context.Context) (kv.Committed, error) {
	h.store.commits++
	if err := h.store.hook(h.store.commits); err != nil {
		h.Cancel()
		return kv.Committed{}, err
	}
	return h.Tx.Commit(ctx)
}

// TestMigrateStartsOver interrupts a migration at its first commits, and at
// some of those that only read.
func TestMigrateStartsOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, o := modeltest.Populate(t), transfer.Options{IgnoreLive: true, Rows: everyRow()}
	putRows(t, p.DB, someRows())
	cut, pace := errors.New("cut off"), 6
	if storetest.OnServer || testing.Short() {
		pace = 1
	}
	for at := 1; ; at += 1 + at/pace {
		db := modeltest.OpenMemory(t)
		hooked := &hookedStore{Database: db, hook: func(n int) error {
			if n == at {
				return cut
			}
			return nil
		}}
		_, err := transfer.Migrate(ctx, p.DB, hooked, "check", o)
		if err == nil {
			require.Greater(t, at, 10)
			return
		}
		require.ErrorIs(t, err, cut)
		_, err = fdbmodel.Open(ctx, db, "check", fdbmodel.Options{})
		if at > 1 {
			require.ErrorIs(t, err, fdbmodel.ErrIncomplete)
		}
		_, err = transfer.Migrate(ctx, p.DB, db, "check", o)
		require.NoError(t, err, "%d", at)
		require.Equal(t, someRows(), rowsIn(t, db), "%d", at)
		c, err := fdbmodel.Open(ctx, db, "check", fdbmodel.Options{Clock: p.C.Clock()})
		require.NoError(t, err)
		requireSameCluster(t, p.C, c)
	}
}

// changeWhenVerified returns a progress that changes the last shard once
// everything was copied.
func changeWhenVerified(t *testing.T, p *modeltest.Population) func(stage string, done, all int64) {
	changed := false
	return func(stage string, _, _ int64) {
		if stage == "verified" && !changed {
			changed = true
			p.Write(t, func(tx kv.Tx) {
				tx.Set(p.C.Keys().Count(p.C.Keys().Shards-1, "q", "g", layout.Ready), layout.EncodeCounter(1))
			})
		}
	}
}

// TestMigrateNoticesChanges changes the source after it was read.
func TestMigrateNoticesChanges(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	db := modeltest.OpenMemory(t)
	_, err := transfer.Migrate(ctx, p.DB, db, "check",
		transfer.Options{IgnoreLive: true, Progress: changeWhenVerified(t, p)})
	require.ErrorIs(t, err, transfer.ErrChanged)
	_, err = fdbmodel.Open(ctx, db, "check", fdbmodel.Options{})
	require.ErrorIs(t, err, fdbmodel.ErrIncomplete)
}

// TestMigrateIsReplaced begins a second copy while the first one writes.
func TestMigrateIsReplaced(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, o := modeltest.Populate(t), transfer.Options{IgnoreLive: true}
	db := modeltest.OpenMemory(t)
	hooked := &hookedStore{Database: db, hook: func(n int) error {
		if n == 2 {
			_, err := transfer.Migrate(ctx, p.DB, db, "check", o)
			return err
		}
		return nil
	}}
	_, err := transfer.Migrate(ctx, p.DB, hooked, "check", o)
	require.ErrorIs(t, err, transfer.ErrCopyReplaced)
	c, err := fdbmodel.Open(ctx, db, "check", fdbmodel.Options{Clock: p.C.Clock()})
	require.NoError(t, err)
	requireSameCluster(t, p.C, c)
}

// TestMigrateUnderFaults copies over a store whose commits fail, end unknown
// and commit late.
func TestMigrateUnderFaults(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, seeds := modeltest.Populate(t), uint64(20)
	if testing.Short() {
		seeds = 8
	}
	putRows(t, p.DB, someRows())
	for seed := range seeds {
		db := modeltest.OpenMemory(t)
		faults := faultkv.Wrap(db, faultkv.Everywhere(seed, 0.1))
		from := faultkv.Wrap(p.DB, faultkv.Everywhere(seed, 0.05))
		sleep := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		o := transfer.Options{
			IgnoreLive: true, Rows: everyRow(), Model: fdbmodel.Options{Sleep: sleep, Clock: p.C.Clock()},
		}
		_, err := transfer.Migrate(ctx, from, faults, "check", o)
		require.NoError(t, err, "seed %d", seed)
		faults.Flush()
		require.Equal(t, someRows(), rowsIn(t, db), "seed %d", seed)
		c, err := fdbmodel.Open(ctx, faults, "check", fdbmodel.Options{Sleep: sleep, Clock: p.C.Clock()})
		require.NoError(t, err)
		requireSameCluster(t, p.C, c)
	}
}

// TestMoveOfRandomClusters moves clusters in states left by random operations
// under faults: to another store, and by a backup to a third.
func TestMoveOfRandomClusters(t *testing.T) {
	t.Parallel()
	seeds, steps, first := uint64(12), 40, uint64(1)
	if os.Getenv("FUTURA_LONG") != "" {
		seeds, steps, first = 300, 120, rand.Uint64()
		t.Logf("first seed %d", first)
	}
	if storetest.OnServer {
		seeds /= 4
	}
	ctx := context.Background()
	for seed := first; seed < first+seeds; seed++ {
		m := modeltest.NewMachine(t, seed)
		for range steps {
			m.Step()
		}
		m.Faults.Flush()
		model, moved, restored := fdbmodel.Options{Clock: m.Clock}, modeltest.OpenMemory(t), modeltest.OpenMemory(t)
		report, err := transfer.Migrate(ctx, m.Store, moved, "machine", transfer.Options{IgnoreLive: true, Model: model})
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, int64(len(m.Rows)), report.Futures, "seed %d", seed)
		var file memoryFile
		_, err = transfer.Backup(ctx, moved, "machine", &file, transfer.Options{Model: model})
		require.NoError(t, err, "seed %d", seed)
		again, err := transfer.Restore(ctx, restored, "", &file, transfer.Options{Model: model})
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, report.SHA256, again.SHA256, "seed %d", seed)
		c, err := fdbmodel.Open(ctx, restored, "machine", model)
		require.NoError(t, err)
		require.Equal(t, rowsOf(t, m.C), rowsOf(t, c), "seed %d", seed)
	}
}
