package kvtest

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

func versionCases() []testCase {
	return []testCase{
		{name: "Version/Grows", exact: true, run: versionGrows},
		{name: "Version/ReadVersionIsAtLeastEveryCommit", exact: true, run: versionReadsCommits},
		{name: "Version/SetToOwnCommit", exact: true, run: versionSetToOwn},
		{name: "Version/SetToEarlier", earlier: true, exact: true, run: versionSetToEarlier},
		{name: "Version/SetToFuture", exact: true, run: versionSetToFuture},
		{name: "Version/SetAfterRead", exact: true, run: versionSetAfterRead},
		{name: "Version/NoSync", exact: true, run: versionNoSync},
		{name: "Version/NoSyncIsVisibleInTheEnd", run: versionNoSyncVisible},
		{name: "Version/Lifetime", exact: true, run: versionLifetime},
		{name: "Version/SetToTooOld", exact: true, run: versionTooOld},
		{name: "Version/SetWithoutReads", earlier: true, exact: true, run: versionWithoutReads},
		{name: "Version/SetWithoutReadsToTooOld", exact: true, run: versionWithoutReadsTooOld},
	}
}

func versionGrows(b *bundle) {
	last := kv.Version(0)
	for range 5 {
		done := b.put("a")
		require.Greater(b, done.Version, last)
		last = done.Version
	}
}

func versionReadsCommits(b *bundle) {
	for range 5 {
		done := b.put("a")
		version, err := b.begin().ReadVersion(b.ctx)
		require.NoError(b, err)
		require.GreaterOrEqual(b, version, done.Version)
	}
	tx := b.begin()
	first, err := tx.ReadVersion(b.ctx)
	require.NoError(b, err)
	b.put("a")
	second, err := tx.ReadVersion(b.ctx)
	require.NoError(b, err)
	require.Equal(b, first, second)
}

// readAt reads the named key at version v.
func (b *bundle) readAt(v kv.Version, name string) (string, error) {
	tx := b.begin()
	tx.SetReadVersion(v)
	value, err := tx.Get(b.key(name)).Wait(b.ctx)
	return show(value), err
}

func versionSetToOwn(b *bundle) {
	done := b.put("a")
	value, err := b.readAt(done.Version, "a")
	require.NoError(b, err)
	require.Equal(b, "a", value)

	tx := b.begin()
	tx.SetReadVersion(done.Version)
	version, err := tx.ReadVersion(b.ctx)
	require.NoError(b, err)
	require.Equal(b, done.Version, version)
}

func versionSetToEarlier(b *bundle) {
	first := b.put("a")
	b.update(func(tx kv.Tx) { tx.Set(b.key("a"), []byte("new")) })
	value, err := b.readAt(first.Version, "a")
	require.NoError(b, err)
	require.Equal(b, "a", value)

	tx := b.begin()
	tx.SetReadVersion(first.Version)
	tx.AddReadConflictKey(b.key("a"))
	tx.Set(b.key("out"), nil)
	_, err = tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrConflict)
}

// farFuture is more versions than any store uses up in a test.
const farFuture = 1_000_000_000

func versionSetToFuture(b *bundle) {
	done := b.put("a")
	_, err := b.readAt(done.Version+farFuture, "a")
	require.ErrorIs(b, err, kv.ErrFutureVersion)
}

func versionSetAfterRead(b *bundle) {
	done := b.put("a")
	tx := b.beginRead()
	tx.SetReadVersion(done.Version)
	tx.Set(b.key("out"), nil)
	_, err := tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrUsed)
	require.Equal(b, "<absent>", b.get("out"))
}

func versionNoSync(b *bundle) {
	for range 3 {
		tx := b.db.Begin(kv.Options{NoSync: true, Tag: "kvtest"})
		tx.Atomic(kv.Add, b.key("n"), []byte{'0'})
		done := b.commit(tx)
		_, err := b.readAt(done.Version, "n")
		require.NoError(b, err)
	}
	tx := b.db.Begin(kv.Options{NoSync: true})
	tx.Set(b.key("n"), []byte("last"))
	done := b.commit(tx)
	value, err := b.readAt(done.Version, "n")
	require.NoError(b, err)
	require.Equal(b, "last", value)
}

func versionNoSyncVisible(b *bundle) {
	_, err := kv.Transact(b.ctx, b.db, kv.Retry{Options: kv.Options{NoSync: true}}, func(a kv.Attempt) error {
		a.Set(b.key("a"), []byte("v"))
		return nil
	})
	require.NoError(b, err)
	b.put("b")
	require.Equal(b, "a=v b=b", b.scan("", ""))
}

// expire makes all transactions that have begun to read too old.
func (b *bundle) expire() {
	if b.o.ExpireTx != nil {
		b.o.ExpireTx(b.db)
		return
	}
	if !long() {
		b.Skip("this store really waits for transactions to grow old: set FUTURA_LONG=1 to do so")
	}
	select {
	case <-time.After(kv.TxLifetime + kv.TxLifetime/5):
	case <-b.ctx.Done():
	}
}

func versionLifetime(b *bundle) {
	b.put("a")
	reader, writer, fresh := b.beginRead(), b.beginRead(), b.begin()
	_, err := writer.Get(b.key("a")).Wait(b.ctx)
	require.NoError(b, err)
	b.expire()
	b.put("b")

	_, err = reader.Get(b.key("a")).Wait(b.ctx)
	require.ErrorIs(b, err, kv.ErrTooOld)
	_, err = reader.GetRange(b.span("", ""), kv.RangeOptions{}).Wait(b.ctx)
	require.ErrorIs(b, err, kv.ErrTooOld)
	writer.Set(b.key("out"), nil)
	_, err = writer.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrTooOld)
	require.Equal(b, "a=a b=b", b.scan("", ""))

	_, err = fresh.Get(b.key("a")).Wait(b.ctx)
	require.NoError(b, err)
	fresh.Set(b.key("out"), nil)
	b.commit(fresh)
}

func versionTooOld(b *bundle) {
	old := b.put("a")
	b.put("a")
	b.expire()
	b.put("a")
	_, err := b.readAt(old.Version, "a")
	require.ErrorIs(b, err, kv.ErrTooOld)
}

// versionWithoutReads: what a transaction has not read conflicts as if it had, from the version that was set.
func versionWithoutReads(b *bundle) {
	b.put("changes")
	seen := b.put("stays")
	b.put("changes")
	for key, want := range map[string]error{"stays": nil, "changes": kv.ErrConflict, "absent": nil} {
		tx := b.begin()
		tx.SetReadVersion(seen.Version)
		tx.AddReadConflictRange(kv.Prefix(b.key(key)))
		tx.Set(b.key("out"), []byte(key))
		_, err := tx.Commit(b.ctx)
		require.ErrorIs(b, err, want, key)
	}
}

func versionWithoutReadsTooOld(b *bundle) {
	old := b.put("a")
	b.put("b")
	b.expire()
	b.put("b")
	tx := b.begin()
	tx.SetReadVersion(old.Version)
	tx.AddReadConflictKey(b.key("a"))
	tx.Set(b.key("out"), nil)
	_, err := tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrTooOld)
}
