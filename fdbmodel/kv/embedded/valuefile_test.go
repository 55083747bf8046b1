package embedded

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// large returns a value that begins with its name, twice.
func large(name string, i int) []byte {
	b := random(5000 + i%100)
	copy(b, fmt.Sprintf("%-20s%-20s", fmt.Sprint(name, i), fmt.Sprint(name, i)))
	return b
}

func set(t testing.TB, s *Store, key string, value []byte) kv.Committed {
	tx := s.Begin(kv.Options{})
	tx.Set([]byte(key), value)
	return commit(t, tx)
}

func TestLargeValuesLieInTheCheckpoint(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fs := vfs.NewMem()
	s := open(t, "store", Options{FS: fs, Inline: true})
	want := map[string]string{}
	for i := range 50 {
		key, value := fmt.Sprintf("key%02d", i), large("v", i)
		want[key] = string(value)
		set(t, s, key, value)
	}
	set(t, s, "small", []byte("1"))
	want["small"] = "1"
	before := s.Stats()
	require.NoError(t, s.Checkpoint(ctx))
	for range 2 {
		require.Equal(t, before.Bytes, s.Stats().Bytes)
		require.Less(t, s.Stats().Memory, before.Memory/10)
		require.Equal(t, want, contents(t, s))
		require.Equal(t, want["key07"], string(read(t, s, "key07")))

		tx := s.Begin(kv.Options{})
		tx.Clear([]byte("key49"))
		page, err := tx.GetRange(kv.Prefix([]byte("key")), kv.RangeOptions{Limit: 2, Reverse: true}).Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, want["key48"], string(page.Items[0].Value))
		require.Equal(t, want["key47"], string(page.Items[1].Value))
		tx.Cancel()

		require.NoError(t, s.Close())
		s = open(t, "store", Options{FS: fs, Inline: true})
	}
	tx := s.Begin(kv.Options{})
	w := tx.Watch([]byte("key01"))
	commit(t, tx)
	tx = s.Begin(kv.Options{})
	tx.Atomic(kv.ByteMax, []byte("key01"), []byte{0})
	tx.Atomic(kv.ByteMax, []byte("key02"), bytes.Repeat([]byte{0xff}, 9))
	commit(t, tx)
	require.Equal(t, want["key01"], string(read(t, s, "key01")))
	require.Equal(t, strings.Repeat("\xff", 9), string(read(t, s, "key02")))
	require.NoError(t, s.Checkpoint(ctx))
	set(t, s, "small", []byte("2"))
	select {
	case <-w.Done():
		require.Fail(t, "nothing has changed")
	default:
	}
	set(t, s, "key01", nil)
	<-w.Done()
	require.NoError(t, w.Err())
}

// TestOldValuesAreReadFromTables until no reader can see them.
func TestOldValuesAreReadFromTables(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := open(t, "store", Options{FS: vfs.NewMem(), Inline: true, HistoryVersions: 1})
	first := large("first", 1)
	set(t, s, "a", first)
	set(t, s, "b", first)
	require.NoError(t, s.Checkpoint(ctx))
	old := s.Begin(kv.Options{})
	_, err := old.ReadVersion(ctx)
	require.NoError(t, err)
	for i := range 3 {
		set(t, s, "a", large("next", i))
		require.NoError(t, s.Checkpoint(ctx))
	}
	for _, key := range []string{"a", "b"} {
		value, err := old.Get([]byte(key)).Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, first, value)
	}
	require.Len(t, s.index.base.tables, 1, "what the reader must not see is in no table")
	old.Cancel()
	require.NoError(t, s.Checkpoint(ctx))
	require.Len(t, s.index.base.tables, 2)
	require.Equal(t, first, read(t, s, "b"))
	require.EqualValues(t, 2*5000+1+2, s.index.tableBytes)
	require.Zero(t, s.index.largeBytes.Load())
}

func TestLargeValuesInMemoryAskForACheckpoint(t *testing.T) {
	t.Parallel()
	o := Options{FS: vfs.NewMem(), Inline: true, CheckpointBytes: 200_000, HistoryVersions: 1}
	s := open(t, "store", o)
	for i := range 100 {
		set(t, s, fmt.Sprintf("key%02d", i), large("v", i))
		require.LessOrEqual(t, s.index.largeBytes.Load(), int64(100_000))
	}
	require.Greater(t, s.Stats().Checkpoints, int64(3))
	for i := range 100 {
		set(t, s, fmt.Sprintf("key%02d", i), []byte("small"))
	}
	require.Zero(t, s.index.largeBytes.Load())
	require.Zero(t, s.index.tableBytes)
}

