package objects

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// faults are what the files of a store suffer.
type faults struct {
	create  atomic.Pointer[error]
	read    atomic.Pointer[error]
	room    atomic.Int64 // bytes that can be written
	flip    atomic.Int64 // the offset of a byte that is read changed, or -1
	left    atomic.Int64 // what the file system says that it has
	now     atomic.Int64
	noPunch bool
	closed  atomic.Int64
	opened  atomic.Int64
}

func newFaults() *faults {
	f := &faults{}
	f.room.Store(1 << 40)
	f.left.Store(1 << 40)
	f.flip.Store(-1)
	return f
}

// options are those of a store on such a disk, with a clock that stands still.
func (f *faults) options(o Options) Options {
	o.create = f.open
	o.available = func(string) (int64, int64, bool) { return f.left.Load(), 1 << 40, true }
	o.now = func() time.Time { return time.UnixMilli(1_900_000_000_000 + f.now.Load()) }
	return o
}

// wait lets so much time pass.
func (f *faults) wait(d time.Duration) { f.now.Add(d.Milliseconds()) }

func (f *faults) open(dir string) (file, error) {
	if err := f.create.Load(); err != nil {
		return nil, *err
	}
	below, err := createNameless(dir)
	if err != nil {
		return nil, err
	}
	f.opened.Add(1)
	return &faultyFile{file: below, faults: f}, nil
}

type faultyFile struct {
	file
	faults *faults
}

func (f *faultyFile) WriteAt(p []byte, offset int64) (int, error) {
	if left := f.faults.room.Add(-int64(len(p))); left < 0 {
		return 0, syscall.ENOSPC
	}
	return f.file.WriteAt(p, offset)
}

func (f *faultyFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.faults.read.Load(); err != nil {
		return 0, *err
	}
	n, err := f.file.ReadAt(p, offset)
	if at := f.faults.flip.Load() - offset; at >= 0 && at < int64(n) {
		p[at] ^= 1
	}
	return n, err
}

func (f *faultyFile) Close() error {
	f.faults.closed.Add(1)
	return f.file.Close()
}

func (f *faultyFile) punch(offset, length int64) error {
	if f.faults.noPunch {
		return errors.ErrUnsupported
	}
	return f.file.punch(offset, length)
}

// TestDamagedDisk changes each of some bytes on disk: what is read is right or
// an error.
func TestDamagedDisk(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const size = 2*PieceSize + 100
	for _, at := range []int64{0, PieceSize - 1, PieceSize, size - 1} {
		f := newFaults()
		s := open(t, Options{Memory: -1, Dir: t.TempDir(), Disk: 8 << 20, create: f.open})
		want := someBytes(size, 1)
		ref, err := s.Put(ctx, bytes.NewReader(want), PutOptions{})
		require.NoError(t, err)
		f.flip.Store(at)
		o, err := s.Open(ref.Hash)
		require.NoError(t, err)
		_, ok := o.Bytes()
		require.False(t, ok)
		got, err := io.ReadAll(o)
		require.ErrorIs(t, err, ErrDamaged, at)
		require.EqualValues(t, at/PieceSize*PieceSize, len(got))
		require.True(t, bytes.HasPrefix(want, got))
		_, err = o.Seek(0, io.SeekStart)
		require.NoError(t, err)
		var out bytes.Buffer
		_, err = o.WriteTo(&out)
		require.ErrorIs(t, err, ErrDamaged)
		require.True(t, bytes.HasPrefix(want, out.Bytes()))
		_, err = o.ReadAt(make([]byte, 1), at)
		require.ErrorIs(t, err, ErrDamaged)
		// A disk that reads well again is read again.
		f.flip.Store(-1)
		require.NoError(t, o.Close())
		requireContent(t, s, ref, want)
		broken := error(syscall.EIO)
		f.read.Store(&broken)
		o, err = s.Open(ref.Hash)
		require.NoError(t, err)
		_, err = io.ReadAll(o)
		require.ErrorIs(t, err, syscall.EIO)
		require.NoError(t, o.Close())
	}
}

