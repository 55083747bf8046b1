package embedded

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// files reads the files of the store in a file system.
func files(t testing.TB, fs vfs.FS) map[string][]byte {
	names, err := fs.List("store")
	require.NoError(t, err)
	all := map[string][]byte{}
	for _, name := range names {
		f, err := fs.Open("store/" + name)
		require.NoError(t, err)
		all[name], err = io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	return all
}

// filesystem is the opposite of files.
func filesystem(t testing.TB, all map[string][]byte) *vfs.MemFS {
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll("store", 0o755))
	d := directory{fs: fs, path: "store"}
	for name, b := range all {
		require.NoError(t, d.write(name, slices.Clone(b)))
	}
	return fs
}

// storeFiles returns the files of a store with a checkpoint and several
// segments after it, and its rows. It is closed, or killed.
func storeFiles(t testing.TB, closed bool) (all map[string][]byte, history []map[string]string) {
	const steps = 100
	history = crashHistory(t, steps)
	fs := vfs.NewMem()
	s := open(t, "store", Options{FS: fs, Inline: true, SegmentSize: 3 << 10})
	for i := 1; i <= steps; i++ {
		tx := s.Begin(kv.Options{})
		crashStep(tx, i)
		commit(t, tx)
		if i == steps/2 {
			require.NoError(t, s.Checkpoint(context.Background()))
		}
	}
	require.Greater(t, s.Stats().Segments, 2)
	if closed {
		require.NoError(t, s.Close())
	}
	all = files(t, fs)
	for name, content := range all {
		if strings.HasSuffix(name, segmentSuffix) {
			// Some of the zeros behind the records are enough.
			end := len(bytes.TrimRight(content, "\x00"))
			all[name] = content[:min(len(content), end+64)]
		}
	}
	return all, history
}

