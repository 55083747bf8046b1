package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Checkpoint writes what has changed since the last one to a table, and deletes the log
// before, while commits go on. It waits up to 50 ms for transactions that read at older
// versions. The store does so by itself when its log has grown; by hand it makes the next
// opening fast. A store in memory does nothing.
func (s *Store) Checkpoint(ctx context.Context) error {
	if s.disk == nil {
		return s.Err()
	}
	if err := s.beginLog(); err != nil {
		return fmt.Errorf("embedded: checkpoint: %w", err)
	}
	return s.checkpoint(ctx, 0)
}

// checkpoint is Checkpoint of a store whose log can be written. Without goroutines, it does not
// wait: it leaves some versions before the last one readable, and what they don't have to the
// next checkpoint.
func (s *Store) checkpoint(ctx context.Context, except int) error {
	if err := s.writeCheckpoint(ctx, except); err != nil {
		return s.checkpointError(err)
	}
	s.mergeSoon(ctx)
	return nil
}

func (s *Store) writeCheckpoint(ctx context.Context, except int) error {
	s.checkpointLock.Lock()
	defer s.checkpointLock.Unlock()
	if err := s.Err(); err != nil {
		return err
	}
	start := time.Now()
	j := s.disk.journal
	number, before, err := j.beginCheckpoint()
	if err != nil {
		return err
	}
	through, err := s.raise(ctx, before, except)
	if err != nil {
		return err
	}
	p := s.beginPace()
	defer p.end()
	c := &changeSet{store: s, after: s.through, through: through, wrote: p.advance}
	t, err := c.write(ctx, number)
	p.settle()
	if err == nil {
		err = s.settleRows(ctx)
	}
	if err != nil {
		return j.discard(t, err)
	}
	firstLog, obsolete, err := j.installCheckpoint(t, through)
	if err != nil {
		return j.discard(t, err)
	}
	s.through = through
	s.adopt(t, firstLog, c)
	s.evict()
	s.writeHints()
	s.checkpoints.Add(1)
	s.waitForMore()
	s.options.Logger.Info("checkpoint", "rows", c.rows, "bytes", size(t), "took", time.Since(start))
	j.remove(obsolete)
	return nil
}

// size is that of a table, which is not there if nothing had changed.
func size(t *table) int64 {
	if t == nil {
		return 0
	}
	return t.Size
}

// raise makes a version the lowest that can be read, and returns which one is: an older one
// if a transaction still reads there. It waits until older versions have been kept for as
// long as they are kept under load.
func (s *Store) raise(ctx context.Context, v kv.Version, except int) (kv.Version, error) {
	if s.options.Inline {
		return s.raiseNow(v, 0, except), nil
	}
	if err := s.await(ctx, v); err != nil {
		return 0, err
	}
	if floor := s.raiseNow(v, briefHistory, 0); floor >= v {
		return floor, nil
	}
	timer := time.NewTimer(briefHistory)
	defer timer.Stop()
	select {
	case <-timer.C:
		return s.raiseNow(v, 0, 0), nil
	case <-s.failed:
		return 0, s.Err()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (s *Store) raiseNow(v kv.Version, keep time.Duration, except int) kv.Version {
	s.commitLock.Lock()
	defer s.commitLock.Unlock()
	return s.sequencer.raise(v, s.options.Clock.Now(), keep, except)
}

// await returns when a version is published. It does not let the commits up to it linger.
func (s *Store) await(ctx context.Context, v kv.Version) error {
	return s.awaitNews(ctx, func() bool { return s.line.published() >= v })
}

// awaitNews returns when something is so that batches which become durable make so. None of those that there are
// lingers.
func (s *Store) awaitNews(ctx context.Context, isSo func() bool) error {
	for {
		news := s.news.wait()
		if isSo() {
			return nil
		}
		if err := s.Err(); err != nil {
			return err
		}
		if s.disk != nil && s.disk.pipeline != nil {
			s.disk.pipeline.hurry()
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settleRows returns when every commit that was applied before the call is
// durable: the tables may lack rows that such a commit changed again.
func (s *Store) settleRows(ctx context.Context) error {
	s.commitLock.Lock()
	last := s.batches
	s.commitLock.Unlock()
	if s.options.Inline {
		return s.disk.journal.wait()
	}
	return s.awaitNews(ctx, func() bool { return s.disk.pipeline.synced.Load() >= last })
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

// adopt reads what a checkpoint wrote from its table, if it has one, from now on.
func (s *Store) adopt(t *table, firstLog uint64, c *changeSet) {
	s.swapTables(func(x *index) []*table {
		x.retireFiles(firstLog)
		x.deleted.forget(len(c.deleted))
		x.cold.holes.forget(c.through)
		x.cold.epoch++
		x.cold.count(-c.fewer.keys, -c.fewer.bytes)
		if t == nil {
			return x.base.tables
		}
		return append(x.base.tables[:len(x.base.tables):len(x.base.tables)], t)
	})
	s.unlinger(c)
	s.spillToTable(c.large)
}

// unlinger takes deleted rows out of memory that the tables don't show any more.
func (s *Store) unlinger(c *changeSet) {
	for rest := c.deleted; len(rest) > 0; {
		s.commitLock.Lock()
		s.index.mu.Lock()
		for i := 0; i < lockedRows && len(rest) > 0; i++ {
			end := deletionHead + deletionKeySize(rest)
			s.index.unlinger(rest[deletionHead:end], c.through)
			rest = rest[end:]
		}
		s.index.mu.Unlock()
		s.commitLock.Unlock()
	}
}

// swapTables gives the index another set of tables.
func (s *Store) swapTables(next func(*index) []*table) {
	x := &s.index
	s.commitLock.Lock()
	x.mu.Lock()
	old := x.base
	x.base = newTableSet(next(x)...)
	x.mu.Unlock()
	s.commitLock.Unlock()
	// Nothing was written to its files, and what was read was checked.
	_ = old.release()
}
