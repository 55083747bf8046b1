package objects

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// someBytes are n bytes that don't repeat.
func someBytes(n int, seed uint64) []byte {
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	b := make([]byte, n)
	_, _ = random.Read(b)
	return b
}

// sizes are those around the borders that objects have.
var sizes = []int{0, 1, 1000, pageSize, heapSize, heapSize + 1, PieceSize - 1, PieceSize, PieceSize + 1,
	3*PieceSize + 17, sharedSize + 1}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		stats := s.Stats()
		require.Zero(t, stats.MemoryUsed, "memory is given back")
		require.Zero(t, stats.DiskUsed, "disk is given back")
		require.Zero(t, stats.Reserved)
		require.Zero(t, stats.Pinned)
		require.Zero(t, s.files, "files are closed")
	})
	return s
}

// tierOptions are stores whose objects are in one tier.
func tierOptions(t *testing.T) map[string]Options {
	return map[string]Options{
		"memory": {Memory: 64 << 20},
		"heap":   {Memory: 64 << 20, MaxFiles: 0},
		"disk":   {Memory: -1, Dir: filepath.Join(t.TempDir(), "objects"), Disk: 64 << 20},
	}
}

func requireContent(t *testing.T, s *Store, ref Ref, want []byte) {
	t.Helper()
	o, err := s.Open(ref.Hash)
	require.NoError(t, err)
	if len(want) <= pageSize {
		require.NoError(t, iotest.TestReader(o, want))
	}
	for _, from := range []int{0, len(want) / 3, max(0, len(want)-10), len(want)} {
		got := make([]byte, min(len(want)-from, PieceSize+3))
		n, err := o.ReadAt(got, int64(from))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want[from:from+n], got))
		n, err = o.ReadAt(make([]byte, 5), int64(len(want)-min(len(want), 3)))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, min(len(want), 3), n)
	}
	var out bytes.Buffer
	_, err = o.Seek(0, io.SeekStart)
	require.NoError(t, err)
	n, err := o.WriteTo(&out)
	require.NoError(t, err)
	require.EqualValues(t, len(want), n)
	require.True(t, bytes.Equal(want, out.Bytes()))
	if whole, ok := o.Bytes(); ok {
		require.True(t, bytes.Equal(want, whole))
	}
	require.Equal(t, ref, o.Ref())
	require.NoError(t, ref.Verify(o.Pieces()))
	require.NoError(t, o.Close())
	require.NoError(t, o.Close())
	_, err = o.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, ErrClosed)
}

// TestStore puts, reads and deletes objects of all kinds of sizes, as bytes and
// as streams, in each tier.
func TestStore(t *testing.T) {
	t.Parallel()
	for name, options := range tierOptions(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, options)
			if name == "heap" {
				s.options.MaxFiles = 0
			}
			ctx := context.Background()
			var refs []Ref
			for i, size := range sizes {
				want := someBytes(size, uint64(i))
				ref, err := s.PutBytes(ctx, want, PutOptions{})
				require.NoError(t, err)
				require.EqualValues(t, size, ref.Size)
				require.True(t, s.Has(ref.Hash))
				used := s.Stats()
				for _, hint := range []int64{0, 1, int64(size), int64(size) + 100} {
					again, err := s.Put(ctx, iotest.OneByteReader(bytes.NewReader(want[:min(size, 4000)])), PutOptions{Size: hint})
					require.NoError(t, err)
					require.Equal(t, size > 4000, again != ref)
					if again != ref {
						_, err = s.Delete(again.Hash)
						require.NoError(t, err)
					}
					again, err = s.Put(ctx, bytes.NewReader(want), PutOptions{Size: hint})
					require.NoError(t, err)
					require.Equal(t, ref, again)
				}
				require.Equal(t, used, s.Stats(), "the same content is stored once")
				requireContent(t, s, ref, want)
				refs = append(refs, ref)
			}
			require.Len(t, sizes, s.Stats().Objects)
			for _, ref := range refs {
				found, err := s.Delete(ref.Hash)
				require.NoError(t, err)
				require.True(t, found)
				found, err = s.Delete(ref.Hash)
				require.NoError(t, err)
				require.False(t, found)
				_, err = s.Open(ref.Hash)
				require.ErrorIs(t, err, ErrNotFound)
			}
			stats := s.Stats()
			require.Zero(t, stats.MemoryUsed)
			require.Zero(t, stats.DiskUsed)
			require.Equal(t, stats.MemoryBudget+stats.DiskBudget, stats.Free)
		})
	}
}