// reopen returns the rows of a store that was made of files.
func reopen(t testing.TB, all map[string][]byte) (map[string]string, error) {
	s, err := Open(context.Background(), "store", Options{FS: filesystem(t, all), Inline: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return contents(t, s), nil
}

func TestEveryFlippedBitIsFoundOrHarmless(t *testing.T) {
	t.Parallel()
	all, history := storeFiles(t, true)
	want := history[len(history)-1]
	found := map[string]int{}
	for name, content := range all {
		step := 1
		if len(content) > 1<<10 {
			step = 23
		}
		if testing.Short() {
			step = 251
		}
		for bit := 0; bit < 8*len(content); bit += step {
			damaged := maps.Clone(all)
			damaged[name] = slices.Clone(content)
			damaged[name][bit/8] ^= 1 << (bit % 8)
			rows, err := reopen(t, damaged)
			if err == nil {
				require.Equal(t, want, rows, "bit %d of %s", bit, name)
				continue
			}
			require.ErrorIs(t, err, kv.ErrCorrupt)
			require.ErrorContains(t, err, "store/")
			found[name[strings.LastIndex(name, ".")+1:]]++
		}
	}
	require.NotZero(t, found["log"])
	require.NotZero(t, found["rows"])
	require.NotZero(t, found["MANIFEST"])
}

// TestFlippedBitAfterAKill allows nothing to be lost; and nothing but the last
// commit if the mark is, as its record may as well have been cut off then.
func TestFlippedBitAfterAKill(t *testing.T) {
	t.Parallel()
	all, history := storeFiles(t, false)
	last := len(history) - 1
	name := lastSegment(all)
	for bit := 0; bit < 8*len(all[name]); bit += 19 {
		damaged := maps.Clone(all)
		damaged[name] = slices.Clone(all[name])
		damaged[name][bit/8] ^= 1 << (bit % 8)
		if rows, err := reopen(t, damaged); err == nil {
			require.Equal(t, history[last], rows, "bit %d", bit)
		}
	}
	delete(all, markName)
	for bit := 0; bit < 8*len(all[name]); bit += 19 {
		damaged := maps.Clone(all)
		damaged[name] = slices.Clone(all[name])
		damaged[name][bit/8] ^= 1 << (bit % 8)
		rows, err := reopen(t, damaged)
		if err != nil {
			require.ErrorIs(t, err, kv.ErrCorrupt)
			require.ErrorContains(t, err, name)
			continue
		}
		require.True(t, maps.Equal(rows, history[last]) || maps.Equal(rows, history[last-1]), "bit %d", bit)
	}
}

// lastSegment returns the name of the last segment that has records.
func lastSegment(all map[string][]byte) string {
	return slices.MaxFunc(slices.Collect(maps.Keys(all)), func(a, b string) int {
		rank := func(name string) string {
			if !strings.HasSuffix(name, segmentSuffix) || len(all[name]) == 0 {
				return ""
			}
			return name
		}
		return strings.Compare(rank(a), rank(b))
	})
}

// headSize is the size of the first record of a segment in its file.
const headSize = 7 + headerSize

// TestTornTail cuts the log of a store whose mark is lost, as a power failure may
// leave it.
func TestTornTail(t *testing.T) {
	t.Parallel()
	all, history := storeFiles(t, false)
	delete(all, markName)
	name := lastSegment(all)
	states := map[int]bool{}
	less := 1
	if testing.Short() {
		less = 5
	}
	for size := len(all[name]); size >= 0; size -= less {
		for _, zeros := range []int{0, 40} {
			torn := maps.Clone(all)
			torn[name] = append(slices.Clone(all[name][:size]), make([]byte, zeros)...)
			rows, err := reopen(t, torn)
			if size < headSize && !bytes.HasPrefix(torn[name], all[name][:headSize]) {
				// The first record was synced before the manifest named the file.
				require.ErrorIs(t, err, kv.ErrCorrupt, "%d bytes are left", size)
				require.ErrorContains(t, err, name)
				continue
			}
			require.NoError(t, err)
			steps := slices.IndexFunc(history, func(h map[string]string) bool { return maps.Equal(h, rows) })
			require.Positive(t, steps, "%d bytes are left", size)
			states[steps] = true
		}
	}
	require.Greater(t, len(states), 2)
}

func TestCutOrMissingFiles(t *testing.T) {
	t.Parallel()
	all, _ := storeFiles(t, true)
	for name := range all {
		if name == lockName || name == markName {
			continue
		}
		missing := maps.Clone(all)
		delete(missing, name)
		_, err := reopen(t, missing)
		require.ErrorIs(t, err, kv.ErrCorrupt, "without %s", name)
		require.ErrorContains(t, err, name)
		disk := filesystem(t, missing)
		before := files(t, disk)
		_, err = Open(context.Background(), "store", Options{FS: disk, Inline: true})
		require.ErrorIs(t, err, kv.ErrCorrupt)
		require.Equal(t, before, files(t, disk), "an opening that finds damage changes nothing")
		cut := maps.Clone(all)
		cut[name] = all[name][:len(all[name])/2]
		_, err = reopen(t, cut)
		require.ErrorIs(t, err, kv.ErrCorrupt, "half of %s", name)
		require.ErrorContains(t, err, name)
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := open(t, "store", Options{FS: fs})
	require.NoError(t, s.Close())
	d := directory{fs: fs, path: "store"}
	m, err := d.manifest()
	require.NoError(t, err)
	m.Format++
	require.NoError(t, d.install(m))
	_, err = Open(context.Background(), "store", Options{FS: fs})
	require.ErrorContains(t, err, "newer release")
}

// FuzzRecord reads a record's body that anyone may have written.
func FuzzRecord(f *testing.F) {
	f.Add(appendSet(appendClear(appendClearRange(nil, []byte("a"), []byte("b")), []byte("c")), []byte("d"), []byte("e")))
	f.Add([]byte{recordSet, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		x := &index{}
		x.init(4<<10, 0)
		l := &loader{ctx: context.Background(), index: x, version: 1}
		if err := l.apply(body); err != nil && !errors.Is(err, errMalformed) {
			t.Fatal(err)
		}
		x.collect(1)
		require.EqualValues(t, x.tree.size, x.liveKeys)
	})
}

func TestDiskThatFills(t *testing.T) {
	t.Parallel()
	for name, inline := range map[string]bool{"pipeline": false, "inline": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			fs := &faultFS{FS: vfs.NewMem()}
			s := open(t, "store", Options{FS: fs, Inline: inline})
			write(t, s, "a", "1")
			tx := s.Begin(kv.Options{})
			w := tx.Watch([]byte("a"))
			commit(t, tx)
			full := &os.PathError{Op: "write", Path: "store", Err: errors.New("no space left on device")}
			fs.fail(full)

			tx = s.Begin(kv.Options{})
			tx.Set([]byte("b"), nil)
			_, err := tx.Commit(ctx)
			require.ErrorIs(t, err, kv.ErrUnknownResult)
			require.ErrorContains(t, err, "no space left")
			<-s.Failed()
			<-w.Done()
			require.ErrorIs(t, w.Err(), kv.ErrStoreFailed)
			require.ErrorIs(t, s.Err(), kv.ErrStoreFailed)
			fs.heal()
			tx = s.Begin(kv.Options{})
			_, err = tx.Get([]byte("a")).Wait(ctx)
			require.ErrorIs(t, err, kv.ErrStoreFailed)
			tx = s.Begin(kv.Options{})
			tx.Set([]byte("c"), nil)
			_, err = tx.Commit(ctx)
			require.ErrorIs(t, err, kv.ErrStoreFailed)
			require.ErrorIs(t, s.Checkpoint(ctx), kv.ErrStoreFailed)
			require.ErrorIs(t, s.Close(), kv.ErrStoreFailed)
			require.NoError(t, s.Close())

			rows := contents(t, open(t, "store", Options{FS: fs, Inline: inline}))
			require.Equal(t, "1", rows["a"])
			require.NotContains(t, rows, "c")
		})
	}
}

// TestCheckpointThatFails leaves a store that goes on.
func TestCheckpointThatFails(t *testing.T) {
	t.Parallel()
	fs := &faultFS{FS: vfs.NewMem()}
	s := open(t, "store", Options{FS: fs, Inline: true})
	write(t, s, "a", "1")
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, s.Checkpoint(cancelled), context.Canceled)
	write(t, s, "b", "2")
	require.NoError(t, s.Checkpoint(context.Background()))
	write(t, s, "c", "3")
	want := contents(t, s)
	require.NoError(t, s.Close())
	require.Equal(t, want, contents(t, open(t, "store", Options{FS: fs})))
}

func TestDirectoryThatCantBeWritten(t *testing.T) {
	t.Parallel()
	fs := &faultFS{FS: vfs.NewMem()}
	fs.fail(&os.PathError{Op: "create", Path: "store", Err: os.ErrPermission})
	_, err := Open(context.Background(), "store", Options{FS: fs})
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, "store")
	fs.heal()
	open(t, "store", Options{FS: fs})
}
