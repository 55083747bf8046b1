package embedded

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

func TestDiskUseIsBoundedUnderChurn(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := Options{FS: fs, Inline: true, SegmentSize: 16 << 10, CheckpointBytes: 64 << 10, HistoryVersions: 4}
	s := open(t, "store", o)
	most := 0
	for i := range 4000 {
		tx := s.Begin(kv.Options{})
		tx.Set(fmt.Appendf(nil, "key%02d", i%50), make([]byte, 200))
		tx.Clear(fmt.Appendf(nil, "key%02d", (i+25)%50))
		commit(t, tx)
		if i%50 == 0 {
			size := 0
			for _, content := range files(t, fs) {
				size += len(content)
			}
			most = max(most, size)
		}
	}
	st := s.Stats()
	require.Greater(t, st.Checkpoints, int64(5))
	// The log up to the next checkpoint and a segment, and the rows.
	require.Less(t, most, 64<<10+16<<10+4*16<<10)
	want := contents(t, s)
	require.NoError(t, s.Close())
	require.Equal(t, want, contents(t, open(t, "store", o)))
}

func TestCheckpointUnderLoad(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := Options{FS: fs, SegmentSize: 32 << 10, CheckpointBytes: 1 << 40}
	s := open(t, "store", o)
	ctx := context.Background()
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 400 {
				tx := s.Begin(kv.Options{NoSync: i%3 == 0})
				tx.Set(fmt.Appendf(nil, "%d/%03d", w, i%97), fmt.Appendf(nil, "%d", i))
				tx.Set(fmt.Appendf(nil, "all/%d/%d", w, i), nil)
				tx.ClearRange(kv.Prefix(fmt.Appendf(nil, "all/%d/%d", (w+1)%4, i/2)))
				if _, err := tx.Commit(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for running := true; running; {
		require.NoError(t, s.Checkpoint(ctx))
		select {
		case <-done:
			running = false
		default:
		}
	}
	write(t, s, "last", "one")
	want := contents(t, s)
	require.NoError(t, s.Close())
	require.Equal(t, want, contents(t, open(t, "store", o)))
}

func TestAbandonedTransactionsPinNothingForEver(t *testing.T) {
	t.Parallel()
	virtual := clock.NewVirtual(time.Unix(0, 0))
	s := OpenMemory(Options{Clock: virtual, HistoryVersions: 10})
	defer s.Close()
	write(t, s, "a", "0")
	abandoned := s.Begin(kv.Options{})
	_, err := abandoned.Get([]byte("a")).Wait(context.Background())
	require.NoError(t, err)
	for i := range 500 {
		write(t, s, "a", fmt.Sprint(i))
		write(t, s, fmt.Sprint("k", i), "")
		tx := s.Begin(kv.Options{})
		tx.ClearRange(kv.Prefix([]byte("k")))
		commit(t, tx)
	}
	require.Greater(t, s.Stats().Garbage, 500)
	v, err := abandoned.Get([]byte("a")).Wait(context.Background())
	require.NoError(t, err)
	require.Equal(t, []byte("0"), v)

	virtual.Advance(kv.TxLifetime + time.Second)
	write(t, s, "b", "")
	write(t, s, "b", "")
	require.Less(t, s.Stats().Garbage, 20)
	require.Equal(t, 2, s.index.tree.size)
	_, err = abandoned.Get([]byte("a")).Wait(context.Background())
	require.ErrorIs(t, err, kv.ErrTooOld)
}

func TestGarbageGoesWithItsReaders(t *testing.T) {
	t.Parallel()
	s := OpenMemory(Options{HistoryVersions: 1})
	defer s.Close()
	for i := range 3000 {
		tx := s.Begin(kv.Options{})
		_, err := tx.Get([]byte("a")).Wait(context.Background())
		require.NoError(t, err)
		tx.Set([]byte("a"), nil)
		tx.Set(fmt.Appendf(nil, "k%d", i), nil)
		tx.Clear(fmt.Appendf(nil, "k%d", i-1))
		commit(t, tx)
	}
	require.LessOrEqual(t, s.Stats().Garbage, 65)
	require.LessOrEqual(t, s.index.tree.size, 65)
	require.LessOrEqual(t, len(s.sequencer.ranges.runs), 2)
}

// TestCancelledTransactionsHarmNobody uses transactions after their end, while
// others use the memory that they had.
func TestCancelledTransactionsHarmNobody(t *testing.T) {
	t.Parallel()
	s := OpenMemory(Options{})
	defer s.Close()
	old := s.Begin(kv.Options{})
	old.Set([]byte("old"), nil)
	old.Cancel()
	fresh := s.Begin(kv.Options{})
	fresh.Set([]byte("fresh"), []byte("1"))
	old.Set([]byte("stale"), nil)
	old.ClearRange(kv.Range{End: []byte{0xff}})
	old.AddReadConflictKey([]byte("fresh"))
	_, err := old.Snapshot().Get([]byte("a")).Wait(context.Background())
	require.ErrorIs(t, err, kv.ErrUsed)
	old.Cancel()
	commit(t, fresh)
	require.Equal(t, map[string]string{"fresh": "1"}, contents(t, s))
}

func TestContextEndsACommitThatWaits(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	syncing := make(chan struct{}, 100)
	var holding atomic.Bool
	fs := &faultFS{FS: vfs.NewMem(), syncing: func(do func() error) error {
		if holding.Load() {
			syncing <- struct{}{}
			<-release
		}
		return do()
	}}
	s := open(t, "store", Options{FS: fs})
	for _, begins := range []bool{true, false} {
		if !begins {
			write(t, s, "z", "")
		}
		holding.Store(true)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { <-syncing; cancel() }()
		tx := s.Begin(kv.Options{})
		tx.Set([]byte("a"), []byte("1"))
		_, err := tx.Commit(ctx)
		require.ErrorIs(t, err, kv.ErrUnknownResult)
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, read(t, s, "a"))
		holding.Store(false)
		if begins {
			release <- struct{}{}
			write(t, s, "b", "2")
			tx := s.Begin(kv.Options{})
			tx.Clear([]byte("a"))
			commit(t, tx)
		}
	}
	close(release)
	require.NoError(t, s.Close())
	require.Equal(t, map[string]string{"a": "1", "b": "2", "z": ""}, contents(t, open(t, "store", Options{FS: fs})))
}

func TestRetryAfterAConflictWaitsForThePublish(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := open(t, t.TempDir(), Options{})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 25 {
				_, err := kv.Transact(ctx, s, kv.Retry{}, func(a kv.Attempt) error {
					v, err := a.Get([]byte("n")).Wait(ctx)
					if err != nil {
						return err
					}
					n := 0
					_, _ = fmt.Sscan(string(v), &n)
					a.Set([]byte("n"), fmt.Append(nil, n+1))
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	require.Equal(t, "200", string(read(t, s, "n")))
}

func TestADeletedRangeCountsByItsRows(t *testing.T) {
	t.Parallel()
	virtual := clock.NewVirtual(time.Unix(0, 0))
	s := OpenMemory(Options{Clock: virtual, HistoryVersions: 20})
	defer s.Close()
	for i := range 1000 {
		write(t, s, fmt.Sprint("k", i), "")
	}
	tx := s.Begin(kv.Options{})
	tx.ClearRange(kv.Prefix([]byte("k")))
	commit(t, tx)
	require.Equal(t, 1000, s.Stats().Garbage)
	virtual.Advance(2 * briefHistory)
	write(t, s, "a", "")
	write(t, s, "a", "")
	require.Less(t, s.Stats().Garbage, 30)
	require.Less(t, s.index.tree.size, 30)
}

// slowRowsFS lets each write of a checkpoint wait until commits wait for it.
type slowRowsFS struct {
	vfs.FS
	stalled func()
}

func (f slowRowsFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, rowsSuffix) {
		return file, err
	}
	return slowRowsFile{File: file, stalled: f.stalled}, nil
}

type slowRowsFile struct {
	vfs.File
	stalled func()
}

func (f slowRowsFile) Write(b []byte) (int, error) {
	f.stalled()
	return f.File.Write(b)
}

func TestLogIsBoundedWhileACheckpointIsSlow(t *testing.T) {
	t.Parallel()
	const threshold = 64 << 10
	var s *Store
	stalls, beyond := 0, int64(0)
	var stopped atomic.Bool
	fs := slowRowsFS{FS: vfs.NewMem(), stalled: func() {
		p := s.pacing.Load()
		for waits := false; !waits && !stopped.Load(); runtime.Gosched() {
			p.moved.mu.Lock()
			waits = p.moved.ch != nil
			p.moved.mu.Unlock()
		}
		stalls++
		limit := max(21*p.due/10, p.from+p.due/10)
		beyond = max(beyond, s.disk.journal.logBytes.Load()-limit)
	}}
	s = open(t, "store", Options{FS: fs, SegmentSize: 16 << 10, CheckpointBytes: threshold})
	const rows, rowSize = 300, 1000
	fill := func(i int) {
		tx := s.Begin(kv.Options{})
		tx.Set(fmt.Appendf(nil, "key%03d", i%rows), random(rowSize))
		if _, err := tx.Commit(context.Background()); err != nil {
			t.Error(err)
		}
	}
	var writers sync.WaitGroup
	var next atomic.Int64
	for range 4 {
		writers.Go(func() {
			for s.checkpoints.Load() < 3 {
				fill(int(next.Add(1)))
			}
		})
	}
	writers.Wait()
	stopped.Store(true)
	want := contents(t, s)
	require.NoError(t, s.Close())
	require.GreaterOrEqual(t, stalls, 3)
	// A commit of each writer may come on top.
	require.Less(t, beyond, int64(16<<10))
	require.Equal(t, want, contents(t, open(t, "store", Options{FS: fs})))
}