func TestHashes(t *testing.T) {
	t.Parallel()
	// A change of how objects are hashed makes all stored names wrong.
	for size, want := range map[int]string{
		0:               "91540b85b9ae438eebe5e1bc48410a042b3973d0084c4900f47c3fc8a03f12d8",
		1000:            "66d8399d4a7abbc5e9aa856db0c4526cbfbe4a32540567cc02c0f71217cc4057",
		2*PieceSize + 1: "8d1e383156efea67e6e60a8689f73c56af3a35a65ae94e4c62cc92bc9aa68067",
	} {
		b := make([]byte, size)
		var pieces []Hash
		for rest := b; len(rest) > 0; rest = rest[min(len(rest), PieceSize):] {
			pieces = append(pieces, HashPiece(rest[:min(len(rest), PieceSize)]))
		}
		ref := RefOf(int64(size), pieces)
		require.Equal(t, want, ref.Hash.String(), size)
		parsed, err := ParseHash(want)
		require.NoError(t, err)
		require.Equal(t, ref.Hash, parsed)
		require.NoError(t, ref.Verify(pieces))
		require.ErrorIs(t, Ref{Hash: ref.Hash, Size: ref.Size + 1}.Verify(pieces), ErrDamaged)
		require.ErrorIs(t, ref.Verify(append(pieces, Hash{})), ErrDamaged)
	}
	one := []Hash{HashPiece([]byte("content"))}
	require.NotEqual(t, one[0], RefOf(7, one).Hash, "a piece is no object")
	for _, size := range []int64{-1, MaxSize + 1} {
		require.ErrorIs(t, Ref{Size: size}.Verify(nil), ErrDamaged)
	}
	for _, wrong := range []string{"", "00", "zz00000000000000000000000000000000000000000000000000000000000000"} {
		_, err := ParseHash(wrong)
		require.Error(t, err)
	}
}

// TestOldestGoesToDisk fills memory: what was not used for longest goes to disk,
// what is open stays, and everything can still be read.
func TestOldestGoesToDisk(t *testing.T) {
	t.Parallel()
	const size, room = 1 << 20, 4
	s := open(t, Options{Memory: room * charge(size, inMemory), Dir: t.TempDir(), Disk: 64 << 20})
	ctx := context.Background()
	var refs []Ref
	put := func() {
		ref, err := s.PutBytes(ctx, someBytes(size, uint64(len(refs))), PutOptions{})
		require.NoError(t, err)
		refs = append(refs, ref)
	}
	spilled := func() (numbers []int) {
		for i, ref := range refs {
			o, err := s.Open(ref.Hash)
			require.NoError(t, err)
			if o.onDisk {
				numbers = append(numbers, i)
			}
			require.NoError(t, o.Close())
		}
		return numbers
	}
	for range room {
		put()
	}
	require.Empty(t, spilled())
	held, err := s.Open(refs[0].Hash)
	require.NoError(t, err)
	put()
	put()
	require.Equal(t, []int{1, 2}, spilled())
	require.NoError(t, held.Close())
	put()
	require.Equal(t, []int{1, 2, 3}, spilled(), "the first was used last")
	for i, ref := range refs {
		requireContent(t, s, ref, someBytes(size, uint64(i)))
	}
	stats := s.Stats()
	require.Equal(t, room*charge(size, inMemory), stats.MemoryUsed)
	require.Equal(t, 3*charge(size, onDisk), stats.DiskUsed)
}