// TestFullDisk has a disk with less room than it was said to have.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const size = 3 * PieceSize
	f := newFaults()
	s := open(t, f.options(Options{Memory: charge(size, inMemory), Dir: t.TempDir(), Disk: 64 << 20}))
	want := someBytes(size, 1)
	ref, err := s.PutBytes(ctx, want, PutOptions{})
	require.NoError(t, err)
	before := s.Stats()
	f.room.Store(size - 1)
	for name, put := range map[string]func() error{
		"bytes": func() error { _, err := s.PutBytes(ctx, someBytes(size, 2), PutOptions{}); return err },
		"piece": func() error {
			f.room.Store(PieceSize - 1)
			_, err := s.PutBytes(ctx, someBytes(PieceSize, 2), PutOptions{})
			return err
		},
		"stream": func() error {
			_, err := s.Put(ctx, iotest.HalfReader(bytes.NewReader(someBytes(2*size, 2))), PutOptions{})
			return err
		},
		"reserve": func() error {
			kept, err := s.Reserve(ctx, size)
			if err == nil {
				defer kept.Release()
				_, err = s.PutBytes(ctx, someBytes(size, 2), PutOptions{Reservation: kept})
			}
			return err
		},
	} {
		err := put()
		require.ErrorIs(t, err, ErrFull, name)
		require.ErrorIs(t, err, syscall.ENOSPC, name)
		require.ErrorContains(t, err, s.options.Dir, name)
		paused := s.Stats()
		require.Equal(t, before.MemoryBudget-before.MemoryUsed, paused.Free, "%s: it says that it has no room", name)
		require.Zero(t, s.Fits(size), name)
		paused.Free = before.Free
		require.Equal(t, before, paused, name)
		_, err = s.PutBytes(ctx, someBytes(size, 2), PutOptions{})
		require.ErrorIs(t, err, ErrFull, name)
		require.ErrorContains(t, err, "is tried again within 5s (no space left on device)", name)
		f.wait(diskPause - 1)
		require.Zero(t, s.Fits(size), name)
		f.wait(time.Millisecond)
		require.Equal(t, before, s.Stats(), "%s: it says that it has room", name)
		requireContent(t, s, ref, want)
	}
	denied := error(syscall.EMFILE)
	f.create.Store(&denied)
	_, err = s.PutBytes(ctx, someBytes(size, 2), PutOptions{})
	require.ErrorIs(t, err, syscall.EMFILE)
	f.wait(diskPause)
	require.Equal(t, before, s.Stats())
	f.create.Store(nil)
	f.room.Store(1 << 40)
	second, err := s.PutBytes(ctx, someBytes(size, 2), PutOptions{})
	require.NoError(t, err)
	requireContent(t, s, ref, want)
	requireContent(t, s, second, someBytes(size, 2))
}

// TestADiskThatTakesNothingKeepsNoRoom has a disk fail before and while an object goes there for which memory has no
// room.
func TestADiskThatTakesNothingKeepsNoRoom(t *testing.T) {
	t.Parallel()
	const size = 5 * PieceSize
	for name, memory := range map[string]int64{"at once": -1, "on its way": 3 * PieceSize} {
		f := newFaults()
		s := open(t, f.options(Options{Memory: memory, Dir: t.TempDir(), Disk: 64 << 20}))
		put := func() error {
			_, err := s.Put(t.Context(), iotest.HalfReader(bytes.NewReader(someBytes(size, 1))), PutOptions{})
			return err
		}
		denied := error(syscall.EMFILE)
		f.create.Store(&denied)
		require.ErrorIs(t, put(), syscall.EMFILE, name)
		f.wait(diskPause)
		f.create.Store(nil)
		f.room.Store(PieceSize / 2)
		require.ErrorIs(t, put(), syscall.ENOSPC, name)
		f.wait(diskPause)
		stats := s.Stats()
		require.Zero(t, stats.MemoryUsed+stats.DiskUsed, name)
		f.room.Store(1 << 40)
		require.NoError(t, put(), name)
	}
}

// TestAnObjectIsDeletedOnItsWayToDisk gives back what it takes in both places, whether it would have arrived or not.
func TestAnObjectIsDeletedOnItsWayToDisk(t *testing.T) {
	t.Parallel()
	const size = 3 * PieceSize
	for _, fails := range []bool{false, true} {
		f, deleted := newFaults(), 0
		o := f.options(Options{Memory: charge(size, inMemory), Dir: t.TempDir(), Disk: 64 << 20})
		var s *Store
		var first Ref
		o.create = func(dir string) (file, error) {
			found, err := s.Delete(first.Hash)
			require.NoError(t, err)
			require.True(t, found)
			if deleted++; fails {
				return nil, syscall.EMFILE
			}
			return f.open(dir)
		}
		s = open(t, o)
		var err error
		first, err = s.PutBytes(t.Context(), someBytes(size, 1), PutOptions{})
		require.NoError(t, err)
		second, err := s.PutBytes(t.Context(), someBytes(size, 2), PutOptions{})
		require.Equal(t, fails, err != nil, err)
		require.Equal(t, 1, deleted)
		if !fails {
			requireContent(t, s, second, someBytes(size, 2))
			_, err = s.Delete(second.Hash)
			require.NoError(t, err)
		}
		f.wait(diskPause)
		stats := s.Stats()
		require.Zero(t, stats.MemoryUsed, "fails %t", fails)
		require.Zero(t, stats.DiskUsed, "fails %t", fails)
	}
}

