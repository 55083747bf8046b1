package embedded

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// fill writes rows in order, a hundred at a time.
func fill(t testing.TB, s *Store, rows int) {
	for first := 0; first < rows; first += 100 {
		tx := s.Begin(kv.Options{})
		for i := first; i < min(first+100, rows); i++ {
			tx.Set(fmt.Appendf(nil, "key%06d", i), fmt.Appendf(nil, "%0100d", i))
		}
		commit(t, tx)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const rows, budget = 20_000, 400 << 10
	disk := vfs.NewMem()
	o := Options{FS: disk, Inline: true, SegmentSize: 64 << 10, CheckpointBytes: 256 << 10, Memory: budget,
		HistoryVersions: 4}
	s := open(t, "store", o)
	for first := 0; first < rows; first += 100 {
		tx := s.Begin(kv.Options{})
		for i := first; i < first+100; i++ {
			tx.Set(fmt.Appendf(nil, "key%06d", i), fmt.Appendf(nil, "%0100d", i))
		}
		commit(t, tx)
		require.Less(t, s.Stats().Memory, int64(2*budget))
	}
	for range 2 {
		st := s.Stats()
		require.EqualValues(t, rows, st.Keys)
		require.EqualValues(t, rows*109, st.Bytes)
		require.LessOrEqual(t, st.Memory, int64(budget*9/8))
		require.Greater(t, st.Memory, int64(budget/4), "no more is on disk than has to be")
		require.Less(t, len(s.index.cold.ranges), 20)
		for range 100 {
			i := rand.IntN(rows)
			require.Equal(t, fmt.Sprintf("%0100d", i), string(read(t, s, fmt.Sprintf("key%06d", i))))
		}
		require.Len(t, contents(t, s), rows)
		require.Less(t, s.Stats().Memory, int64(2*budget), "a walk through everything brings nothing back")
		require.NoError(t, s.Close())
		s = open(t, "store", o)
	}
}

// TestRowsThatAreReadAgainBecomeWarm, and are read from memory then.
func TestRowsThatAreReadAgainBecomeWarm(t *testing.T) {
	t.Parallel()
	for name, scan := range map[string]bool{"get": false, "scan": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, "store", Options{FS: vfs.NewMem(), Inline: true, CheckpointBytes: 1 << 40, Memory: 250 << 10})
			fill(t, s, 5000)
			require.NoError(t, s.Checkpoint(context.Background()))
			const key = "key001000"
			require.NoError(t, s.Checkpoint(context.Background()))
			require.True(t, s.index.isCold([]byte(key)))
			for i := range 4 {
				require.Equal(t, i < 2, s.index.isCold([]byte(key)), "before read %d", i)
				if !scan {
					require.Len(t, read(t, s, key), 100)
					continue
				}
				tx := s.Begin(kv.Options{})
				page, err := tx.GetRange(kv.Range{Begin: []byte(key), End: []byte{0xff}}, kv.RangeOptions{Limit: 10}).
					Wait(context.Background())
				require.NoError(t, err)
				require.Len(t, page.Items, 10)
				tx.Cancel()
			}
			require.NotZero(t, s.index.tree.get([]byte(key)))
			require.LessOrEqual(t, s.Stats().Memory, int64(200<<10))
			require.EqualValues(t, 5000, s.Stats().Keys)
		})
	}
}

// TestOpeningTakesInWhatFits, also if nothing says what was in memory before.
func TestOpeningTakesInWhatFits(t *testing.T) {
	t.Parallel()
	counting := &countingFS{FS: vfs.NewMem()}
	o := Options{FS: counting, Inline: true, CheckpointBytes: 1 << 20, SegmentSize: 256 << 10}
	s := open(t, "store", o)
	fill(t, s, 30_000)
	require.NoError(t, s.Checkpoint(context.Background()))
	require.NoError(t, s.Close())
	o.Memory = 300 << 10
	for range 2 {
		before := counting.bytes.Load()
		s = open(t, "store", o)
		require.Less(t, counting.bytes.Load()-before, int64(1<<20))
		require.Less(t, s.Stats().Memory, int64(400<<10))
		require.Len(t, contents(t, s), 30_000)
		write(t, s, "key000000", "")
		require.NoError(t, s.Close())
	}
}

