package embedded

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// lockDirectory makes the directory and keeps everyone else out of it.
func lockDirectory(filesystem vfs.FS, path string, shared bool) (directory, io.Closer, error) {
	d := directory{fs: filesystem, path: path}
	onDisk := vfs.Root(filesystem) == vfs.Default
	if onDisk {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return d, nil, fmt.Errorf("embedded: %w", err)
		}
		d.path = absolute
	}
	info, err := d.fs.Stat(d.path)
	switch {
	case err == nil && !info.IsDir():
		return d, nil, fmt.Errorf("embedded: %s is not a directory", d.path)
	case errors.Is(err, fs.ErrNotExist):
		if err := d.fs.MkdirAll(d.path, 0o700); err != nil {
			return d, nil, fmt.Errorf("embedded: directory %s can't be created: %w", d.path, err)
		}
		if err := syncDir(d.fs, d.fs.PathDir(d.path)); err != nil {
			return d, nil, fmt.Errorf("embedded: %w", err)
		}
	case err != nil:
		return d, nil, fmt.Errorf("embedded: directory %s can't be opened: %w", d.path, err)
	}
	if onDisk {
		// The lock knows paths, not directories.
		if real, err := filepath.EvalSymlinks(d.path); err == nil {
			d.path = real
		}
		if err := guard(d.path, shared); err != nil {
			return d, nil, err
		}
	}
	lock, err := d.fs.Lock(d.file(lockName))
	if err == nil {
		return d, lock, nil
	}
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return d, nil, fmt.Errorf("embedded: directory %s can't be written: %w", d.path, err)
	}
	return d, nil, fmt.Errorf("%w: %s: %w", kv.ErrStoreInUse, d.path, err)
}

// openJournal reads the manifest of a directory, or begins a new one.
func openJournal(d directory, segmentSize int64) (*journal, error) {
	m, err := d.manifest()
	if err != nil {
		return nil, err
	}
	if m == nil {
		if m, err = newManifest(d); err != nil {
			return nil, err
		}
	}
	id, err := m.id()
	if err != nil {
		return nil, d.corrupt(manifestName, "%v", err)
	}
	return &journal{dir: d, segmentSize: segmentSize, store: id, manifest: m}, nil
}

func newManifest(d directory) (*manifest, error) {
	names, err := d.fs.List(d.path)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, segmentSuffix) || strings.HasSuffix(name, rowsSuffix) {
			return nil, d.corrupt(manifestName, "it is missing, but %s exists", name)
		}
	}
	var id storeID
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	m := &manifest{Format: formatVersion, Store: hex.EncodeToString(id[:]), NextFile: 1}
	return m, d.install(m)
}

// recover implements durability.
func (j *journal) recover(into *loader) error {
	if c := j.manifest.Checkpoint; c != nil {
		if err := loadRows(j.dir, *c, into); err != nil {
			return err
		}
	}
	j.next = 1
	for i, s := range j.manifest.Segments {
		if i == 0 {
			j.next = s.First
		}
		if s.First != j.next {
			return j.dir.corrupt(segmentName(s.File), "it begins at record %d, not at %d", s.First, j.next)
		}
		if err := j.replay(s, i == len(j.manifest.Segments)-1, into); err != nil {
			return err
		}
	}
	j.durable = j.next - 1
	j.attested = j.durable
	return nil
}

// replay applies the records of one segment.
func (j *journal) replay(s segmentRange, last bool, into *loader) (err error) {
	name := segmentName(s.File)
	if !s.Sealed && !last {
		return j.dir.corrupt(manifestName, "segment %s is not the last one and not sealed", name)
	}
	r, err := openSegment(j.dir, s.File, j.store)
	if errors.Is(err, fs.ErrNotExist) {
		return j.dir.corrupt(name, "it is missing")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for !s.Sealed || j.next <= s.Last {
		if err := into.ctx.Err(); err != nil {
			return err
		}
		h, body, err := r.next()
		if errors.Is(err, errTail) {
			return j.tail(s, into.log)
		}
		if err != nil {
			return err
		}
		if h.seq != j.next {
			return j.dir.corrupt(name, "record %d follows record %d", h.seq, j.next-1)
		}
		if err := into.apply(body); err != nil {
			return j.dir.corrupt(name, "record %d: %v", h.seq, err)
		}
		j.version = max(j.version, h.version)
		j.next++
	}
	return nil
}

// tail decides whether the end of the readable records is the end of what was
// promised.
func (j *journal) tail(s segmentRange, log *slog.Logger) error {
	name := segmentName(s.File)
	if s.Sealed {
		return j.dir.corrupt(name, "record %d is missing or damaged, the last one is %d", j.next, s.Last)
	}
	rest, err := j.dir.read(name)
	if err != nil {
		return err
	}
	if known := promised(rest, j.store); known >= j.next {
		return j.dir.corrupt(name, "record %d is damaged, records up to %d were synced", j.next, known)
	}
	log.Info("read the log", "file", j.dir.file(name), "records", j.next-s.First)
	// Records may have been read that were written and never synced.
	f, err := j.dir.fs.OpenReadWrite(j.dir.file(name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// start begins to log after recovery, behind a version that was never handed
// out.
func (j *journal) start() (kv.Version, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.version = max(j.version, j.manifest.Version) + versionJump
	j.manifest = j.manifest.clone()
	j.manifest.Version = j.version
	if err := j.rotate(); err != nil {
		return 0, err
	}
	return j.version, j.measure()
}

// sweep removes files that are no part of the store: what a crash left.
func (j *journal) sweep() error {
	names, err := j.dir.fs.List(j.dir.path)
	if err != nil {
		return err
	}
	mine := j.manifest.files()
	for _, name := range names {
		ours := strings.HasSuffix(name, segmentSuffix) || strings.HasSuffix(name, rowsSuffix) || name == manifestNewName
		if ours && !mine[name] {
			if err := j.dir.fs.Remove(j.dir.file(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// loader fills an index that is not read yet.
type loader struct {
	ctx   context.Context
	index *index
	log   *slog.Logger
}

var errMalformed = errors.New("malformed record")

// apply does the mutations of a record's body.
func (l *loader) apply(body []byte) error {
	for len(body) > 0 {
		kind := body[0]
		key, rest, ok := cutBytes(body[1:])
		if !ok {
			return errMalformed
		}
		if kind == recordClear {
			l.clear(key)
			body = rest
			continue
		}
		second, rest, ok := cutBytes(rest)
		if !ok {
			return errMalformed
		}
		switch kind {
		case recordSet:
			if err := l.set(key, second); err != nil {
				return err
			}
		case recordClearRange:
			l.clearRange(key, second)
		default:
			return errMalformed
		}
		body = rest
	}
	return nil
}

// cutBytes takes a byte string with its length before it off b.
func cutBytes(b []byte) (cut, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}
