package fdbmodel

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

	"github.com/futura-run/futura/fdbmodel/embedded"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

func openMemory(t *testing.T) *embedded.Store {
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// leave ends what is alive of a population: its worker leaves with its claim,
// its session's record goes.
func (p *population) leave(t *testing.T) {
	p.write(t, func(tx kv.Tx) { tx.Clear(p.c.keys.incoming()) })
	require.NoError(t, p.worker.Leave(context.Background()))
	sessions, err := p.c.Sessions(context.Background())
	require.NoError(t, err)
	for session := range sessions {
		require.NoError(t, p.c.DropSession(context.Background(), session))
	}
}

// rowsOf returns all futures with all that is theirs.
func rowsOf(t *testing.T, c *Cluster) map[ID]string {
	rows := map[ID]string{}
	list, _, err := c.List(context.Background(), Filter{}, nil, 0)
	require.NoError(t, err)
	for i := range list {
		row := &list[i]
		args, err := c.Args(context.Background(), row.ID, row.Spec)
		require.NoError(t, err)
		var value []byte
		if row.Result != nil {
			value, err = c.ResultValue(context.Background(), row.ID, row.Result)
			require.NoError(t, err)
		}
		rows[row.ID] = fmt.Sprintf("%v %+v %x %x", row.State(), row.Attempts, args, value)
	}
	return rows
}

func requireSameCluster(t *testing.T, from, to *Cluster) {
	require.Equal(t, rowsOf(t, from), rowsOf(t, to))
	require.Equal(t, from.Config(), to.Config())
	before, err := from.Counts(context.Background())
	require.NoError(t, err)
	after, err := to.Counts(context.Background())
	require.NoError(t, err)
	require.Equal(t, before, after)
	modules, err := from.Modules(context.Background())
	require.NoError(t, err)
	same, err := to.Modules(context.Background())
	require.NoError(t, err)
	require.Equal(t, modules, same)
	report, err := to.Check(context.Background(), CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

func TestMigrateTakesEverythingAlong(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := populate(t)
	p.enrich(t)
	p.leave(t)
	stages := map[string]int64{}
	o := CopyOptions{
		Model: Options{Clock: p.c.clock}, Progress: func(stage string, done, all int64) { stages[stage] = done },
	}
	db := openMemory(t)
	report, err := Migrate(ctx, p.db, db, "check", o)
	require.NoError(t, err)
	require.Equal(t, int64(9), report.Futures)
	require.Equal(t, map[string]int64{"copied": 9, "verified": 9}, stages)
	to, err := Open(ctx, db, "check", Options{Clock: p.c.clock})
	require.NoError(t, err)
	requireSameCluster(t, p.c, to)

	back := openMemory(t)
	again, err := Migrate(ctx, db, back, "check", o)
	require.NoError(t, err)
	require.Equal(t, report, again, "the checksum does not depend on the store")
}

// TestMigrateTakesClaimsOfTheDeadAlong has what a dead worker held go back to the pool in
// the new cluster.
func TestMigrateTakesClaimsOfTheDeadAlong(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := populate(t)
	_, err := p.c.DeclareDead(ctx, p.worker.ID(), beatOf(t, p))
	require.NoError(t, err)
	db := openMemory(t)
	_, err = Migrate(ctx, p.db, db, "check", CopyOptions{IgnoreLive: true})
	require.NoError(t, err)
	to, err := Open(ctx, db, "check", Options{Clock: p.c.clock})
	require.NoError(t, err)
	row, err := to.Get(ctx, p.ids[Claimed])
	require.NoError(t, err)
	require.Equal(t, Claimed, row.State())
	_, err = to.Register(ctx, WorkerInfo{Functions: []string{"go:f"}, Capacity: Resources{Slots: 1}})
	require.NoError(t, err)
	row, err = to.Get(ctx, p.ids[Claimed])
	require.NoError(t, err)
	require.Equal(t, Ready, row.State())
	require.Equal(t, 1, row.Attempts.Crashes)
	report, err := to.Check(ctx, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Empty(t, report.Notes)
}

// TestMigrateTakesAssignmentsAlong has what waited for a dead worker go back to
// the pool in the new cluster.
func TestMigrateTakesAssignmentsAlong(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := populate(t)
	p.enrich(t)
	p.write(t, func(tx kv.Tx) { tx.Clear(p.c.keys.incoming()) })
	_, err := p.c.DeclareDead(ctx, p.worker.ID(), beatOf(t, p))
	require.NoError(t, err)
	db := openMemory(t)
	_, err = Migrate(ctx, p.db, db, "check", CopyOptions{IgnoreLive: true})
	require.NoError(t, err)
	to, err := Open(ctx, db, "check", Options{Clock: p.c.clock})
	require.NoError(t, err)
	assigned, _, err := to.InspectKeys(ctx, subAssigned, nil, 0)
	require.NoError(t, err)
	require.NotEmpty(t, assigned)
	_, err = to.Register(ctx, WorkerInfo{Functions: []string{"go:f"}, Capacity: Resources{Slots: 1}})
	require.NoError(t, err)
	assigned, _, err = to.InspectKeys(ctx, subAssigned, nil, 0)
	require.NoError(t, err)
	require.Empty(t, assigned)
	report, err := to.Check(ctx, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

func beatOf(t *testing.T, p *population) []byte {
	members, err := p.c.Workers(context.Background())
	require.NoError(t, err)
	return members[0].Beat
}

// TestMigrateRefusesTheLiving looks at a store of many processes: whoever
// changes what it writes as a sign of life is alive.
func TestMigrateRefusesTheLiving(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := populate(t)
	virtual := p.c.clock.(*clock.Virtual)
	shared := struct{ kv.Database }{p.db}
	migrate := func(during func()) error {
		done := make(chan error)
		go func() {
			_, err := Migrate(ctx, shared, openMemory(t), "check", CopyOptions{Model: Options{Clock: virtual}})
			done <- err
		}()
		for {
			if due, waits := virtual.Next(); waits && due.After(virtual.Now()) {
				break
			}
			runtime.Gosched()
		}
		during()
		virtual.Advance(p.c.Config().DeadAfter)
		return <-done
	}
	err := migrate(func() {
		_, err := p.worker.Heartbeat(ctx, Resources{Slots: 1}, 1)
		require.NoError(t, err)
	})
	require.ErrorIs(t, err, ErrLive)
	require.ErrorContains(t, err, string(p.worker.ID()))
	err = migrate(func() {
		box := p.c.OpenMailbox("s")
		require.NoError(t, box.Refresh(ctx))
		require.NoError(t, box.Refresh(ctx))
	})
	require.ErrorIs(t, err, ErrLive)
	require.ErrorContains(t, err, "session s")
	require.NoError(t, migrate(func() {}), "who stands still is dead")
}

// TestMigrateOfALocalStore does not wait for workers of an earlier opening: they
// can't live. The clock stands still, so a wait would not end.
func TestMigrateOfALocalStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	disk, virtual := vfs.NewMem(), clock.NewVirtual(time.UnixMilli(1_900_000_000_000))
	for opening := range 2 {
		db, err := embedded.Open(ctx, "store", embedded.Options{FS: disk})
		require.NoError(t, err)
		if opening == 1 {
			report, err := Migrate(ctx, db, openMemory(t), "check", CopyOptions{Model: Options{Clock: virtual}})
			require.NoError(t, err)
			require.Equal(t, int64(1), report.Futures)
		} else {
			c, err := Open(ctx, db, "check", Options{Clock: virtual})
			require.NoError(t, err)
			_, err = c.Register(ctx, WorkerInfo{Capacity: Resources{Slots: 1}})
			require.NoError(t, err)
			require.NoError(t, c.OpenMailbox("s").Refresh(ctx))
			_, err = c.Submit(ctx, []Submission{{Spec: Spec{Function: "go:f"}}})
			require.NoError(t, err)
		}
		require.NoError(t, db.Close())
	}
}

func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, o := populate(t), CopyOptions{IgnoreLive: true}
	_, err := Migrate(ctx, openMemory(t), openMemory(t), "check", o)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = Migrate(ctx, p.db, openMemory(t), "Bad", o)
	require.ErrorIs(t, err, ErrBadName)
	other := populate(t)
	before := other.items(t)
	_, err = Migrate(ctx, p.db, other.db, "check", o)
	require.ErrorIs(t, err, ErrNotEmpty)
	require.Equal(t, before, other.items(t))

	opened := openMemory(t)
	_, err = Open(ctx, opened, "check", Options{Config: Config{Shards: 2}})
	require.NoError(t, err)
	_, err = Migrate(ctx, p.db, opened, "check", o)
	require.NoError(t, err, "a cluster that was opened and never used is empty")
	c, err := Open(ctx, opened, "check", Options{})
	require.NoError(t, err)
	require.Equal(t, p.c.Config(), c.Config())

	p.write(t, func(tx kv.Tx) { tx.Set(p.c.keys.global("unheard"), nil) })
	_, err = Migrate(ctx, p.db, openMemory(t), "check", o)
	require.ErrorIs(t, err, ErrBadRecord)
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

// TestMigrateStartsOver cuts a migration off at its first commits, and at some
// of those that only read.
func TestMigrateStartsOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, o := populate(t), CopyOptions{IgnoreLive: true}
	cut, pace := errors.New("cut off"), 6
	if storetest.OnServer || testing.Short() {
		pace = 1
	}
	for at := 1; ; at += 1 + at/pace {
		db := openMemory(t)
		hooked := &hookedStore{Database: db, hook: func(n int) error {
			if n == at {
				return cut
			}
			return nil
		}}
		_, err := Migrate(ctx, p.db, hooked, "check", o)
		if err == nil {
			require.Greater(t, at, 10)
			return
		}
		require.ErrorIs(t, err, cut)
		_, err = Open(ctx, db, "check", Options{})
		if at > 1 {
			require.ErrorIs(t, err, ErrIncomplete)
		}
		_, err = Migrate(ctx, p.db, db, "check", o)
		require.NoError(t, err, "%d", at)
		c, err := Open(ctx, db, "check", Options{Clock: p.c.clock})
		require.NoError(t, err)
		requireSameCluster(t, p.c, c)
	}
}

// changeWhenVerified returns a progress that changes the last shard once
// everything was copied.
func (p *population) changeWhenVerified(t *testing.T) func(stage string, done, all int64) {
	changed := false
	return func(stage string, _, _ int64) {
		if stage == "verified" && !changed {
			changed = true
			p.write(t, func(tx kv.Tx) { tx.Set(p.c.keys.count(p.c.keys.shards-1, "q", "g", Ready), littleEndian(1)) })
		}
	}
}

// TestMigrateNoticesChanges changes the source after it was read.
func TestMigrateNoticesChanges(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := populate(t)
	db := openMemory(t)
	_, err := Migrate(ctx, p.db, db, "check", CopyOptions{IgnoreLive: true, Progress: p.changeWhenVerified(t)})
	require.ErrorIs(t, err, ErrChanged)
	_, err = Open(ctx, db, "check", Options{})
	require.ErrorIs(t, err, ErrIncomplete)
}

// TestMigrateIsReplaced has a second copy begin while the first one writes.
func TestMigrateIsReplaced(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, o := populate(t), CopyOptions{IgnoreLive: true}
	db := openMemory(t)
	hooked := &hookedStore{Database: db, hook: func(n int) error {
		if n == 2 {
			_, err := Migrate(ctx, p.db, db, "check", o)
			return err
		}
		return nil
	}}
	_, err := Migrate(ctx, p.db, hooked, "check", o)
	require.ErrorIs(t, err, ErrCopyReplaced)
	c, err := Open(ctx, db, "check", Options{Clock: p.c.clock})
	require.NoError(t, err)
	requireSameCluster(t, p.c, c)
}

// TestMigrateUnderFaults copies over a store whose commits fail, are unknown and
// land late.
func TestMigrateUnderFaults(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, seeds := populate(t), uint64(20)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		faults := faultkv.Wrap(openMemory(t), faultkv.Everywhere(seed, 0.1))
		from := faultkv.Wrap(p.db, faultkv.Everywhere(seed, 0.05))
		sleep := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		o := CopyOptions{IgnoreLive: true, Model: Options{Sleep: sleep, Clock: p.c.clock}}
		_, err := Migrate(ctx, from, faults, "check", o)
		require.NoError(t, err, "seed %d", seed)
		faults.Flush()
		c, err := Open(ctx, faults, "check", Options{Sleep: sleep, Clock: p.c.clock})
		require.NoError(t, err)
		requireSameCluster(t, p.c, c)
	}
}

// moveToYounger moves a population to a store of higher versions, and from there
// to one of lower ones.
func (p *population) moveToYounger(t *testing.T, between func(old *Cluster)) (old, young *Cluster) {
	ctx := context.Background()
	disk := vfs.NewMem()
	var aged *embedded.Store
	for range 4 {
		if aged != nil {
			require.NoError(t, aged.Close())
		}
		var err error
		aged, err = embedded.Open(ctx, "aged", embedded.Options{FS: disk})
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, aged.Close()) })
	db, model := openMemory(t), Options{Clock: p.c.clock}
	_, err := Migrate(ctx, p.db, aged, "check", CopyOptions{Model: model})
	require.NoError(t, err)
	old, err = Open(ctx, aged, "check", model)
	require.NoError(t, err)
	between(old)
	_, err = Migrate(ctx, aged, db, "check", CopyOptions{IgnoreLive: true, Model: model})
	require.NoError(t, err)
	young, err = Open(ctx, db, "check", model)
	require.NoError(t, err)
	before, err := newCopySource(old).tally(ctx, func(int64) {})
	require.NoError(t, err)
	after, err := newCopySource(young).tally(ctx, func(int64) {})
	require.NoError(t, err)
	require.Equal(t, before.checksum(), after.checksum())
	return old, young
}

// versionOf returns a store's present version.
func versionOf(t *testing.T, c *Cluster) kv.Version {
	version, err := c.db.Begin(kv.Options{}).ReadVersion(context.Background())
	require.NoError(t, err)
	return version
}

// finishAll runs what is ready.
func finishAll(t *testing.T, c *Cluster) {
	ctx := context.Background()
	w, err := c.Register(ctx, WorkerInfo{Functions: []string{"go:f"}, Capacity: Resources{Slots: 9}})
	require.NoError(t, err)
	for {
		answer, err := w.Claim(ctx, ClaimRequest{Free: Resources{Slots: 1}, Max: 1})
		require.NoError(t, err)
		if len(answer.Futures) == 0 {
			require.NoError(t, w.Leave(ctx))
			return
		}
		_, err = w.Finish(ctx, []Completion{{Future: &answer.Futures[0], Result: &Result{Value: []byte("v")}}})
		require.NoError(t, err)
	}
}

// TestMailAfterAMoveToAYoungerCluster has a session go on in a store whose
// versions are lower than those that it has read up to.
func TestMailAfterAMoveToAYoungerCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := populate(t)
	p.leave(t)
	var box *Mailbox
	var id ID
	old, young := p.moveToYounger(t, func(old *Cluster) {
		box = old.OpenMailbox("s")
		require.NoError(t, box.Refresh(ctx))
		finishAll(t, old)
		notices, watch, err := box.Listen(ctx)
		require.NoError(t, err)
		require.Nil(t, watch)
		require.NotEmpty(t, notices)
		require.NoError(t, box.Acknowledge(ctx))
		got, err := old.Submit(ctx, []Submission{{Spec: Spec{Function: "go:f", Session: "s"}}})
		require.NoError(t, err)
		id = got[0].ID
	})
	require.Less(t, versionOf(t, young), versionOf(t, old))
	box.cluster = young // its process has reached the other store
	finishAll(t, young)
	notices, watch, err := box.Listen(ctx)
	require.NoError(t, err)
	require.Empty(t, notices, "the mail lies before what was read in the old store")
	watch.Cancel()
	require.NoError(t, box.Refresh(ctx))
	notices, _, err = box.Listen(ctx)
	require.NoError(t, err)
	require.Len(t, notices, 1)
	require.Equal(t, id, notices[0].ID)
	require.NoError(t, box.Acknowledge(ctx))
	require.NoError(t, box.Refresh(ctx))
	notices, watch, err = box.Listen(ctx)
	require.NoError(t, err)
	require.Empty(t, notices)
	watch.Cancel()
}

