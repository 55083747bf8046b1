package embedded

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

// spilling are options under which the log has all but a few large values, and nothing
// asks for a checkpoint.
func spilling(fs vfs.FS) Options {
	return Options{FS: fs, Inline: true, SegmentSize: 40 << 10, CheckpointBytes: 2 << 20}
}

// TestPlacesInTheLog finds bytes of records of many sizes where the library put them.
func TestPlacesInTheLog(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	w := record.NewWriter(&file)
	type placed struct {
		at   int64
		body []byte
	}
	var all []placed
	for _, size := range []int{0, 1, recordBlock - 3*recordHead - 1, 0, 10, recordBlock - recordHead, 3 * recordBlock,
		recordBlock / 2, recordBlock / 3, 1, 7, 100_000} {
		to, err := w.Next()
		require.NoError(t, err)
		at, err := w.LastRecordOffset()
		require.NoError(t, err)
		body := random(size)
		_, err = to.Write(body)
		require.NoError(t, err)
		all = append(all, placed{at, body})
	}
	require.NoError(t, w.Close())
	for _, r := range all {
		for i, b := range r.body {
			if file.Bytes()[recordPlace(r.at, i)] != b {
				require.Fail(t, "another byte", "byte %d of %d of the record at %d", i, len(r.body), r.at)
			}
		}
	}
}

func TestLargeValuesAreLeftToTheLog(t *testing.T) {
	t.Parallel()
	ctx, virtual := context.Background(), clock.NewVirtual(time.Unix(0, 0))
	o := spilling(vfs.NewMem())
	o.Clock, o.HistoryVersions = virtual, 1
	s := open(t, "store", o)
	want := map[string]string{}
	put := func(key string, value []byte) {
		want[key] = string(value)
		set(t, s, key, value)
	}
	for i := range 40 {
		put(fmt.Sprintf("key%02d", i), large("v", i))
	}
	require.Zero(t, s.Stats().Checkpoints)
	require.Greater(t, s.Stats().Segments, 3)
	require.Less(t, s.Stats().Memory, int64(30_000))
	require.Equal(t, want, contents(t, s))

	old, before := s.Begin(kv.Options{}), maps.Clone(want)
	_, err := old.ReadVersion(ctx)
	require.NoError(t, err)
	tx := s.Begin(kv.Options{})
	w := tx.Watch([]byte("key01"))
	commit(t, tx)
	for i := range 40 {
		switch i % 4 {
		case 0:
			put(fmt.Sprintf("key%02d", i), large("next", i))
		case 1:
			tx := s.Begin(kv.Options{})
			tx.Atomic(kv.ByteMax, fmt.Appendf(nil, "key%02d", i), []byte{0})
			commit(t, tx)
		case 2:
			tx := s.Begin(kv.Options{})
			tx.Clear(fmt.Appendf(nil, "key%02d", i))
			commit(t, tx)
			delete(want, fmt.Sprintf("key%02d", i))
		}
	}
	for range 2 {
		require.Equal(t, want, contents(t, s))
		for key, value := range before {
			got, err := old.Get([]byte(key)).Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, value, string(got))
		}
		require.NoError(t, s.Checkpoint(ctx))
	}
	require.NotZero(t, s.index.loggedBytes, "what the reader must not see is in no table")
	select {
	case <-w.Done():
		require.Fail(t, "nothing has changed")
	default:
	}
	old.Cancel()
	require.NoError(t, s.Checkpoint(ctx))
	require.Zero(t, s.index.loggedBytes)
	require.Zero(t, s.index.largeBytes.Load())
	for range 3 {
		virtual.Advance(time.Second)
		set(t, s, "small", nil)
	}
	require.Empty(t, s.index.valueFiles)
	want["small"] = ""
	require.Equal(t, want, contents(t, s))
	require.NoError(t, s.Close())
	require.Equal(t, want, contents(t, open(t, "store", o)))
}

