package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// disk is what a store in a directory has besides its rows.
type disk struct {
	journal *journal
	lock    io.Closer
	// pipeline is nil in a store that runs inline.
	pipeline *pipeline
	// checkpointer is nil in a store that runs inline.
	checkpointer *checkpointer
	// begun is set once the log can be written.
	begun     atomic.Bool
	beginLock sync.Mutex
	// readOnly is why the directory could not be locked to be written, nil if it is.
	readOnly error
	// unwritable is what the last try to begin the log came to, nil before and once the log has begun.
	unwritable atomic.Pointer[error]
	full       fullness
}

// Open opens the store in dir, and makes it if it is not there. It returns
// kv.ErrStoreInUse while another Store has it open, in this process or in
// another, kv.ErrExposed for a directory that is open to other users, and
// kv.ErrCorrupt if a file is damaged or missing. A write that a crash cut off is
// no damage. ctx bounds nothing but the opening.
//
// A store that can't be written, because its disk is full or mounted read-only,
// is opened to be read: commits end with kv.ErrReadOnly, and write nothing. The next commit tries again, except where
// not even the lock could be written: then the store has to be opened again.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	s := newStore(o)
	d, lock, err := lockDirectory(dir, &s.options)
	var readOnly readOnlyError
	if err != nil && !errors.As(err, &readOnly) {
		return nil, err
	}
	if err := s.load(ctx, d); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: opening %s: %w", d.path, err), s.index.closeAllFiles(), lock.Close())
	}
	s.disk.lock, s.disk.readOnly = lock, readOnly.cause
	s.sequencer.recorded = true
	if !s.options.Inline {
		s.disk.checkpointer = newCheckpointer(s)
		s.disk.pipeline = newPipeline(s, s.disk.journal, s.disk.checkpointer.look, s.idle, s.keepPace)
		s.disk.checkpointer.start()
	}
	if s.disk.journal.doubtful() {
		if err := s.beginLog(); err != nil {
			s.options.Logger.Warn("store was not closed and can only be read: the last commits that it shows may be lost "+
				"if the power fails", "error", err)
		}
	}
	return s, nil
}

// Exists reports whether dir holds a store, even a damaged one. It is true if
// that can't be found out, so that Open returns the reason.
func Exists(dir string) bool {
	for _, name := range []string{manifestName, lockName} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// ID returns the id of the store in dir, which was drawn when that was made, and fs.ErrNotExist where
// there is none.
func ID(dir string) (string, error) {
	m, err := directory{fs: vfs.Default, path: dir}.manifest()
	switch {
	case err != nil:
		return "", err
	case m == nil:
		return "", fmt.Errorf("embedded: %s has no store: %w", dir, fs.ErrNotExist)
	}
	return m.Store, nil
}

// idle is called when there was no commit for a while.
func (s *Store) idle() error {
	s.commitLock.Lock()
	s.sequencer.collect(s.options.Clock.Now())
	s.commitLock.Unlock()
	return s.disk.journal.idle()
}

// load recovers the rows.
func (s *Store) load(ctx context.Context, d directory) error {
	j, err := openJournal(d, &s.options)
	if err != nil {
		return err
	}
	l := &loader{ctx: ctx, index: &s.index, most: s.options.rowMemory(), log: s.options.Logger}
	if err := j.recover(l); err != nil {
		return err
	}
	s.disk, s.through = &disk{journal: j}, j.manifest.Through
	s.hinted = len(s.index.cold.ranges) > 0
	s.index.most, s.index.coldRead = s.options.rowMemory(), s.coldRead
	s.begin(j.opening)
	return nil
}

// Close implements kv.Database. It returns after what was committed is
// durable, and an error if that failed.
func (s *Store) Close() error {
	var err error
	s.closeOnce.Do(func() { err = s.close() })
	return err
}

func (s *Store) close() error {
	s.end(kv.ErrClosed)
	if s.disk == nil {
		return nil
	}
	if s.disk.checkpointer != nil {
		s.disk.checkpointer.close()
		s.disk.pipeline.close()
	}
	// Waits for a commit, a merge or a checkpoint that runs in its caller.
	s.mergeLock.Lock()
	defer s.mergeLock.Unlock()
	s.checkpointLock.Lock()
	defer s.checkpointLock.Unlock()
	s.commitLock.Lock()
	defer s.commitLock.Unlock()
	if s.disk.begun.Load() {
		s.writeHints()
	}
	err := errors.Join(s.disk.journal.close(), s.index.closeAllFiles(), s.disk.lock.Close())
	if failure := s.Err(); errors.Is(failure, kv.ErrStoreFailed) {
		return failure
	}
	return err
}

// fail ends the store because the disk did not take batches. Their commits may
// have been written.
func (s *Store) fail(cause error, batches []*commitBatch) {
	s.end(fmt.Errorf("%w: %w", kv.ErrStoreFailed, cause))
	for _, b := range batches {
		for _, r := range b.waiters {
			r.finish(fmt.Errorf("%w: %w", kv.ErrUnknownResult, cause))
		}
	}
}

// answerEarly answers the commits of a batch that do not wait for the disk.
func (s *Store) answerEarly(b *commitBatch) {
	if s.options.SyncOff {
		s.publish(b)
	}
	kept := b.waiters[:0]
	for _, r := range b.waiters {
		if s.options.SyncOff || r.noSync {
			r.finish(nil)
		} else {
			kept = append(kept, r)
		}
	}
	clear(b.waiters[len(kept):])
	b.waiters = kept
}

// commitInline takes one commit all the way in the caller.
func (s *Store) commitInline(r *request) {
	s.commitLock.Lock()
	defer s.commitLock.Unlock()
	if err := s.Err(); err != nil {
		r.finish(err)
		return
	}
	b := &commitBatch{body: s.body[:0]}
	if s.sequencer.run(b, []*request{r}); b.empty() {
		return
	}
	s.batches++
	s.sequenced.Store(int64(b.last))
	s.body = b.body
	if s.disk != nil {
		err := s.disk.journal.persist(b)
		if err == nil && !s.options.SyncOff {
			err = s.disk.journal.wait()
		}
		if err != nil {
			s.fail(err, []*commitBatch{b})
			return
		}
		if !s.options.SyncOff {
			s.spill.add(b)
		}
	}
	s.publish(b)
	r.finish(nil)
	s.sequencer.collect(s.options.Clock.Now())
	s.spillToLog()
}
