package sharing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// hearing returns a channel that receives what a store loses.
func hearing(db *sharing.Database) <-chan string {
	heard := make(chan string, 10)
	db.OnLost(func(connection string) { heard <- connection })
	return heard
}

func hears(t *testing.T, heard <-chan string, want string) {
	t.Helper()
	select {
	case connection := <-heard:
		require.Equal(t, want, connection)
	case <-time.After(patience):
		require.Fail(t, "a lost connection was not told")
	}
}

func put(t *testing.T, db kv.Database, key string) {
	_, err := kv.Transact(t.Context(), db, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set([]byte(key), []byte("value"))
		return nil
	})
	require.NoError(t, err)
}

// TestAnOwnerLearnsWhichProcessesAreGone has an owner follow one that was killed, with a client that
// does not come back, and then lose one of its own. Those that ask late are told as well.
func TestAnOwnerLearnsWhichProcessesAreGone(t *testing.T) {
	t.Parallel()
	dir := place(t)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sharing.json"),
		[]byte(`{"pid":1,"connection":"killed","clients":["away"]}`), 0o600))
	owner := open(t, dir, sharing.Options{})
	heard := hearing(owner)
	hears(t, heard, "killed")
	require.False(t, owner.Traits().Exclusive, "one may come back")
	hears(t, heard, "away")
	require.True(t, owner.Traits().Exclusive)

	follower := open(t, dir, sharing.Options{})
	put(t, follower, "a")
	name := follower.Traits().Connection
	require.False(t, owner.Traits().Exclusive)
	require.Equal(t, owner.Traits().Opening, follower.Traits().Opening)
	require.NoError(t, follower.Close())
	hears(t, heard, name)
	late := hearing(owner)
	all := []string{<-late, <-late, <-late}
	require.ElementsMatch(t, []string{"killed", "away", name}, all)
}

// TestAFollowerKeepsItsName has one take over: its name stays, and what is its own is not lost.
func TestAFollowerKeepsItsName(t *testing.T) {
	t.Parallel()
	dir := place(t)
	first, second := open(t, dir, sharing.Options{}), open(t, dir, sharing.Options{})
	heard, name := hearing(second), second.Traits().Connection
	put(t, second, "a")
	begun := second.Begin(kv.Options{})
	require.NoError(t, first.Close())
	put(t, second, "b")
	require.True(t, second.IsOwner())
	_, err := begun.Get([]byte("a")).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrUnavailable, "what was begun before is repeated")
	begun.Cancel()
	require.Equal(t, name, second.Traits().Connection)
	third := open(t, dir, sharing.Options{})
	put(t, third, "c")
	lost := third.Traits().Connection
	require.NoError(t, third.Close())
	hears(t, heard, lost)
}

// TestALongPathHasItsSocketElsewhere shares a store whose path no socket may have.
func TestALongPathHasItsSocketElsewhere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(place(t), strings.Repeat("long", 20), strings.Repeat("long", 20))
	first, second := open(t, dir, sharing.Options{}), open(t, dir, sharing.Options{})
	put(t, second, "a")
	socket := first.Socket()
	require.NotContains(t, socket, "longlong")
	require.Equal(t, socket, second.Socket())
	require.NoError(t, first.Close())
	require.NoDirExists(t, filepath.Dir(socket))
	put(t, second, "b")
	require.NotEqual(t, socket, second.Socket())
}

// TestALongPathIsFoundByAnyName reads the record of such a store by a relative name, and through a link.
func TestALongPathIsFoundByAnyName(t *testing.T) {
	base := place(t)
	dir := filepath.Join(base, strings.Repeat("long", 20), strings.Repeat("long", 20))
	owner := open(t, dir, sharing.Options{})
	require.NotContains(t, owner.Socket(), "longlong")
	link := base + ".link"
	require.NoError(t, os.Symlink(dir, link))
	t.Chdir(filepath.Dir(dir))
	for _, name := range []string{dir, filepath.Base(dir), filepath.Join(".", filepath.Base(dir)), link} {
		record, err := sharing.ReadRecord(name)
		require.NoError(t, err)
		require.Equal(t, owner.Socket(), record.Socket, name)
	}
}

// TestARecordOfOthersIsRefused has a record that other users may change, which could lead anywhere.
func TestARecordOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	dir := place(t)
	open(t, dir, sharing.Options{})
	require.NoError(t, os.Chmod(filepath.Join(dir, "sharing.json"), 0o666))
	_, err := sharing.ReadRecord(dir)
	require.ErrorContains(t, err, "others may read")
	_, err = sharing.Open(t.Context(), dir, sharing.Options{Wait: time.Millisecond})
	require.ErrorIs(t, err, kv.ErrStoreInUse)
	require.ErrorContains(t, err, "others may read")
}

// TestAStoreOfAnotherVersion has a process serve it that speaks a newer version of the protocol: nothing is waited for.
func TestAStoreOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := place(t)
	held, err := embedded.Open(t.Context(), dir, embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, held.Close()) })
	l, err := remote.ListenUnix(filepath.Join(dir, "store.sock"))
	require.NoError(t, err)
	served := make(chan struct{})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-served
	})
	go func() {
		defer close(served)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			const welcome = "\x00\x00\x00\x0cFFUTURAKV\xff\xff\x02" // of version 65,535, which refuses that of the hello
			_, _ = conn.Write([]byte(welcome))
			_, _ = conn.Read(make([]byte, 100))
			_ = conn.Close()
		}
	}()
	_, err = sharing.Open(t.Context(), dir, sharing.Options{Wait: time.Second})
	require.ErrorIs(t, err, kv.ErrStoreInUse)
	require.ErrorIs(t, err, remote.ErrBadVersion)
	require.NotContains(t, err.Error(), "does not serve it")
}

// TestAStoreThatIsNotServed waits for the one that has it open, and gives up.
func TestAStoreThatIsNotServed(t *testing.T) {
	t.Parallel()
	dir := place(t)
	first := open(t, dir, sharing.Options{})
	require.NoError(t, os.Remove(first.Socket()))
	_, err := sharing.Open(t.Context(), dir, sharing.Options{Wait: time.Millisecond})
	require.ErrorIs(t, err, kv.ErrStoreInUse)
	require.ErrorContains(t, err, "does not serve it")
	require.NoError(t, first.Close())
	require.NoError(t, first.Close())
	_, err = kv.Transact(t.Context(), first, kv.Retry{}, func(tx kv.Attempt) error {
		_, err := tx.Get([]byte("a")).Wait(t.Context())
		return err
	})
	require.ErrorIs(t, err, kv.ErrClosed)
}
