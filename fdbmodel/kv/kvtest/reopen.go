package kvtest

import (
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

func reopenCases() []testCase {
	return []testCase{
		{name: "Reopen/KeepsCommits", run: reopenKeeps},
		{name: "Reopen/EndsWhatIsOpen", exact: true, run: reopenEnds},
		{name: "Reopen/Appends", run: reopenAppends},
	}
}

// reopen closes the case's store and opens it again.
func (b *bundle) reopen() {
	if b.o.Reopen == nil {
		b.Skip("this store keeps nothing, or is not ours to close")
	}
	b.db = b.o.Reopen(b, b.db)
}

func reopenKeeps(b *bundle) {
	var last kv.Version
	for range 3 {
		b.once(func(tx kv.Tx) error {
			tx.Set(b.key("a"), []byte("v"))
			tx.Atomic(kv.Add, b.key("n"), []byte{'1'})
			b.stampKey(tx, "s", "stamped")
			return nil
		})
		b.update(func(tx kv.Tx) { tx.ClearRange(b.span("s", "t")) })
		version := b.readVersion()
		require.Greater(b, version, last)
		last = version
		before := b.scan("", "")
		b.reopen()
		require.Equal(b, before, b.scan("", ""))
	}
	b.put("a")
	require.Greater(b, b.readVersion(), last)
}

// readVersion returns a version that all commits so far are visible at.
func (b *bundle) readVersion() kv.Version {
	b.Helper()
	var version kv.Version
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) (err error) {
		version, err = a.ReadVersion(b.ctx)
		return err
	})
	require.NoError(b, err)
	return version
}

func reopenEnds(b *bundle) {
	b.put("a")
	w := b.watch("a")
	tx, old := b.begin(), b.db
	_, err := tx.Get(b.key("a")).Wait(b.ctx)
	require.NoError(b, err)
	b.reopen()

	require.ErrorIs(b, b.ends(w), kv.ErrClosed)
	_, err = tx.Get(b.key("a")).Wait(b.ctx)
	require.ErrorIs(b, err, kv.ErrClosed)
	tx.Set(b.key("b"), nil)
	_, err = tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrClosed)
	_, err = old.Begin(kv.Options{}).Get(b.key("a")).Wait(b.ctx)
	require.ErrorIs(b, err, kv.ErrClosed)
	require.NoError(b, old.Close())
	require.Equal(b, "a=a", b.scan("", ""))
}
