package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/transfer"
	"github.com/futura-run/futura/fdbmodel/transfer/archive"
)

// memoryFile is a backup in memory.
type memoryFile struct{ bytes.Buffer }

func (m *memoryFile) Seek(int64, int) (int64, error) { return 0, nil }

func (m *memoryFile) Truncate(int64) error { m.Reset(); return nil }

func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	p.Enrich(t)
	p.Leave(t)
	var file memoryFile
	report, err := transfer.Backup(ctx, p.DB, "check", &file,
		transfer.Options{Model: fdbmodel.Options{Clock: p.C.Clock()}})
	require.NoError(t, err)
	require.True(t, report.OneVersion)
	head, end, err := archive.Verify(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	require.Equal(t, archive.Head{Cluster: "check", Futures: p.Futures(), CreatedAt: 1_900_000_000_000}, head)
	require.Equal(t, report.Keys, end.Items)

	for _, name := range []string{"check", "another"} {
		db := modeltest.OpenMemory(t)
		restored, err := transfer.Restore(ctx, db, name, bytes.NewReader(file.Bytes()), transfer.Options{})
		require.NoError(t, err)
		require.Equal(t, report.SHA256, restored.SHA256)
		c, err := fdbmodel.Open(ctx, db, name, fdbmodel.Options{Clock: p.C.Clock()})
		require.NoError(t, err)
		requireSameCluster(t, p.C, c)
		_, err = transfer.Restore(ctx, db, name, bytes.NewReader(file.Bytes()), transfer.Options{})
		require.ErrorIs(t, err, transfer.ErrNotEmpty)
	}
}

// oldStore fails every read at a chosen version as too old, as if the version
// had been chosen more than five seconds ago.
type oldStore struct {
	kv.Database
	reads int
}

func (o *oldStore) Begin(options kv.Options) kv.Tx {
	return &oldTx{Tx: o.Database.Begin(options), store: o}
}

type oldTx struct {
	kv.Tx
	store *oldStore
}

func (o *oldTx) SetReadVersion(v kv.Version) {
	o.store.reads++
	if o.store.reads > 4 {
		v = 1
	}
	o.Tx.SetReadVersion(v)
}

func TestBackupOfALargeCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	var once, twice memoryFile
	o := transfer.Options{Model: fdbmodel.Options{Clock: p.C.Clock()}}
	_, err := transfer.Backup(ctx, p.DB, "check", &once, o)
	require.NoError(t, err)
	report, err := transfer.Backup(ctx, &oldStore{Database: p.DB}, "check", &twice, o)
	require.NoError(t, err)
	require.False(t, report.OneVersion)
	require.Equal(t, once.Bytes(), twice.Bytes())

	o.Progress = changeWhenVerified(t, p)
	_, err = transfer.Backup(ctx, &oldStore{Database: p.DB}, "check", &twice, o)
	require.ErrorIs(t, err, transfer.ErrChanged)
}

// TestBackupOfABusyCluster checks that backups are of one version while futures
// run.
func TestBackupOfABusyCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	rest := keepBusy(t, p.C, p.Worker)
	for range 5 {
		var file memoryFile
		report, err := transfer.Backup(ctx, p.DB, "check", &file, transfer.Options{})
		require.NoError(t, err)
		require.True(t, report.OneVersion)
		_, err = transfer.Restore(ctx, modeltest.OpenMemory(t), "", &file, transfer.Options{})
		require.NoError(t, err, "what was restored holds every invariant")
	}
	rest()
}

// keepBusy has futures run in a cluster until the function is called that it returns.
func keepBusy(t *testing.T, c *fdbmodel.Cluster, worker *fdbmodel.Registration) (rest func()) {
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	run := func() error {
		one := []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Session: "s"}}}
		if _, err := c.Submit(t.Context(), one); err != nil {
			return err
		}
		answer, err := worker.Claim(t.Context(), fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 9}, Max: 9})
		for i := range answer.Futures {
			done := fdbmodel.Completion{Future: &answer.Futures[i], Result: &layout.Result{Value: []byte("v")}}
			if _, err = worker.Finish(t.Context(), []fdbmodel.Completion{done}); err != nil {
				break
			}
		}
		return err
	}
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			err = run()
		}
		stopped <- err
	}()
	return func() {
		stop()
		require.NoError(t, <-stopped)
	}
}

// oldStoreWithSnapshots is an oldStore that has those of the store below.
type oldStoreWithSnapshots struct{ oldStore }

