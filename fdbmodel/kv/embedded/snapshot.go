package embedded

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

const (
	// snapshotsName is the directory within that of a store where its snapshots are, and snapshotSuffix what the names
	// of their directories end with. Others there are not touched.
	snapshotsName  = "snapshots"
	snapshotSuffix = ".snapshot"
	// snapshotMemory is about how many bytes a snapshot takes of the process's memory.
	snapshotMemory = 64 << 20
	// snapshotLifetime is how long a transaction of a snapshot may live.
	snapshotLifetime = 30 * 24 * time.Hour
	// snapshotWait is the pause between two looks at whether another snapshot is made.
	snapshotWait = 20 * time.Millisecond
)

// Snapshot opens what the store in dir holds now as a store of its own, for readers that take longer than
// kv.TxLifetime. Any process of the user of dir may have the store open, and write to it meanwhile. The snapshot has
// all commits that were synced before the call, and a later one only with all before it. Those that were acknowledged
// without a sync are missing for some milliseconds.
//
// Its files are links, in the directory dir/snapshots, so they take room only for what the store removes meanwhile;
// they are copies where the file system has no links. Close removes them, and the next call what a process has left
// that was killed. What is committed to a snapshot is lost. Of the options FS, Exposed, Only, Clock and Logger count;
// it takes about 64 MiB of memory, and more where the log of the store has more.
//
// It returns the errors of Open but kv.ErrStoreInUse, and fs.ErrNotExist where dir holds no store.
func Snapshot(ctx context.Context, dir string, o Options) (kv.Database, error) {
	s, err := snapshotWithin(ctx, dir, o.withDefaults(), snapshotMemory)
	if err != nil {
		return nil, fmt.Errorf("embedded: snapshot of %s: %w", dir, err)
	}
	return s, nil
}