func TestDamagedTableIsReported(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fs := vfs.NewMem()
	s := open(t, "store", Options{FS: fs, Inline: true})
	const rows = 4
	for i := range rows {
		set(t, s, fmt.Sprintf("key%02d", i), large("v", i))
	}
	require.NoError(t, s.Checkpoint(ctx))
	name := ""
	for file, content := range files(t, fs) {
		if strings.HasSuffix(file, rowsSuffix) {
			name = file
			f, err := fs.OpenReadWrite("store/"+file, vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			_, err = f.WriteAt(make([]byte, 1000), int64(len(content)/3))
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	for i := range rows {
		tx := s.Begin(kv.Options{})
		_, err := tx.Get(fmt.Appendf(nil, "key%02d", i)).Wait(ctx)
		tx.Cancel()
		if err != nil {
			require.ErrorIs(t, err, kv.ErrCorrupt)
			require.ErrorContains(t, err, name)
			break
		}
		require.NotEqual(t, rows-1, i, "all values are whole")
	}
	for i := range mergeWidth {
		set(t, s, fmt.Sprintf("key%02d", i), large("next", i))
		require.NoError(t, s.Checkpoint(ctx), "a table that can't be merged stays")
	}
	require.Len(t, s.index.base.tables, mergeWidth+1)
	require.Len(t, read(t, s, "key00"), 5000)
}

// TestReadersWhileCheckpointsReplaceEachOther never see a part of a value, or
// one of another key.
func TestReadersWhileCheckpointsReplaceEachOther(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"memory": {HistoryVersions: 1},
		"cold":   {HistoryVersions: 1, Memory: 1},
		"log":    {HistoryVersions: 1, CheckpointBytes: 2 << 20, SegmentSize: 256 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readWhileCheckpoints(t, o)
		})
	}
}

func readWhileCheckpoints(t *testing.T, o Options) {
	const keys, rounds = 20, 15
	ctx := context.Background()
	s := open(t, t.TempDir(), o)
	for k := range keys {
		set(t, s, fmt.Sprint("key", k), large(fmt.Sprint("key", k, "/"), 0))
	}
	var stop atomic.Bool
	var wait sync.WaitGroup
	check := func(key string, value []byte) {
		name := strings.TrimRight(string(value[:20]), " ")
		if !strings.HasPrefix(name, key+"/") || string(value[20:40]) != string(value[:20]) {
			t.Errorf("%s has %q", key, value[:40])
		}
	}
	for range 3 {
		wait.Go(func() {
			for !stop.Load() {
				tx := s.Begin(kv.Options{})
				key := fmt.Sprint("key", rand.IntN(keys))
				value, err := tx.Get([]byte(key)).Wait(ctx)
				if err == nil {
					check(key, value)
				}
				page, err2 := tx.GetRange(kv.Prefix([]byte("key")), kv.RangeOptions{}).Wait(ctx)
				tx.Cancel()
				if err != nil || err2 != nil || len(page.Items) != keys {
					t.Error(err, err2, len(page.Items))
					return
				}
				for _, item := range page.Items {
					check(string(item.Key), item.Value)
				}
			}
		})
	}
	wait.Go(func() {
		for i := 1; !stop.Load(); i++ {
			key := fmt.Sprint("key", rand.IntN(keys))
			set(t, s, key, large(key+"/", i))
		}
	})
	for range rounds {
		require.NoError(t, s.Checkpoint(ctx))
	}
	stop.Store(true)
	wait.Wait()
}

// TestMemoryOfLargeValues writes 500 MB of chunks where FUTURA_LONG=1 is set.
func TestMemoryOfLargeValues(t *testing.T) {
	if os.Getenv("FUTURA_LONG") != "1" {
		t.Skip("set FUTURA_LONG=1 to write 500 MB")
	}
	const chunk, chunks = 90_000, 5_600
	ctx, dir := context.Background(), t.TempDir()
	s := open(t, dir, Options{})
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range chunks {
		set(t, s, fmt.Sprintf("chunk%05d", i), random(chunk))
	}
	require.NotZero(t, s.Stats().Checkpoints)
	require.Less(t, heap()-before, int64(chunks*chunk/2))
	require.NoError(t, s.Checkpoint(ctx))
	require.Less(t, heap()-before, int64(30<<20))
	require.EqualValues(t, chunks*(chunk+10), s.Stats().Bytes)
	require.NoError(t, s.Close())
	s = open(t, dir, Options{})
	require.Less(t, heap()-before, int64(30<<20))
	require.Len(t, read(t, s, "chunk00042"), chunk)
}
