package embedded

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// countingFS counts the bytes that are read and written.
type countingFS struct {
	vfs.FS
	bytes atomic.Int64
}

func (f *countingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.count(f.FS.Create(name, c))
}

func (f *countingFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	return f.count(f.FS.Open(name, o...))
}

func (f *countingFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.count(f.FS.OpenReadWrite(name, c, o...))
}

func (f *countingFS) count(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &countingFile{File: file, fs: f}, nil
}

type countingFile struct {
	vfs.File
	fs *countingFS
}

func (f *countingFile) add(n int, err error) (int, error) {
	f.fs.bytes.Add(int64(n))
	return n, err
}

func (f *countingFile) Read(b []byte) (int, error)              { return f.add(f.File.Read(b)) }
func (f *countingFile) ReadAt(b []byte, at int64) (int, error)  { return f.add(f.File.ReadAt(b, at)) }
func (f *countingFile) Write(b []byte) (int, error)             { return f.add(f.File.Write(b)) }
func (f *countingFile) WriteAt(b []byte, at int64) (int, error) { return f.add(f.File.WriteAt(b, at)) }

// TestManyOpenings has thousands of them commit a little each: neither the files
// nor what an opening reads and writes grows with their number.
func TestManyOpenings(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]bool{"closed": true, "killed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			openings := 3000
			if testing.Short() {
				openings = 600
			}
			counting := &countingFS{FS: vfs.NewMem()}
			o := Options{Inline: true, SegmentSize: 256 << 10, CheckpointBytes: 1 << 20}
			most, files, manifest := int64(0), 0, 0
			for i := range openings {
				disk := counting.FS.(*vfs.MemFS)
				o.FS = counting
				before := counting.bytes.Load()
				s := open(t, "store", o)
				require.Len(t, read(t, s, fmt.Sprint("key", (i+1)%40)), min(max(0, i-38), 1)*500)
				write(t, s, fmt.Sprint("key", i%40), strings.Repeat("v", 500))
				if closed {
					require.NoError(t, s.Close())
				} else {
					counting.FS = copyOf(t, disk)
				}
				all := filesOf(t, counting.FS)
				files, manifest = max(files, len(all)), max(manifest, all[manifestName])
				most = max(most, counting.bytes.Load()-before)
			}
			require.LessOrEqual(t, files, 12)
			require.Less(t, manifest, 1000)
			require.Less(t, most, int64(512<<10))
		})
	}
}

// copyOf returns what the process that has the files open leaves when it is
// killed.
func copyOf(t testing.TB, fs *vfs.MemFS) *vfs.MemFS { return filesystem(t, files(t, fs)) }

// filesOf returns the sizes of the files of the store.
func filesOf(t testing.TB, fs vfs.FS) map[string]int {
	sizes := map[string]int{}
	for name, content := range files(t, fs) {
		sizes[name] = len(content)
	}
	return sizes
}

// TestOpeningThatOnlyReads leaves every file as it is.
func TestOpeningThatOnlyReads(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := open(t, "store", Options{FS: fs})
	write(t, s, "a", "1")
	require.NoError(t, s.Close())
	before := files(t, fs)
	for range 3 {
		s := open(t, "store", Options{FS: fs})
		require.Equal(t, []byte("1"), read(t, s, "a"))
		conflict := s.Begin(kv.Options{})
		conflict.AddReadConflictKey([]byte("a"))
		commit(t, conflict)
		require.NoError(t, s.Close())
		require.Equal(t, before, files(t, fs))
	}
}