// snapshotWithin is Snapshot that takes about so much memory.
func snapshotWithin(ctx context.Context, dir string, o Options, memory int64) (_ *Store, err error) {
	from := directory{fs: o.FS, path: dir}
	if _, err := from.existing(o.Only); err != nil {
		return nil, err // before anything is made there
	}
	all, alone, err := enterAlone(ctx, from.file(snapshotsName), &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	if err := all.removeSnapshots(&o); err != nil {
		return nil, err
	}
	files := directory{fs: o.FS, path: all.file(rand.Text() + snapshotSuffix)}
	if err := from.copyTo(ctx, files, o.Only); err != nil {
		return nil, errors.Join(err, o.FS.RemoveAll(files.path))
	}
	s, err := Open(ctx, files.path, Options{FS: o.FS, Exposed: o.Exposed, Clock: o.Clock, Logger: o.Logger,
		Inline: true, SyncOff: true, Memory: memory, TxLifetime: snapshotLifetime})
	if err != nil {
		return nil, errors.Join(err, o.FS.RemoveAll(files.path))
	}
	s.disk.lock = removing{files, s.disk.lock}
	if s.memory() <= memory {
		return s, nil
	}
	if err = s.disk.journal.begin(); err == nil {
		err = s.writeCheckpoint(ctx, 0) // merges nothing
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// snapshot is Snapshot of the store, with all commits that were acknowledged.
func (s *Store) snapshot(ctx context.Context) (kv.Database, error) {
	if s.disk.begun.Load() {
		if err := s.settleRows(ctx); err != nil {
			return nil, err
		}
	}
	o, id := s.options, s.disk.journal.store
	o.Only = hex.EncodeToString(id[:])
	return Snapshot(ctx, s.disk.journal.dir.path, o)
}

// removing is the lock of a directory that nothing needs once it is closed.
type removing struct {
	files directory
	lock  io.Closer
}

// Close implements io.Closer. While it is locked nobody else removes it, or puts a lock there.
func (r removing) Close() error {
	return errors.Join(r.files.fs.RemoveAll(r.files.path), r.lock.Close())
}

// enterAlone makes the directory of snapshots if it is not there, and waits until nothing else makes or removes one.
func enterAlone(ctx context.Context, path string, o *Options) (all directory, alone io.Closer, err error) {
	for {
		all, alone, err = lockDirectory(path, &Options{FS: o.FS, Exposed: o.Exposed})
		if alone != nil {
			return all, alone, nil // where it can't be written, a copy says so
		}
		if !errors.Is(err, kv.ErrStoreInUse) {
			return all, nil, err
		}
		if err := clock.Sleep(ctx, clock.Real{}, snapshotWait); err != nil {
			return all, nil, err
		}
	}
}

// removeSnapshots removes those that no process has open.
func (d directory) removeSnapshots(o *Options) error {
	names, err := d.fs.List(d.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, snapshotSuffix) {
			continue
		}
		left, unused, err := lockDirectory(d.file(name), &Options{FS: o.FS, Exposed: o.Exposed})
		if unused != nil {
			err = removing{left, unused}.Close()
		} else if errors.Is(err, kv.ErrStoreInUse) {
			continue
		}
		if err != nil {
			o.Logger.Warn("what was left of a snapshot can't be removed", "directory", d.file(name), "error", err)
		}
	}
	return nil
}

// existing returns the manifest of the store, and fs.ErrNotExist where there is none.
func (d directory) existing(only string) (*manifest, error) {
	m, err := d.manifest()
	if err == nil {
		err = d.allow(m, only)
	}
	if err == nil && m == nil {
		err = fmt.Errorf("it holds no store: %w", fs.ErrNotExist)
	}
	return m, err
}

// copyTo makes a directory with the store as it is now. The files that a manifest names stay as long as it does,
// and but for the last segment no file is written that it names.
func (d directory) copyTo(ctx context.Context, to directory, only string) error {
	for {
		m, err := d.existing(only)
		if err != nil {
			return err
		}
		if err := errors.Join(to.fs.RemoveAll(to.path), to.fs.MkdirAll(to.path, 0o700)); err != nil {
			return err
		}
		missing := d.copyFiles(ctx, m.clone(), to)
		if !errors.Is(missing, fs.ErrNotExist) {
			return missing
		}
		if now, err := d.manifest(); err != nil || reflect.DeepEqual(now, m) {
			return errors.Join(fmt.Errorf("%w: %w", kv.ErrCorrupt, missing), err)
		}
	}
}

// copyFiles makes a directory of the store with a manifest.
func (d directory) copyFiles(ctx context.Context, m *manifest, to directory) error {
	for _, t := range m.Tables {
		if err := d.link(ctx, rowsName(t.File), to); err != nil {
			return err
		}
	}
	for i := range m.Segments {
		s := &m.Segments[i]
		var err error
		if s.Sealed {
			err = d.link(ctx, segmentName(s.File), to)
		} else {
			err = d.copyWritten(m, s, to)
		}
		if err != nil {
			return err
		}
	}
	return to.install(m)
}

// link gives a file that is not written any more a name in another directory, or copies it.
func (d directory) link(ctx context.Context, name string, to directory) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := d.fs.Link(d.file(name), to.file(name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return vfs.Copy(d.fs, d.file(name), to.file(name))
}

// copyWritten copies the records of a segment that may be written meanwhile, and seals the copy.
func (d directory) copyWritten(m *manifest, s *segmentRange, to directory) (err error) {
	id, err := m.id()
	if err != nil {
		return d.corrupt(manifestName, "%v", err)
	}
	j := journal{dir: d, store: id, log: slog.New(slog.DiscardHandler)}
	mark, err := j.readMark()
	if err != nil {
		return err
	}
	known := max(s.Synced, m.Until)
	switch {
	case mark.segment == s.File:
		known = max(known, mark.known.seq)
	case mark.segment > s.File: // a newer manifest names it
		return fmt.Errorf("%s: %w", d.file(segmentName(mark.segment)), fs.ErrNotExist)
	}
	r, err := openSegment(d, s.File, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	next := s.First
	for ; ; next++ {
		h, _, err := r.next()
		if errors.Is(err, errTail) {
			break
		}
		if err != nil {
			return err
		}
		if h.seq != next {
			return d.corrupt(r.name, "record %d follows record %d", h.seq, next-1)
		}
	}
	if next <= known {
		return d.corrupt(r.name, "record %d is missing or damaged, and was synced up to record %d", next, known)
	}
	s.seal(next-1, r.end)
	f, err := to.fs.Create(to.file(r.name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.NewSectionReader(r.file, 0, r.end))
	return errors.Join(err, f.Close())
}
