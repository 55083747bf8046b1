package kvtest

import (
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

func snapshotCases() []testCase {
	return []testCase{
		{name: "Snapshot/HoldsWhatWasCommitted", run: snapshotHolds},
		{name: "Snapshot/KeepsTransactions", run: snapshotKeeps},
	}
}

// snapshot opens one, which the case closes.
func (b *bundle) snapshot() kv.Database {
	open := kv.TraitsOf(b.db).Snapshot
	if open == nil {
		b.Skip("this store has no snapshots")
	}
	db, err := open(b.ctx)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	return db
}

// scanOf returns all rows of a store that the case has written.
func (b *bundle) scanOf(db kv.Database) string {
	own := b.db
	defer func() { b.db = own }()
	b.db = db
	return b.scan("", "")
}

func snapshotHolds(b *bundle) {
	b.put("a", "b", "c")
	b.update(func(tx kv.Tx) { tx.Clear(b.key("b")) })
	before := b.scan("", "")
	taken := b.snapshot()
	b.update(func(tx kv.Tx) {
		tx.Set(b.key("a"), []byte("new"))
		tx.Set(b.key("d"), []byte("new"))
		tx.Clear(b.key("c"))
	})
	require.Equal(b, before, b.scanOf(taken))
	after := b.scan("", "")
	require.NotEqual(b, before, after)

	tx := taken.Begin(kv.Options{})
	tx.Set(b.key("e"), []byte("lost"))
	b.commit(tx)
	require.Equal(b, after, b.scan("", ""))
	require.Equal(b, after, b.scanOf(b.snapshot()))
}

func snapshotKeeps(b *bundle) {
	b.put("a")
	taken := b.snapshot()
	tx := taken.Begin(kv.Options{})
	defer tx.Cancel()
	version, err := tx.ReadVersion(b.ctx)
	require.NoError(b, err)
	b.expire()
	value, err := tx.Get(b.key("a")).Wait(b.ctx)
	require.NoError(b, err)
	require.Equal(b, "a", show(value))
	later := taken.Begin(kv.Options{})
	defer later.Cancel()
	later.SetReadVersion(version)
	value, err = later.Get(b.key("a")).Wait(b.ctx)
	require.NoError(b, err)
	require.Equal(b, "a", show(value))
}