// TestClearedRangeOfColdRows hides rows of the tables at once, for those who read after it.
func TestClearedRangeOfColdRows(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := open(t, "store", Options{FS: vfs.NewMem(), Inline: true, CheckpointBytes: 1 << 40, Memory: 1})
	fill(t, s, 2000)
	require.NoError(t, s.Checkpoint(ctx))
	require.Zero(t, s.index.tree.size)
	old := s.Begin(kv.Options{})
	_, err := old.ReadVersion(ctx)
	require.NoError(t, err)
	watched := s.Begin(kv.Options{})
	gone, stays := watched.Watch([]byte("key000500")), watched.Watch([]byte("key001500"))
	commit(t, watched)
	clearRange := func(begin, end string) {
		tx := s.Begin(kv.Options{})
		tx.ClearRange(kv.Range{Begin: []byte(begin), End: []byte(end)})
		commit(t, tx)
	}
	clearRange("key000100", "key001000")
	clearRange("key000050", "key000200")
	write(t, s, "key000300", "back")
	<-gone.Done()
	select {
	case <-stays.Done():
		require.Fail(t, "nothing has changed")
	default:
	}
	for range 2 {
		require.Len(t, contents(t, s), 2000-950+1)
		require.Nil(t, read(t, s, "key000060"))
		require.Equal(t, "back", string(read(t, s, "key000300")))
		value, err := old.Get([]byte("key000300")).Wait(ctx)
		require.NoError(t, err)
		require.Len(t, value, 100)
		page, err := old.Snapshot().GetRange(kv.Range{End: []byte{0xff}}, kv.RangeOptions{}).Wait(ctx)
		require.NoError(t, err)
		require.Len(t, page.Items, 2000)
		require.NoError(t, s.Checkpoint(ctx))
	}
	require.Len(t, s.index.cold.holes.all, 2, "a reader sees what was there before")
	old.Cancel()
	require.NoError(t, s.Checkpoint(ctx))
	require.Empty(t, s.index.cold.holes.all)
	require.Len(t, contents(t, s), 2000-950+1)
	rows, deletions := tableRows(t, s)
	require.Equal(t, contents(t, s), rows)
	require.Equal(t, 949, deletions)
	require.EqualValues(t, len(rows), s.Stats().Keys)
}

func TestHoles(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var h holes
		var first [64]kv.Version
		for v := kv.Version(1); v < 12; v++ {
			begin := random.IntN(60)
			end := begin + 1 + random.IntN(63-begin)
			h.add([]byte{byte(begin)}, []byte{byte(end)}, v)
			for i := begin; i < end; i++ {
				if first[i] == 0 {
					first[i] = v
				}
			}
			for i, was := range first {
				require.Equal(t, was != 0 && was <= v, h.contain([]byte{byte(i)}, v))
				require.Equal(t, was != 0 && was <= v/2, h.contain([]byte{byte(i)}, v/2))
			}
			for i := 1; i < len(h.all); i++ {
				require.LessOrEqual(t, bytes.Compare(h.all[i-1].end, h.all[i].begin), 0)
			}
		}
	}
}

// TestWarmingOfRowsThatAreDeletedMeanwhile brings none of them back.
func TestWarmingOfRowsThatAreDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, between := range map[string]func(s *Store){
		"clear":            func(s *Store) {},
		"checkpoint":       func(s *Store) { require.NoError(t, s.Checkpoint(ctx)) },
		"another range":    func(s *Store) { write(t, s, "key000001x", "") },
		"cleared as range": nil,
	} {
		s := open(t, "store", Options{FS: vfs.NewMem(), Inline: true, CheckpointBytes: 1 << 40, Memory: 1})
		fill(t, s, 100)
		require.NoError(t, s.Checkpoint(ctx))
		x := &s.index
		p := &warmPart{begin: []byte("key000010"), end: []byte("key000020"), tables: x.base.hold(), epoch: x.cold.epoch}
		require.NoError(t, p.read())
		tx := s.Begin(kv.Options{})
		if between == nil {
			tx.ClearRange(kv.Range{Begin: []byte("key000015"), End: []byte("key000016")})
		} else {
			tx.Clear([]byte("key000015"))
		}
		commit(t, tx)
		if between != nil {
			between(s)
		}
		s.commitLock.Lock()
		x.mu.Lock()
		x.warmUp(p)
		x.mu.Unlock()
		s.commitLock.Unlock()
		require.NoError(t, p.tables.release())
		require.Nil(t, read(t, s, "key000015"), name)
		require.Len(t, contents(t, s), 99+min(len(read(t, s, "key000014")), 0)+extra(name), name)
		require.NoError(t, s.Checkpoint(ctx))
		require.Nil(t, read(t, s, "key000015"), name)
	}
}