func (o *oldStoreWithSnapshots) Traits() kv.Traits { return kv.TraitsOf(o.Database) }

// TestBackupOfALargeBusyCluster backs up what takes too long for one version, from snapshots of the store.
func TestBackupOfALargeBusyCluster(t *testing.T) {
	t.Parallel()
	var whole memoryFile
	_, err := transfer.Backup(t.Context(), modeltest.Populate(t).DB, "check", &whole, transfer.Options{})
	require.NoError(t, err)
	db, err := embedded.Open(t.Context(), t.TempDir(), embedded.Options{CheckpointBytes: 64 << 10, Memory: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = transfer.Restore(t.Context(), db, "", &whole, transfer.Options{})
	require.NoError(t, err)
	c, err := fdbmodel.Open(t.Context(), db, "check", fdbmodel.Options{})
	require.NoError(t, err)
	info := layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 9}}
	worker, err := c.Register(t.Context(), info)
	require.NoError(t, err)
	rest := keepBusy(t, c, worker)
	for range 5 {
		var file memoryFile
		report, err := transfer.Backup(t.Context(), &oldStoreWithSnapshots{oldStore{Database: db}}, "check", &file,
			transfer.Options{})
		require.NoError(t, err)
		require.True(t, report.OneVersion)
		_, err = transfer.Restore(t.Context(), modeltest.OpenMemory(t), "", &file, transfer.Options{})
		require.NoError(t, err, "what was restored holds every invariant")
	}
	rest()
	require.Positive(t, db.Stats().Checkpoints)
}

// rewoundFile is a backup in memory that has been started over or not.
type rewoundFile struct {
	memoryFile
	rewound bool
}

func (r *rewoundFile) Truncate(size int64) error {
	r.rewound = true
	return r.memoryFile.Truncate(size)
}

// TestAPanicLeavesNoSnapshot has the progress of a backup panic while a snapshot is read.
func TestAPanicLeavesNoSnapshot(t *testing.T) {
	t.Parallel()
	var whole memoryFile
	_, err := transfer.Backup(t.Context(), modeltest.Populate(t).DB, "check", &whole, transfer.Options{})
	require.NoError(t, err)
	dir := t.TempDir()
	db, err := embedded.Open(t.Context(), dir, embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = transfer.Restore(t.Context(), db, "", &whole, transfer.Options{})
	require.NoError(t, err)
	var file rewoundFile
	snapshots := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "MANIFEST"))
		require.NoError(t, err)
		return found
	}
	o := transfer.Options{Progress: func(string, int64, int64) {
		if file.rewound {
			require.Len(t, snapshots(), 1)
			panic("progress")
		}
	}}
	require.PanicsWithValue(t, "progress", func() {
		_, _ = transfer.Backup(t.Context(), &oldStoreWithSnapshots{oldStore{Database: db}}, "check", &file, o)
	})
	require.Empty(t, snapshots())
}

func TestRestoreOfDamage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	var file memoryFile
	_, err := transfer.Backup(ctx, p.DB, "check", &file, transfer.Options{})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		damaged := bytes.Clone(file.Bytes())
		if at := random.IntN(len(damaged)); random.IntN(2) == 0 {
			damaged = damaged[:at]
		} else {
			damaged[at] ^= 1 << random.IntN(8)
		}
		db := modeltest.OpenMemory(t)
		_, err := transfer.Restore(ctx, db, "check", bytes.NewReader(damaged), transfer.Options{})
		require.True(t, errors.Is(err, archive.ErrDamaged) || errors.Is(err, archive.ErrTruncated) ||
			errors.Is(err, archive.ErrNoBackup) || errors.Is(err, archive.ErrNewer), "%v", err)
		if page := allOf(t, db); len(page) > 0 {
			_, err = fdbmodel.Open(ctx, db, "check", fdbmodel.Options{})
			require.ErrorIs(t, err, fdbmodel.ErrIncomplete)
		}
		_, err = transfer.Restore(ctx, db, "check", bytes.NewReader(file.Bytes()), transfer.Options{})
		require.NoError(t, err, "the whole file can be restored over it")
	}
}

