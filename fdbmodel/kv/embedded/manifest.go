package embedded

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// formatVersion is the version of the files of a directory. A store that was
// written by a newer one is not opened.
const formatVersion = 3

const (
	manifestName    = "MANIFEST"
	manifestNewName = "MANIFEST.new"
	lockName        = "LOCK"
	segmentSuffix   = ".log"
	rowsSuffix      = ".rows"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// storeID is drawn when a directory is made. Each record of the log carries
// it, so that a file of another store is not taken for one's own.
type storeID [8]byte

// manifest names the files that a store consists of. A file that it does not
// name is no part of the store.
type manifest struct {
	Format int    `json:"format"`
	Store  string `json:"store"`
	// Version is what the versions of the last opening began behind.
	Version kv.Version `json:"version"`
	// NextFile is the number of the next file.
	NextFile uint64 `json:"next_file"`
	// Tables are those that have rows, the oldest first: what a newer one has of a row
	// counts.
	Tables []tableFile `json:"tables,omitempty"`
	// Through is the version up to which the tables have what changed, unless it changed
	// again.
	Through kv.Version `json:"through,omitempty"`
	// Until is a record up to which the log has to be there: the tables lack rows that
	// changed again in records up to it.
	Until    uint64         `json:"until,omitempty"`
	Segments []segmentRange `json:"segments"`
	// Checkpoint is the only table in a manifest of format 2 or less. Its rows have
	// commits up to the record Until in part.
	Checkpoint *singleTable `json:"checkpoint,omitempty"`
}

// singleTable is a table of all rows.
type singleTable struct {
	tableFile
	Until uint64 `json:"until,omitempty"`
}

// update gives a manifest of an older format the form of the newest. Its format stays, until
// the directory is written.
func (m *manifest) update() {
	if c := m.Checkpoint; c != nil {
		m.Tables, m.Until, m.Checkpoint = []tableFile{c.tableFile}, c.Until, nil
	}
}

// segmentRange is a file of the log and the records in it that count.
type segmentRange struct {
	File  uint64 `json:"file"`
	First uint64 `json:"first"`
	// Synced is a record that was synced before the manifest was written.
	Synced uint64 `json:"synced,omitempty"`
	// Last is the last record. It is only set once the segment is Sealed;
	// whatever follows it then was never promised to anyone.
	Last   uint64 `json:"last,omitempty"`
	Sealed bool   `json:"sealed,omitempty"`
	// Size is where the last record ends, and zeros follow. It is zero where
	// something else is known to follow.
	Size int64 `json:"size,omitempty"`
}

// seal ends the segment, unless it was sealed before.
func (s *segmentRange) seal(last uint64, size int64) {
	if !s.Sealed {
		s.Sealed, s.Last, s.Size = true, last, size
	}
}

func segmentName(file uint64) string { return fmt.Sprintf("%08d%s", file, segmentSuffix) }
func rowsName(file uint64) string    { return fmt.Sprintf("%08d%s", file, rowsSuffix) }

func (m *manifest) id() (id storeID, err error) {
	b, err := hex.DecodeString(m.Store)
	if err != nil || len(b) != len(id) {
		return id, errors.New("the store's id is malformed")
	}
	copy(id[:], b)
	return id, nil
}

// files returns the names of the files of the store.
func (m *manifest) files() map[string]bool {
	names := map[string]bool{manifestName: true, lockName: true, markName: true, coldName: true}
	for _, s := range m.Segments {
		names[segmentName(s.File)] = true
	}
	for _, t := range m.Tables {
		names[rowsName(t.File)] = true
	}
	return names
}

// clone returns a manifest that can be changed without changing m.
func (m *manifest) clone() *manifest {
	c := *m
	c.Tables, c.Segments = slices.Clone(m.Tables), slices.Clone(m.Segments)
	return &c
}

// directory is the directory of a store.
type directory struct {
	fs   vfs.FS
	path string
	// locked is what was at path when it was locked, nil where that can't be told.
	locked fs.FileInfo
}

// inPlace returns an error if the directory was moved, or another one has its name: what is written by
// names would destroy another store.
func (d directory) inPlace() error {
	if d.locked == nil {
		return nil
	}
	now, err := os.Stat(d.path)
	if err == nil && !os.SameFile(now, d.locked) {
		err = fmt.Errorf("embedded: directory %s was replaced by another one while it was open", d.path)
	}
	return err
}

func (d directory) file(name string) string { return d.fs.PathJoin(d.path, name) }

func (d directory) corrupt(name, format string, a ...any) error {
	return fmt.Errorf("%w: %s: %s", kv.ErrCorrupt, d.file(name), fmt.Sprintf(format, a...))
}

// damaged says that a file is which can't be read for a reason, unless the system failed to read it.
func (d directory) damaged(name string, reason error) error {
	if pathError := (*fs.PathError)(nil); errors.As(reason, &pathError) {
		return reason
	}
	return d.corrupt(name, "%v", reason)
}

// sync makes the names of the files durable.
func (d directory) sync() error { return syncDir(d.fs, d.path) }

func syncDir(fs vfs.FS, path string) error {
	dir, err := fs.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (d directory) read(name string) (_ []byte, err error) {
	f, err := d.fs.Open(d.file(name))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(f)
}

// manifest returns nil where there is none.
func (d directory) manifest() (*manifest, error) {
	b, err := d.read(manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	body, sum, found := bytes.Cut(b, []byte("\n"))
	if !found || string(sum) != checksumLine(body) {
		return nil, d.corrupt(manifestName, "its checksum is wrong")
	}
	m := &manifest{}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, d.corrupt(manifestName, "%v", err)
	}
	if m.Format > formatVersion {
		return nil, fmt.Errorf("embedded: %s was written by a newer release: format %d, this one knows %d",
			d.path, m.Format, formatVersion)
	}
	m.update()
	return m, nil
}

func checksumLine(body []byte) string {
	return fmt.Sprintf("crc32c %08x\n", crc32.Checksum(body, castagnoli))
}

// errInstall is in the error of a manifest of which it is not known whether it
// replaced the one before.
var errInstall = errors.New("embedded: manifest may have been replaced")

// install replaces the manifest. Files that it names must be durable.
func (d directory) install(m *manifest) error {
	if err := d.inPlace(); err != nil {
		return err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	body = append(append(body, '\n'), checksumLine(body)...)
	// From the rename on nothing may need another file descriptor.
	dir, err := d.fs.OpenDir(d.path)
	if err != nil {
		return err
	}
	if err := d.write(manifestNewName, body); err != nil {
		return errors.Join(err, dir.Close())
	}
	err = d.fs.Rename(d.file(manifestNewName), d.file(manifestName))
	if err == nil {
		err = dir.Sync()
	}
	if err := errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("%w: %w", errInstall, err)
	}
	return nil
}

func (d directory) write(name string, b []byte) error {
	f, err := d.fs.Create(d.file(name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}