// TestExpiryAfterAMoveToAYoungerCluster has old lists of finished futures come
// before new ones, although their versions in the old store were higher.
func TestExpiryAfterAMoveToAYoungerCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := populate(t)
	virtual := p.c.clock.(*clock.Virtual)
	p.leave(t)
	old, to := p.moveToYounger(t, func(*Cluster) {})
	require.Less(t, versionOf(t, to), versionOf(t, old))
	virtual.Advance(time.Hour)
	finishAll(t, to)
	virtual.Advance(to.Config().Retention - time.Minute)
	removed := 0
	for shard := range to.Config().Shards {
		for {
			n, progress, _, err := to.ExpireDone(ctx, shard)
			require.NoError(t, err)
			if removed += n; !progress {
				break
			}
		}
	}
	require.Equal(t, 3, removed, "those that finished before the move, and no others")
}

// TestMoveOfRandomClusters moves clusters in states that random operations under
// faults left them in: to another store, and by a backup to a third.
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
		m := newMachine(t, seed)
		for range steps {
			m.step()
		}
		m.faults.Flush()
		model, moved, restored := Options{Clock: m.clock}, openMemory(t), openMemory(t)
		report, err := Migrate(ctx, m.store, moved, "machine", CopyOptions{IgnoreLive: true, Model: model})
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, int64(len(m.rows)), report.Futures, "seed %d", seed)
		var file memoryFile
		_, err = Backup(ctx, moved, "machine", &file, CopyOptions{Model: model})
		require.NoError(t, err, "seed %d", seed)
		again, err := Restore(ctx, restored, "", &file, CopyOptions{Model: model})
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, report.SHA256, again.SHA256, "seed %d", seed)
		c, err := Open(ctx, restored, "machine", model)
		require.NoError(t, err)
		require.Equal(t, rowsOf(t, m.c), rowsOf(t, c), "seed %d", seed)
	}
}
