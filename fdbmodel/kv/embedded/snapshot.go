package embedded

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"reflect"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

const (
	// snapshotsName is the directory within that of a store where its snapshots are.
	snapshotsName = "snapshots"
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
func Snapshot(ctx context.Context, dir string, o Options) (_ kv.Database, err error) {
	o = o.withDefaults()
	from := directory{fs: o.FS, path: dir}
	all := directory{fs: o.FS, path: from.file(snapshotsName)}
	making, err := all.enterAlone(ctx)
	if err != nil {
		return nil, fmt.Errorf("embedded: snapshot of %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, making.Close()) }()
	number, err := all.removeSnapshots(&o)
	if err != nil {
		return nil, fmt.Errorf("embedded: snapshot of %s: %w", dir, err)
	}
	s := &frozen{files: directory{fs: o.FS, path: all.file(strconv.Itoa(number))}}
	err = from.copyTo(ctx, s.files, o.Only)
	if err == nil {
		s.Store, err = Open(ctx, s.files.path, Options{FS: o.FS, Exposed: o.Exposed, Clock: o.Clock, Logger: o.Logger,
			Inline: true, SyncOff: true, Memory: snapshotMemory, TxLifetime: snapshotLifetime})
	}
	if err == nil && s.Stats().Memory > snapshotMemory {
		err = s.Checkpoint(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: snapshot of %s: %w", dir, err), s.Close())
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

// frozen is a store whose files nothing else needs.
type frozen struct {
	*Store
	files directory
}

// Close implements kv.Database.
func (s *frozen) Close() (err error) {
	if s.Store != nil {
		err = s.Store.Close()
	}
	return errors.Join(err, s.files.fs.RemoveAll(s.files.path))
}

// enterAlone makes the directory of snapshots if it is not there, and waits until nothing else makes or removes one.
func (d directory) enterAlone(ctx context.Context) (io.Closer, error) {
	if err := d.make(); err != nil {
		return nil, err
	}
	for {
		alone, err := d.lockItself(io.NopCloser(nil), false)
		if !errors.Is(err, errLocked) {
			return alone, err
		}
		if err := clock.Sleep(ctx, clock.Real{}, snapshotWait); err != nil {
			return nil, err
		}
	}
}

// removeSnapshots removes those that no process has open, and returns a number above that of all others.
func (d directory) removeSnapshots(o *Options) (number int, err error) {
	names, err := d.fs.List(d.path)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil {
			continue // not ours
		}
		number = max(number, n)
		_, unused, err := lockDirectory(d.file(name), &Options{FS: o.FS, Exposed: o.Exposed})
		if unused == nil {
			continue
		}
		if err := errors.Join(err, d.fs.RemoveAll(d.file(name)), unused.Close()); err != nil {
			o.Logger.Warn("what was left of a snapshot can't be removed", "directory", d.file(name), "error", err)
		}
	}
	return number + 1, nil
}

// copyTo makes a directory with the store as it is now. The files that a manifest names stay as long as it does,
// and but for the last segment no file is written that it names.
func (d directory) copyTo(ctx context.Context, to directory, only string) error {
	for {
		m, err := d.manifest()
		switch {
		case err != nil:
			return err
		case m == nil:
			return fmt.Errorf("it holds no store: %w", fs.ErrNotExist)
		}
		if err := d.allow(m, only); err != nil {
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
	if mark.segment == s.File {
		known = max(known, mark.known.seq)
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