// TestRestoreOfAnOlderFormat restores a backup whose keys have other names.
func TestRestoreOfAnOlderFormat(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	config := p.C.Config()
	config.Format = layout.KeyspaceFormat - 1
	var file memoryFile
	items, err := archive.NewWriter(&file, archive.Head{Cluster: "check"})
	require.NoError(t, err)
	for _, i := range allOf(t, p.DB) {
		kind := keyspace.Table().Parse(i.Key).Kind
		if kind == nil || kind.Moves == layout.LeftOut {
			continue
		}
		if kind.Subspace == layout.SubConfig {
			i.Value = layout.Encode(&config)
		}
		require.NoError(t, items.Add(i.Key[len(p.C.Keys().Prefix):], i.Value))
	}
	_, err = items.Close()
	require.NoError(t, err)
	db := modeltest.OpenMemory(t)
	_, err = transfer.Restore(ctx, db, "check", &file, transfer.Options{})
	require.ErrorIs(t, err, layout.ErrOldFormat)
	require.ErrorContains(t, err, "restore a backup with the version that wrote it")
}

func allOf(t *testing.T, db kv.Database) []kv.KeyValue {
	page, err := db.Begin(kv.Options{}).GetRange(kv.Range{End: []byte{0xff}}, kv.RangeOptions{}).Wait(context.Background())
	require.NoError(t, err)
	return page.Items
}

// FuzzRestore restores valid files with arbitrary contents.
func FuzzRestore(f *testing.F) {
	k := layout.NewKeyspace("c")
	k.Shards = 16
	for _, g := range modeltest.GoldenRecords() {
		if key := modeltest.KeyOfRecord(k, g.Name); key != nil {
			f.Add(key[len(k.Prefix):], g.Encode(), uint8(16))
		}
	}
	f.Add([]byte("x"), []byte{}, uint8(3))
	for _, row := range []string{"\xffapp/1", "\xff", "\xff\xff/status", "\xff" + string(k.Prefix) + "x"} {
		f.Add([]byte(row), []byte("row"), uint8(3))
	}
	f.Fuzz(func(t *testing.T, key, value []byte, shards uint8) {
		if len(key) > 200 || len(value) > 1000 {
			return
		}
		settings := layout.Config{Shards: int(shards)}.WithDefaults()
		config := layout.Encode(&settings)
		var file bytes.Buffer
		w, err := archive.NewWriter(&file, archive.Head{Cluster: "c", Rows: []string{""}})
		require.NoError(t, err)
		configKey := k.Config()[len(k.Prefix):]
		items := []kv.KeyValue{{Key: configKey, Value: config}, {Key: key, Value: value}}
		if bytes.Compare(key, configKey) <= 0 {
			items[0], items[1] = items[1], items[0]
		}
		for _, item := range items {
			require.NoError(t, w.Add(item.Key, item.Value))
		}
		_, err = w.Close()
		require.NoError(t, err)
		db := embedded.OpenMemory(embedded.Options{Inline: true})
		defer db.Close()
		if _, err := transfer.Restore(context.Background(), db, "", &file, transfer.Options{}); err != nil {
			return
		}
		c, err := fdbmodel.Open(context.Background(), db, "c", fdbmodel.Options{})
		require.NoError(t, err)
		report, err := audit.Check(context.Background(), c, audit.Options{})
		require.NoError(t, err)
		require.Zero(t, report.Broken)
	})
}

// awayStore is a store that does not answer some reads at a version that was chosen.
type awayStore struct {
	kv.Database
	reads int
}

func (a *awayStore) Begin(options kv.Options) kv.Tx {
	return &awayTx{a.Database.Begin(options), a, false}
}

type awayTx struct {
	kv.Tx
	store *awayStore
	away  bool
}

func (a *awayTx) SetReadVersion(v kv.Version) {
	a.store.reads++
	a.away = a.store.reads > 4
	a.Tx.SetReadVersion(v)
}

func (a *awayTx) Snapshot() kv.Reader {
	if a.away {
		return awayReader{a.Tx.Snapshot()}
	}
	return a.Tx.Snapshot()
}

type awayReader struct{ kv.Reader }

func (awayReader) GetRange(kv.Range, kv.RangeOptions) kv.Pending[kv.Page] {
	return kv.Ready(kv.Page{}, kv.ErrUnavailable)
}

// TestBackupSaysWhatFailed has the store be away for a moment, and the cluster change meanwhile: its size is
// not to blame.
func TestBackupSaysWhatFailed(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	o := transfer.Options{Model: fdbmodel.Options{Clock: p.C.Clock()}, Progress: changeWhenVerified(t, p)}
	var file memoryFile
	_, err := transfer.Backup(t.Context(), &awayStore{Database: p.DB}, "check", &file, o)
	require.ErrorIs(t, err, transfer.ErrChanged)
	require.ErrorContains(t, err, kv.ErrUnavailable.Error())
	require.NotContains(t, err.Error(), "too large")
}
