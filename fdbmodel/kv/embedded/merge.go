package embedded

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/internal/signal"
)

// mergeWidth is how many tables of about one size are merged at least.
const mergeWidth = 4

// mergeable returns the first of the tables to merge, which are the newest ones, and false
// if there are too few. A table joins newer ones that are together as large: so a row is
// written again only a few times, and the newest tables are not larger than the oldest one.
func mergeable(tables []*table) (first int, ok bool) {
	n := len(tables)
	if n < mergeWidth {
		return 0, false
	}
	first = n - 1
	for sum := tables[first].Size; first > 0 && tables[first-1].Size <= sum; first-- {
		sum += tables[first-1].Size
	}
	return first, n-first >= mergeWidth
}

// maxFutile is how many checkpoints a merge of all waits at most after others that freed nothing.
const maxFutile = 64

// isWasteful reports whether tables take far more room than live bytes, so that all of them are to be merged: what was
// deleted since is in the newest ones, unless a transaction reads at a version from before.
func (s *Store) isWasteful(tables []*table, live int64) bool {
	return len(tables) > 1 && s.checkpoints.Load() >= s.futileUntil && s.isWaste(room(tables), live)
}

// room is what tables take on the disk.
func room(tables []*table) (bytes int64) {
	for _, t := range tables {
		bytes += t.Size
	}
	return bytes
}

func (s *Store) isWaste(total, live int64) bool { return total > 2*live+s.options.CheckpointBytes/2 }

// freeTables writes a checkpoint, after which the tables are merged, if most of what they have is gone: a log that
// hardly grows would keep that from coming by itself. It looks more and more seldom while that frees nothing.
func (s *Store) freeTables(ctx context.Context) {
	if !s.disk.begun.Load() || s.disk.journal.logBytes.Load() == 0 {
		return
	}
	s.index.mu.RLock()
	total, live := room(s.index.base.tables), s.index.allBytes()
	s.index.mu.RUnlock()
	if !s.isWaste(total, live) || !s.mayFree() {
		return
	}
	if err := s.checkpoint(ctx, 0); err != nil && ctx.Err() == nil && s.Err() == nil {
		s.options.Logger.Warn("checkpoint failed", "error", err)
	}
}

// mayFree reports whether a merge of all tables is to be tried again, and has the next one not wait.
func (s *Store) mayFree() bool {
	s.mergeLock.Lock()
	defer s.mergeLock.Unlock()
	if s.looks++; s.looks < s.futile {
		return false
	}
	s.looks, s.futileUntil = 0, 0
	return true
}

// noteMerged has the next merge of all wait for more and more checkpoints while they free nothing.
func (s *Store) noteMerged(freed bool) {
	if freed {
		s.futile = 0
		return
	}
	s.futile = min(2*s.futile+1, maxFutile)
	s.futileUntil = s.checkpoints.Load() + s.futile
}

// mergeSoon merges tables after a checkpoint, if there are too many.
func (s *Store) mergeSoon(ctx context.Context) {
	if s.disk.checkpointer != nil {
		signal.Send(s.disk.checkpointer.more)
		return
	}
	s.mergeTables(ctx)
}

// mergeTables merges tables until there are few enough. A failure does no harm, as the tables
// are still there: the merge is tried again after the next checkpoint. Before the log begins,
// nothing is written.
func (s *Store) mergeTables(ctx context.Context) {
	if !s.disk.begun.Load() {
		return
	}
	s.mergeLock.Lock()
	defer s.mergeLock.Unlock()
	for more := s.unmerged != s.checkpoints.Load(); more; {
		s.index.mu.RLock()
		set, live := s.index.base.hold(), s.index.allBytes()
		s.index.mu.RUnlock()
		first, ok := mergeable(set.tables)
		wasteful := s.isWasteful(set.tables, live)
		if wasteful {
			first, ok = 0, true
		}
		more = ok && s.Err() == nil
		if more {
			merged, err := s.merge(ctx, set.tables[first:], first == 0)
			if wasteful && err == nil {
				s.noteMerged(!s.isWaste(merged, live))
			}
			if err != nil {
				more, s.unmerged = false, s.checkpoints.Load()
				if ctx.Err() == nil && s.Err() == nil {
					s.options.Logger.Warn("tables can't be merged", "error", err)
				}
			}
		}
		_ = set.release()
	}
}

// merge replaces tables that follow each other by one, and returns its size. If no table is older, deletions
// are over.
func (s *Store) merge(ctx context.Context, tables []*table, oldest bool) (int64, error) {
	start := time.Now()
	j := s.disk.journal
	j.mu.Lock()
	number := j.newFile()
	j.mu.Unlock()
	t, err := s.writeMerged(ctx, number, tables, oldest)
	if err != nil {
		return 0, err
	}
	obsolete, err := j.replace(func(m *manifest) {
		at := slices.IndexFunc(m.Tables, func(f tableFile) bool { return f.File == tables[0].File })
		m.Tables = slices.Delete(m.Tables, at, at+len(tables))
		if t != nil {
			m.Tables = slices.Insert(m.Tables, at, t.tableFile)
		}
	})
	if err != nil {
		return 0, s.checkpointError(j.discard(t, err))
	}
	s.swapTables(func(x *index) []*table {
		at := slices.Index(x.base.tables, tables[0])
		all := slices.Delete(slices.Clone(x.base.tables), at, at+len(tables))
		if t != nil {
			all = slices.Insert(all, at, t)
		}
		return all
	})
	s.options.Logger.Info("tables merged", "tables", len(tables), "bytes", size(t), "took", time.Since(start))
	j.remove(obsolete)
	return size(t), nil
}

// writeMerged writes what tables have together. Checkpoints that become due are written
// meanwhile.
func (s *Store) writeMerged(ctx context.Context, number uint64, tables []*table, oldest bool) (*table, error) {
	d := s.disk.journal.dir
	rows, err := merged(d, tables)
	defer func() { _ = rows.close() }()
	if err != nil {
		return nil, err
	}
	w, err := newTableWriter(d, number)
	if err != nil {
		return nil, err
	}
	for size := 0; err == nil && rows.valid; {
		if e := rows.entry; !e.deleted || !oldest {
			err = w.add(e)
			size += len(e.key) + len(e.value)
		}
		if err == nil && size >= pageBytes {
			size, err = 0, s.rest(ctx)
		}
		if err == nil {
			err = rows.next()
		}
	}
	if err == nil {
		err = rows.complete()
	}
	return w.finish(err)
}

// rest is called by a merge now and then.
func (s *Store) rest(ctx context.Context) error {
	if err := errors.Join(ctx.Err(), s.Err()); err != nil {
		return err
	}
	if !s.options.Inline {
		s.checkpointIfDue(ctx)
	}
	return nil
}

// discard closes a table that could not be installed, if there is one, and removes it unless a manifest may name it. It
// returns the error of that with its own.
func (j *journal) discard(t *table, failed error) error {
	if t == nil {
		return failed
	}
	failed = errors.Join(failed, t.reader.Close())
	if errors.Is(failed, errInstall) {
		return failed
	}
	return errors.Join(failed, j.dir.fs.Remove(j.dir.file(rowsName(t.File))))
}