// TestWhatMemoryCanNotHoldMovesNothing: an object that is larger than all of memory makes no other one go to disk.
func TestWhatMemoryCanNotHoldMovesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Memory: 2 * PieceSize, Dir: t.TempDir(), Disk: 64 << 20})
	_, err := s.PutBytes(t.Context(), someBytes(PieceSize, 1), PutOptions{})
	require.NoError(t, err)
	before := s.Stats().MemoryUsed
	_, err = s.PutBytes(t.Context(), someBytes(3*PieceSize, 2), PutOptions{})
	require.NoError(t, err)
	require.Equal(t, before, s.Stats().MemoryUsed)
}

// TestRoomOfTheFileSystem has a file system with less room than the store may take, of
// which a margin is left to others. What is taken and not yet written counts, what is
// written does not count twice, and room that comes back is there at once.
func TestRoomOfTheFileSystem(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const size = 3 * PieceSize
	f := newFaults()
	s := open(t, f.options(Options{Memory: -1, Dir: t.TempDir(), Disk: 1 << 30}))
	f.left.Store(diskMargin + 2*charge(size, onDisk))
	require.Equal(t, 2, s.Fits(size))
	require.Equal(t, 2*charge(size, onDisk), s.Stats().Free)
	kept, err := s.Reserve(ctx, size)
	require.NoError(t, err)
	require.Equal(t, 1, s.Fits(size), "of two one is reserved")
	want := someBytes(size, 1)
	ref, err := s.PutBytes(ctx, want, PutOptions{Reservation: kept})
	require.NoError(t, err)
	kept.Release()
	f.left.Add(-charge(size, onDisk))
	require.Equal(t, 1, s.Fits(size), "it is written")
	f.left.Store(diskMargin)
	require.Zero(t, s.Fits(size))
	require.Zero(t, s.Stats().Free)
	_, err = s.PutBytes(ctx, someBytes(size, 2), PutOptions{})
	require.ErrorIs(t, err, ErrFull)
	require.ErrorContains(t, err, "the file system of "+s.options.Dir+" has 0 left for objects")
	requireContent(t, s, ref, want)
	f.left.Store(1 << 40)
	second, err := s.PutBytes(ctx, someBytes(size, 2), PutOptions{})
	require.NoError(t, err)
	_, err = s.Delete(second.Hash)
	require.NoError(t, err)
	f.left.Store(diskMargin + charge(size, onDisk))
	require.Equal(t, 1, s.Fits(size), "what was deleted counts no more")
}

// TestFewFiles has one file in all: larger objects are kept on the heap, and the
// disk says what it lacks.
func TestFewFiles(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := open(t, Options{Memory: 16 << 20, Dir: t.TempDir(), MaxFiles: 1})
	refs := make([]Ref, 3)
	for i := range refs {
		ref, err := s.PutBytes(ctx, someBytes(PieceSize+i, uint64(i)), PutOptions{})
		require.NoError(t, err)
		refs[i] = ref
	}
	require.LessOrEqual(t, s.files, 1)
	_, err := s.Put(ctx, bytes.NewReader(make([]byte, 20<<20)), PutOptions{})
	require.ErrorIs(t, err, ErrFull)
	for i, ref := range refs {
		requireContent(t, s, ref, someBytes(PieceSize+i, uint64(i)))
	}
}

// TestSharedFiles has many small objects on disk, which share files, and deletes
// them in several orders.
func TestSharedFiles(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, noPunch := range []bool{false, true} {
		f := newFaults()
		f.noPunch = noPunch
		s := open(t, Options{Memory: -1, Dir: filepath.Join(t.TempDir(), "a", "b"), Disk: 128 << 20, create: f.open})
		const size = 700 << 10
		var refs []Ref
		for i := range 100 {
			ref, err := s.PutBytes(ctx, someBytes(size, uint64(i)), PutOptions{})
			require.NoError(t, err)
			refs = append(refs, ref)
		}
		require.EqualValues(t, 2, f.opened.Load())
		for i, ref := range refs {
			if i%3 != 0 {
				_, err := s.Delete(ref.Hash)
				require.NoError(t, err)
			}
		}
		kept := 34 * charge(size, onDisk)
		if noPunch {
			require.Greater(t, s.Stats().DiskUsed, 2*kept, "the files take it still")
		} else if removesOpen {
			require.Equal(t, kept, s.Stats().DiskUsed)
		}
		for i, ref := range refs {
			if i%3 == 0 {
				requireContent(t, s, ref, someBytes(size, uint64(i)))
				_, err := s.Delete(ref.Hash)
				require.NoError(t, err)
			}
		}
		require.Zero(t, s.Stats().DiskUsed)
		require.EqualValues(t, 2, f.closed.Load())
	}
}