// TestFull fills both tiers: the error says what is missing, what was stored
// stays, and there is room again after a delete.
func TestFull(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	dir := t.TempDir()
	s := open(t, Options{Memory: 2 * charge(size, inMemory), Dir: dir, Disk: charge(size, onDisk)})
	ctx := context.Background()
	var refs []Ref
	for i := range 3 {
		ref, err := s.PutBytes(ctx, someBytes(size, uint64(i)), PutOptions{})
		require.NoError(t, err)
		refs = append(refs, ref)
	}
	before := s.Stats()
	require.Zero(t, before.Free)
	for name, put := range map[string]func() (Ref, error){
		"bytes":  func() (Ref, error) { return s.PutBytes(ctx, []byte("one more"), PutOptions{}) },
		"stream": func() (Ref, error) { return s.Put(ctx, bytes.NewReader(someBytes(size, 9)), PutOptions{}) },
		"hint": func() (Ref, error) {
			return s.Put(ctx, bytes.NewReader(someBytes(size, 9)), PutOptions{Size: 5 * size})
		},
	} {
		_, err := put()
		require.ErrorIs(t, err, ErrFull, name)
		for _, part := range []string{"bytes are needed", "memory has 0 of 2", "Options.Memory", "Options.Disk", dir} {
			require.ErrorContains(t, err, part, name)
		}
		require.Equal(t, before, s.Stats(), name)
	}
	_, err := s.Reserve(ctx, 1)
	require.ErrorIs(t, err, ErrFull)
	for i, ref := range refs {
		requireContent(t, s, ref, someBytes(size, uint64(i)))
	}
	// A deleted object that is open still takes its room.
	held, err := s.Open(refs[2].Hash)
	require.NoError(t, err)
	_, err = s.Delete(refs[2].Hash)
	require.NoError(t, err)
	_, err = s.PutBytes(ctx, []byte("one more"), PutOptions{})
	require.ErrorIs(t, err, ErrFull)
	got := make([]byte, size)
	_, err = held.ReadAt(got, 0)
	require.NoError(t, err)
	require.True(t, bytes.Equal(someBytes(size, 2), got))
	require.NoError(t, held.Close())
	_, err = s.PutBytes(ctx, []byte("one more"), PutOptions{})
	require.NoError(t, err)
}

// TestLongStream puts a stream of unknown length that outgrows memory.
func TestLongStream(t *testing.T) {
	t.Parallel()
	const size = 6<<20 + 5
	want := someBytes(size, 1)
	s := open(t, Options{Memory: 2 << 20, Dir: t.TempDir(), Disk: 8 << 20})
	ref, err := s.Put(context.Background(), iotest.HalfReader(bytes.NewReader(want)), PutOptions{})
	require.NoError(t, err)
	require.Zero(t, s.Stats().MemoryUsed)
	require.Equal(t, charge(size, onDisk), s.Stats().DiskUsed)
	requireContent(t, s, ref, want)
	// An endless stream ends with the room.
	before := s.Stats()
	_, err = s.Put(context.Background(), rand.NewChaCha8([32]byte{}), PutOptions{})
	require.ErrorIs(t, err, ErrFull)
	require.Equal(t, before, s.Stats())
}

// TestFailedStream ends streams with an error and with their context.
func TestFailedStream(t *testing.T) {
	t.Parallel()
	// A connection that was cut is no end.
	for _, broken := range []error{errors.New("broken"), io.ErrUnexpectedEOF} {
		for _, size := range []int{0, 100, PieceSize, 5*PieceSize + 3} {
			s := open(t, Options{Memory: 64 << 20})
			r := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(broken))
			_, err := s.Put(context.Background(), r, PutOptions{})
			require.ErrorIs(t, err, broken, size)
			require.Zero(t, s.Stats().MemoryUsed)
		}
	}
	s := open(t, Options{Memory: 64 << 20})
	ctx, cancel := context.WithCancel(context.Background())
	read := 0
	_, err := s.Put(ctx, readerFunc(func(p []byte) (int, error) {
		if read += len(p); read > 3*PieceSize {
			cancel()
		}
		return len(p), nil
	}), PutOptions{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.PutBytes(ctx, make([]byte, 3*PieceSize), PutOptions{})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, s.Stats().MemoryUsed)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestReservation keeps room while others fill the store.
func TestReservation(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	ctx := context.Background()
	s := open(t, Options{Memory: 2 * charge(size, inMemory), Dir: t.TempDir(), Disk: charge(size, onDisk)})
	kept, err := s.Reserve(ctx, size)
	require.NoError(t, err)
	require.Equal(t, charge(size, inMemory), s.Stats().Reserved)
	for i := range 2 {
		_, err := s.PutBytes(ctx, someBytes(size, uint64(i)), PutOptions{})
		require.NoError(t, err)
	}
	_, err = s.PutBytes(ctx, []byte("more"), PutOptions{})
	require.ErrorIs(t, err, ErrFull)
	require.ErrorContains(t, err, "reservations hold 3146240")
	// A failed attempt leaves the room with the reservation.
	_, err = s.Put(ctx, io.MultiReader(bytes.NewReader(make([]byte, 2<<20)), iotest.ErrReader(io.ErrNoProgress)),
		PutOptions{Reservation: kept})
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.Equal(t, charge(size, inMemory), kept.Left())
	small, err := s.PutBytes(ctx, []byte("more"), PutOptions{Reservation: kept})
	require.NoError(t, err)
	_, err = s.Put(ctx, bytes.NewReader(someBytes(size-pageSize, 5)), PutOptions{Reservation: kept})
	require.NoError(t, err)
	require.Less(t, kept.Left(), int64(pageSize))
	kept.Release()
	kept.Release()
	require.Zero(t, kept.Left())
	require.Zero(t, s.Stats().Reserved)
	require.True(t, s.Has(small.Hash))

	for _, n := range []int64{-1, MaxSize + 1, 100 << 20} {
		_, err = s.Reserve(ctx, n)
		require.ErrorIs(t, err, ErrFull)
	}
}

// TestManyAtOnce puts, reads and deletes the same few objects from many
// goroutines, with little memory.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := open(t, Options{Memory: 3 << 20, Dir: t.TempDir(), Disk: 64 << 20})
	contents := make([][]byte, 12)
	refs := make([]Ref, len(contents))
	for i := range contents {
		contents[i] = someBytes(1000+i*150_000, uint64(i))
		ref, err := s.PutBytes(ctx, contents[i], PutOptions{})
		require.NoError(t, err)
		refs[i] = ref
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for range 50 {
				i := random.IntN(len(refs))
				switch random.IntN(4) {
				case 0:
					if _, err := s.Delete(refs[i].Hash); err != nil {
						t.Error(err)
					}
				case 1:
					if _, err := s.PutBytes(ctx, contents[i], PutOptions{}); err != nil {
						t.Error(err)
					}
				default:
					readOne(t, s, refs[i], contents[i])
				}
			}
		})
	}
	all.Wait()
}

