package embedded

import (
	"context"
	"fmt"
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
	if s.disk.journal.logBytes.Load() > s.options.CheckpointBytes || s.index.largeBytes.Load() > s.largeMax() {
		signal.Send(c.more)
	}
}

func (c *checkpointer) close() {
	c.stop()
	c.wait.Wait()
}

func (c *checkpointer) run() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.more:
			c.store.checkpointIfDue(c.ctx)
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
	grown := size > s.options.CheckpointBytes && size > s.checkpointAt()
	if !grown && (size <= s.retryAt.Load() || !s.index.crowded(s.largeMax())) {
		return
	}
	if err := s.Checkpoint(ctx); err != nil && ctx.Err() == nil && s.Err() == nil {
		s.retryAt.Store(size + size/4)
		s.options.Logger.Warn("checkpoint failed", "error", err)
	}
}

// largeMax is how many bytes of large values may lie in the log alone, at least.
func (s *Store) largeMax() int64 { return s.options.CheckpointBytes / 8 }

// crowded reports whether so many large values lie in the log that a checkpoint
// pays off. It copies the values of the checkpoint before as well.
func (x *index) crowded(atLeast int64) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.largeBytes.Load() > max(atLeast, x.tableBytes/8)
}

// checkpointAt returns the size of the log from which on a checkpoint pays.
func (s *Store) checkpointAt() int64 {
	return max(s.options.CheckpointBytes, 2*s.index.bytes(), s.retryAt.Load())
}

// Checkpoint writes out all rows and deletes the log before, while commits go
// on. The store does so by itself when its log has grown; by hand it makes the
// next opening fast. A store in memory does nothing.
func (s *Store) Checkpoint(ctx context.Context) error {
	if s.disk == nil {
		return s.Err()
	}
	if err := s.beginLog(); err != nil {
		return fmt.Errorf("embedded: checkpoint: %w", err)
	}
	return s.checkpoint(ctx)
}

// checkpoint is Checkpoint of a store whose log can be written.
func (s *Store) checkpoint(ctx context.Context) error {
	s.checkpointLock.Lock()
	defer s.checkpointLock.Unlock()
	if err := s.Err(); err != nil {
		return err
	}
	start := time.Now()
	j := s.disk.journal
	number, keepFrom, err := j.beginCheckpoint()
	if err != nil {
		return s.checkpointError(err)
	}
	p := s.beginPace()
	defer p.end()
	c, large, err := writeRows(ctx, j.dir, number, &s.index, p.advance)
	p.settle()
	if err != nil {
		return s.checkpointError(err)
	}
	if err := s.settleRows(ctx); err != nil {
		return s.checkpointError(err)
	}
	obsolete, err := j.installCheckpoint(c, keepFrom)
	if err != nil {
		return s.checkpointError(err)
	}
	if err := s.spillToCheckpoint(c, large, keepFrom); err != nil {
		s.options.Logger.Warn("values stay in memory", "error", err)
	}
	s.retryAt.Store(0)
	s.checkpoints.Add(1)
	s.options.Logger.Info("checkpoint", "rows", c.Rows, "bytes", c.Size, "took", time.Since(start))
	for _, name := range obsolete {
		if err := j.dir.fs.Remove(j.dir.file(name)); err != nil {
			s.options.Logger.Warn("obsolete file can't be removed", "error", err)
		}
	}
	return nil
}

// checkpointError fails the store if the error has stopped its log.
func (s *Store) checkpointError(err error) error {
	j := s.disk.journal
	j.mu.Lock()
	broken := j.broken
	j.mu.Unlock()
	if broken != nil && s.Err() == nil {
		s.fail(broken, nil)
	}
	return fmt.Errorf("embedded: checkpoint: %w", err)
}

// settleRows returns when every commit that was applied before the call is
// durable: none of them may be in a checkpoint before it is in the log.
func (s *Store) settleRows(ctx context.Context) error {
	s.commitLock.Lock()
	last := s.batches
	s.commitLock.Unlock()
	if s.options.Inline {
		return s.disk.journal.wait()
	}
	for {
		news := s.news.wait()
		if s.disk.pipeline.synced.Load() >= last {
			return nil
		}
		if err := s.Err(); err != nil {
			return err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Stats is a look at a store.
type Stats struct {
	// Keys and Bytes are the rows and the size of their keys and values.
	Keys, Bytes int64
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
}

// StoredBytes returns the size of all keys and values of the store, whatever the range.
func (s *Store) StoredBytes(context.Context, kv.Range) (int64, error) {
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	return s.index.liveBytes, nil
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
	st.Keys, st.Bytes = s.index.liveKeys, s.index.liveBytes
	st.Memory = st.Bytes - s.index.tableBytes - s.index.loggedBytes + int64(s.index.tree.size+st.Garbage)*rowOverhead
	s.index.mu.RUnlock()
	st.Watches = s.watches.count()
	if s.disk != nil {
		st.LogBytes, st.Segments = s.disk.journal.logBytes.Load(), s.disk.journal.segments()
		st.SyncMedian, st.Syncs = s.disk.journal.latency.median()
	}
	return st
}
