package embedded

import (
	"context"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/signal"
)

// checkpointer writes checkpoints when the log has grown.
type checkpointer struct {
	store *Store
	ctx   context.Context
	stop  context.CancelFunc
	wait  sync.WaitGroup
	more  chan struct{}
}

func newCheckpointer(s *Store) *checkpointer {
	c := &checkpointer{store: s, more: make(chan struct{}, 1)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// start lets the checkpointer run. The store must be complete.
func (c *checkpointer) start() {
	c.wait.Go(c.run)
	signal.Send(c.more)
}

// look makes the checkpointer look at the log, if that may be large enough.
func (c *checkpointer) look() {
	s := c.store
	if s.disk.journal.logBytes.Load() > s.options.CheckpointBytes || s.crowded() {
		signal.Send(c.more)
	}
}

func (c *checkpointer) close() {
	c.stop()
	c.wait.Wait()
}

// freeEvery is how often the checkpointer looks whether most of what tables have is gone.
const freeEvery = 30 * time.Second

func (c *checkpointer) run() {
	look := time.NewTicker(freeEvery)
	defer look.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.more:
			c.store.checkpointIfDue(c.ctx)
			c.store.mergeTables(c.ctx)
			c.store.warm()
		case <-look.C:
			c.store.freeTables(c.ctx)
		}
	}
}

// checkpointIfDue writes a checkpoint if the log has grown enough. A failure does no
// harm, as the log is still there: the checkpoint is tried again when the log has grown
// by another quarter.
func (s *Store) checkpointIfDue(ctx context.Context) {
	if !s.disk.begun.Load() {
		return
	}
	size := s.disk.journal.logBytes.Load()
	if size <= s.checkpointAt() && (size <= s.retryAt.Load() || !s.crowded()) {
		return
	}
	if err := s.checkpoint(ctx, s.options.HistoryVersions); err != nil && ctx.Err() == nil && s.Err() == nil {
		s.retryAt.Store(size + size/4)
		s.options.Logger.Warn("checkpoint failed", "error", err)
	}
}

// crowded reports whether memory has so much that a checkpoint takes off it that one pays
// off: large values, rows that were deleted, and more rows than it should have.
func (s *Store) crowded() bool {
	most := s.options.CheckpointBytes / 8
	return s.index.largeBytes.Load() > most || s.index.deleted.size.Load() > most || s.index.cold.holes.many.Load() ||
		s.index.over.Load() && s.disk.journal.logBytes.Load() > min(s.options.CheckpointBytes, s.options.rowMemory())/4
}

// checkpointAt returns the size of the log from which on a checkpoint is due.
func (s *Store) checkpointAt() int64 { return max(s.options.CheckpointBytes, s.retryAt.Load()) }

// waitForMore is called after a checkpoint. If transactions kept it from making the log
// shorter, or memory smaller, the next one waits until the log has grown.
func (s *Store) waitForMore() {
	s.retryAt.Store(0)
	if size := s.disk.journal.logBytes.Load(); size > s.options.CheckpointBytes/2 {
		s.retryAt.Store(size + s.options.CheckpointBytes/4)
	} else if s.crowded() {
		s.retryAt.Store(size + s.options.CheckpointBytes/16)
	}
}

// Stats is a look at a store.
type Stats struct {
	// Keys and Bytes are the rows and the size of their keys and values. Where rows lie on
	// disk alone, they are estimates: what was written or deleted there counts as new, or
	// as still there, until a checkpoint.
	Keys, Bytes int64
	// Cold is how many of the keys lie on disk alone.
	Cold int64
	// Memory estimates the memory that rows take, with what is kept of them for
	// running transactions.
	Memory int64
	// Garbage is how many overwritten or deleted values are kept.
	Garbage int
	// Commits and Conflicts count since the store was opened, Batches the
	// batches that commits were logged in.
	Commits, Conflicts, Batches uint64
	// Watches is how many watches are open.
	Watches int
	// LogBytes and Segments are the size of the log and its files.
	LogBytes int64
	Segments int
	// Checkpoints counts since the store was opened.
	Checkpoints int64
	// Syncs counts the syncs of the log since the store was opened, and
	// SyncMedian is the median duration of the last 256.
	Syncs      int
	SyncMedian time.Duration
	// Disk is the size of the file system with the store's directory, and DiskFree what is
	// free of it for this user, in bytes. Both are 0 where that is not known, and in memory.
	Disk, DiskFree int64
}

// StoredBytes returns the size of all keys and values of the store, whatever the range.
func (s *Store) StoredBytes(context.Context, kv.Range) (int64, error) {
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	return s.index.allBytes(), nil
}

// rowOverhead is the memory of a row besides its key and value: its place in
// the tree, the head of its revision, and what the arena rounds up.
const rowOverhead = 60

// Stats returns what the store has at the moment.
func (s *Store) Stats() Stats {
	s.commitLock.Lock()
	st := Stats{Commits: s.sequencer.commits, Conflicts: s.sequencer.conflicts, Batches: s.batches,
		Garbage: s.index.kept(), Checkpoints: s.checkpoints.Load()}
	s.commitLock.Unlock()
	s.index.mu.RLock()
	st.Keys, st.Bytes = s.index.liveKeys+s.index.cold.keys, s.index.allBytes()
	st.Cold, st.Memory = s.index.cold.keys, s.index.resident()
	s.index.mu.RUnlock()
	st.Watches = s.watches.count()
	if s.disk != nil {
		st.LogBytes, st.Segments = s.disk.journal.logBytes.Load(), s.disk.journal.segments()
		st.SyncMedian, st.Syncs = s.disk.journal.latency.median()
		if usage, err := s.options.FS.GetDiskUsage(s.disk.journal.dir.path); err == nil {
			st.Disk, st.DiskFree = int64(usage.TotalBytes), int64(usage.AvailBytes)
		}
	}
	return st
}