func readOne(t *testing.T, s *Store, ref Ref, want []byte) {
	o, err := s.Open(ref.Hash)
	if errors.Is(err, ErrNotFound) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	got, err := io.ReadAll(o)
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if whole, ok := o.Bytes(); ok && !bytes.Equal(want, whole) {
		t.Error("another view")
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosedStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, err := Open(Options{})
	require.NoError(t, err)
	ref, err := s.PutBytes(ctx, someBytes(PieceSize+1, 1), PutOptions{})
	require.NoError(t, err)
	held, err := s.Open(ref.Hash)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = s.Open(ref.Hash)
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.PutBytes(ctx, []byte("content"), PutOptions{})
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Reserve(ctx, 1)
	require.ErrorIs(t, err, ErrClosed)
	got, err := io.ReadAll(held)
	require.NoError(t, err)
	require.True(t, bytes.Equal(someBytes(PieceSize+1, 1), got))
	require.NoError(t, held.Close())
	require.Zero(t, s.Stats().MemoryUsed)
	require.NoError(t, s.Close())
}

// TestDirectory refuses what others can write, and removes what was left.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left, other := filepath.Join(dir, filePrefix+"123"), filepath.Join(dir, "other")
	for _, name := range []string{left, other} {
		require.NoError(t, os.WriteFile(name, []byte("left"), 0o600))
	}
	s := open(t, Options{Dir: dir, Memory: -1})
	_, err := s.PutBytes(context.Background(), make([]byte, 10<<20), PutOptions{})
	require.NoError(t, err)
	require.NoFileExists(t, left)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "files have no names")
	require.Equal(t, "other", entries[0].Name())

	f, err := createNamed(dir)
	require.NoError(t, err)
	require.NoFileExists(t, f.Name())
	require.NoError(t, f.Close())
	if removesOpen {
		require.NoError(t, os.Chmod(dir, 0o777))
		_, err = Open(Options{Dir: dir})
		require.ErrorContains(t, err, "others may write to directory")
	}
	_, err = Open(Options{Dir: filepath.Join(other, "below")})
	require.Error(t, err)
}

// TestMapChangeable refuses a file in memory that its owner could still change.
func TestMapChangeable(t *testing.T) {
	t.Parallel()
	f, err := createMemory()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("files in memory are Linux's")
	}
	require.NoError(t, err)
	_, err = f.Write(make([]byte, 1000))
	require.NoError(t, err)
	_, err = Map(f, Ref{Size: 1000}, nil)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "not sealed")
	require.ErrorIs(t, f.Close(), os.ErrClosed)
}