func extra(name string) int {
	if name == "another range" {
		return 1
	}
	return 0
}

// TestReadersWhileRowsComeAndGo read, write and delete while checkpoints, merges, evictions and
// warmings go on.
func TestReadersWhileRowsComeAndGo(t *testing.T) {
	t.Parallel()
	const keys, rounds = 3000, 12
	ctx := context.Background()
	o := Options{SegmentSize: 256 << 10, CheckpointBytes: 1 << 20, Memory: 64 << 10, HistoryVersions: 1}
	s := open(t, t.TempDir(), o)
	key := func(i int) []byte { return fmt.Appendf(nil, "key%05d", i) }
	fillAll := s.Begin(kv.Options{})
	for i := range keys {
		fillAll.Set(key(i), fmt.Appendf(nil, "%d 0", i))
	}
	commit(t, fillAll)
	var stop atomic.Bool
	var wait sync.WaitGroup
	for w := range 2 {
		wait.Go(func() {
			// A pair of rows is there or not, together.
			for n := 1; !stop.Load(); n++ {
				i := rand.IntN(keys/4)*4 + 2*w
				tx := s.Begin(kv.Options{})
				switch rand.IntN(3) {
				case 0:
					tx.ClearRange(kv.Range{Begin: key(i), End: key(i + 2)})
				case 1:
					tx.Clear(key(i))
					tx.Clear(key(i + 1))
				default:
					tx.Set(key(i), fmt.Appendf(nil, "%d %d", i, n))
					tx.Set(key(i+1), fmt.Appendf(nil, "%d %d", i+1, n))
				}
				if _, err := tx.Commit(ctx); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		wait.Go(func() {
			for !stop.Load() {
				tx := s.Begin(kv.Options{})
				i := rand.IntN(keys/2) * 2
				a, err := tx.Get(key(i)).Wait(ctx)
				b, err2 := tx.Get(key(i + 1)).Wait(ctx)
				page, err3 := tx.GetRange(kv.Range{Begin: key(i), End: key(i + 20)}, kv.RangeOptions{Reverse: i%4 == 0}).Wait(ctx)
				tx.Cancel()
				if err != nil || err2 != nil || err3 != nil || (a == nil) != (b == nil) || len(page.Items)%2 != 0 {
					t.Error(err, err2, err3, string(a), string(b), len(page.Items))
					return
				}
				var from, n, from2, n2 int
				_, _ = fmt.Sscanf(string(a), "%d %d", &from, &n)
				_, _ = fmt.Sscanf(string(b), "%d %d", &from2, &n2)
				if a != nil && (from != i || from2 != i+1 || n != n2) {
					t.Error(i, string(a), string(b))
				}
			}
		})
	}
	for range rounds {
		require.NoError(t, s.Checkpoint(ctx))
	}
	stop.Store(true)
	wait.Wait()
	want := contents(t, s)
	require.NoError(t, s.Close())
	require.Equal(t, want, contents(t, open(t, s.disk.journal.dir.path, o)))
}

// TestDeletedRowsStayGoneWhereAllGetsCold leaves rows to the tables beside others that were deleted since the last
// checkpoint, so that whole leaves have become empty.
func TestDeletedRowsStayGoneWhereAllGetsCold(t *testing.T) {
	t.Parallel()
	const rows = 1500
	for first := 500; first <= 500+nodeSize; first++ {
		s := open(t, "store", Options{FS: vfs.NewMem(), Inline: true, CheckpointBytes: 1 << 40, HistoryVersions: 1})
		fill(t, s, rows)
		require.NoError(t, s.Checkpoint(context.Background()))
		tx := s.Begin(kv.Options{})
		for i := first; i < first+4*nodeSize; i++ {
			tx.Clear(fmt.Appendf(nil, "key%06d", i))
		}
		commit(t, tx)
		write(t, s, "other", "") // the deleted rows are swept
		write(t, s, "other", "")
		s.options.Memory = 1
		s.checkpointLock.Lock()
		s.evict()
		s.checkpointLock.Unlock()
		require.Less(t, s.index.rows(), int64(rows/2))
		require.Equal(t, rows-4*nodeSize+1, len(contents(t, s)), "from %d on", first)
		require.NoError(t, s.Checkpoint(context.Background()))
		require.Equal(t, rows-4*nodeSize+1, len(contents(t, s)), "from %d on", first)
		require.NoError(t, s.Close())
	}
}