// TestSpilledValuesByChance compares a store that spills, checkpoints and is opened again
// with a map, now and as of a while ago.
func TestSpilledValuesByChance(t *testing.T) {
	t.Parallel()
	ctx, seed := context.Background(), rand.Uint64()
	t.Logf("seed %d", seed)
	chance, fs := rand.New(rand.NewPCG(seed, 0)), vfs.NewMem()
	o := spilling(fs)
	o.CheckpointBytes, o.HistoryVersions = 512<<10, 4
	s, want := open(t, "store", o), map[string]string{}
	var old kv.Tx
	before := map[string]string{}
	steps := 100
	if os.Getenv("FUTURA_LONG") == "1" {
		steps = 3000
	}
	for step := range steps {
		tx := s.Begin(kv.Options{})
		for range 1 + chance.IntN(3) {
			key := fmt.Sprint("key", chance.IntN(30))
			switch chance.IntN(8) {
			case 0:
				tx.Clear([]byte(key))
				delete(want, key)
			case 1:
				tx.Atomic(kv.ByteMax, []byte(key), []byte("more"))
				want[key] = max(want[key], "more")
			default:
				value := random(chance.IntN(12_000))
				tx.Set([]byte(key), value)
				want[key] = string(value)
			}
		}
		commit(t, tx)
		switch chance.IntN(40) {
		case 0:
			require.NoError(t, s.Checkpoint(ctx))
		case 1:
			if old != nil {
				old.Cancel()
			}
			require.NoError(t, s.Close())
			s, old = open(t, "store", o), nil
		case 2:
			if old != nil {
				old.Cancel()
			}
			old, before = s.Begin(kv.Options{}), maps.Clone(want)
			_, err := old.ReadVersion(ctx)
			require.NoError(t, err)
		}
		if step%10 == 0 {
			require.True(t, maps.Equal(want, contents(t, s)), "step %d", step)
		}
		if old != nil {
			key := fmt.Sprint("key", chance.IntN(30))
			got, err := old.Get([]byte(key)).Wait(ctx)
			require.NoError(t, err)
			require.True(t, before[key] == string(got), "%s as of before step %d", key, step)
		}
	}
	if old != nil {
		old.Cancel()
	}
}

// TestValuesStayInMemoryWithoutDescriptors: the log can't be opened to read there.
func TestValuesStayInMemoryWithoutDescriptors(t *testing.T) {
	t.Parallel()
	scarce := &scarceFS{FS: vfs.NewMem()}
	scarce.left.Store(math.MaxInt64)
	o := spilling(scarce)
	o.SegmentSize = 1 << 20
	s := open(t, "store", o)
	set(t, s, "begun", nil)
	scarce.left.Store(0)
	want := map[string]string{"begun": ""}
	for i := range 20 {
		key, value := fmt.Sprintf("key%02d", i), large("v", i)
		want[key] = string(value)
		set(t, s, key, value)
	}
	require.NotZero(t, scarce.refused.Load())
	require.Zero(t, s.index.loggedBytes)
	require.Equal(t, want, contents(t, s))
	scarce.left.Store(math.MaxInt64)
}

func TestDamagedLogIsReportedByReads(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := spilling(fs)
	o.SegmentSize = 1 << 20
	s := open(t, "store", o)
	const rows = 20
	for i := range rows {
		set(t, s, fmt.Sprintf("key%02d", i), large("v", i))
	}
	require.Greater(t, s.index.loggedBytes, int64(8*5000))
	for name := range files(t, fs) {
		if strings.HasSuffix(name, segmentSuffix) {
			f, err := fs.OpenReadWrite("store/"+name, vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			_, err = f.WriteAt(make([]byte, 100), 20_000)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	damaged := 0
	for i := range rows {
		tx := s.Begin(kv.Options{})
		_, err := tx.Get(fmt.Appendf(nil, "key%02d", i)).Wait(context.Background())
		tx.Cancel()
		if err != nil {
			require.ErrorIs(t, err, kv.ErrCorrupt)
			require.ErrorContains(t, err, segmentSuffix)
			damaged++
		}
	}
	require.Contains(t, []int{1, 2}, damaged)
	require.ErrorIs(t, s.Checkpoint(context.Background()), kv.ErrCorrupt)
}

// failingFile is a file that the system can't read.
type failingFile struct{ vfs.File }

func (failingFile) ReadAt([]byte, int64) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: "store/00000001.log", Err: syscall.EIO}
}

// TestDiskThatCantReadIsNotTakenForDamage of what is on it.
func TestDiskThatCantReadIsNotTakenForDamage(t *testing.T) {
	t.Parallel()
	f := &valueFile{dir: directory{fs: vfs.NewMem(), path: "store"}, file: 1, log: failingFile{}}
	_, err := f.readLog(make([]byte, 10), 0, 0)
	require.ErrorIs(t, err, syscall.EIO)
	require.NotErrorIs(t, err, kv.ErrCorrupt)
}
