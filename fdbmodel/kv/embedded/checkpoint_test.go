package embedded

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// TestCheckpointWithAnotherNumberOfRows names a sound file of rows in the
// manifest that is not the one which was written.
func TestCheckpointWithAnotherNumberOfRows(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := open(t, "store", Options{FS: fs})
	write(t, s, "a", "1")
	write(t, s, "b", "2")
	require.NoError(t, s.Checkpoint(context.Background()))
	require.NoError(t, s.Close())
	d := directory{fs: fs, path: "store"}
	for _, more := range []int64{1, -1} {
		m, err := d.manifest()
		require.NoError(t, err)
		require.Len(t, m.Tables, 1)
		m.Tables[0].Rows += more
		require.NoError(t, d.install(m))
		_, err = Open(context.Background(), "store", Options{FS: fs})
		require.ErrorIs(t, err, kv.ErrCorrupt)
		require.ErrorContains(t, err, "it has 2 rows")
		m.Tables[0].Rows -= more
		require.NoError(t, d.install(m))
	}
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, contents(t, open(t, "store", Options{FS: fs})))
}

// TestRecordThatIsMissingBetweenOthers leaves a record out of a log whose other
// records are sound.
func TestRecordThatIsMissingBetweenOthers(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := open(t, "store", Options{FS: fs})
	for _, key := range []string{"a", "b", "c"} {
		write(t, s, key, "")
	}
	require.NoError(t, s.Close())
	d := directory{fs: fs, path: "store"}
	m, err := d.manifest()
	require.NoError(t, err)
	id, err := m.id()
	require.NoError(t, err)
	number := m.Segments[len(m.Segments)-1].File
	r, err := openSegment(d, number, id)
	require.NoError(t, err)
	var headers []header
	var bodies [][]byte
	for {
		h, body, err := r.next()
		if errors.Is(err, errTail) {
			break
		}
		require.NoError(t, err)
		headers, bodies = append(headers, h), append(bodies, bytes.Clone(body))
	}
	require.NoError(t, r.close())
	require.Greater(t, len(headers), 2)
	_, err = createSegment(d, number, 1<<20, func(rewritten *segment) error {
		for i := range headers {
			if i != 1 {
				require.NoError(t, rewritten.append(headers[i], bodies[i]))
			}
		}
		return nil
	})
	require.NoError(t, err)
	_, err = Open(context.Background(), "store", Options{FS: fs})
	require.ErrorIs(t, err, kv.ErrCorrupt)
	require.ErrorContains(t, err, "follows record")
}

// TestSyncThatFails has a disk take every write and refuse a sync.
func TestSyncThatFails(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	fs := &faultFS{FS: vfs.NewMem(), syncing: func(do func() error) error {
		if failing.Load() {
			return errors.New("the cable is loose")
		}
		return do()
	}}
	s := open(t, "store", Options{FS: fs})
	failing.Store(true)
	tx := s.Begin(kv.Options{})
	tx.Set([]byte("a"), []byte("1"))
	_, err := tx.Commit(context.Background())
	require.ErrorIs(t, err, kv.ErrReadOnly)
	require.ErrorContains(t, err, "the cable is loose")
	failing.Store(false)
	write(t, s, "a", "1")
	failing.Store(true)
	tx = s.Begin(kv.Options{})
	tx.Set([]byte("a"), []byte("2"))
	_, err = tx.Commit(context.Background())
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	require.ErrorContains(t, err, "the cable is loose")
	require.ErrorIs(t, s.Err(), kv.ErrStoreFailed)
}

// TestCheckpointLetsNoCommitLinger that it waits for.
func TestCheckpointLetsNoCommitLinger(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s := open(t, "store", Options{FS: vfs.NewMem(), Linger: time.Hour})
	write(t, s, "a", "1")
	tx := s.Begin(kv.Options{NoSync: true})
	tx.Set([]byte("b"), []byte("2"))
	commit(t, tx)
	require.NoError(t, s.Checkpoint(ctx))
}
