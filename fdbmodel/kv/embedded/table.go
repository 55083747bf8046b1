package embedded

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// tableFile is a table as the manifest names it.
type tableFile struct {
	File uint64 `json:"file"`
	// Rows is how many entries it has: values and deletions.
	Rows int64 `json:"rows"`
	Size int64 `json:"size"`
}

// entry is what a table has of a key. It is valid until the walk goes on.
type entry struct {
	key, value []byte
	// version is that of the commit which wrote or deleted the row.
	version kv.Version
	deleted bool
	// open says that the tables alone know what was there before. No table has it.
	open bool
}

// table is a file of rows in the order of their keys, which never changes. It
// stays open while a set has it, also when the file has been removed.
type table struct {
	tableFile
	dir    directory
	reader *sstable.Reader
	// sets are the sets that have it.
	sets atomic.Int64
}

// openTable opens a table. A file that is so damaged that reading it panics is
// damaged.
func openTable(d directory, file tableFile, how vfs.OpenOption) (*table, error) {
	t := &table{tableFile: file, dir: d}
	f, err := d.fs.Open(d.file(rowsName(file.File)), how)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, d.corrupt(rowsName(file.File), "it is missing")
	}
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := t.begin(readable); err != nil {
		return nil, errors.Join(err, readable.Close())
	}
	return t, nil
}

// begin reads what says how the table is to be read.
func (t *table) begin(from objstorage.Readable) (err error) {
	defer t.guard(&err)
	if t.reader, err = sstable.NewReader(context.Background(), from, sstable.ReaderOptions{}); err != nil {
		err = t.damaged(err)
	}
	return err
}

// guard makes a panic of the library an error of the table.
func (t *table) guard(err *error) {
	if p := recover(); p != nil {
		*err = t.unreadable(p)
	}
}

func (t *table) unreadable(p any) error { return t.dir.corrupt(rowsName(t.File), "unreadable: %v", p) }

// damaged says that the table is, unless the system failed to read it.
func (t *table) damaged(err error) error { return t.dir.damaged(rowsName(t.File), err) }

// release closes the file after the last set that had it.
func (t *table) release() error {
	if t.sets.Add(-1) > 0 {
		return nil
	}
	return t.reader.Close()
}

// get returns what the table has of a key, with its value behind to.
func (t *table) get(key, to []byte) (e entry, found bool, err error) {
	defer t.guard(&err)
	w, err := t.walk()
	if err != nil {
		return e, false, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.seek(key); err != nil || !w.valid || !bytes.Equal(w.entry.key, key) {
		return e, false, err
	}
	e = w.entry
	e.key, e.value = key, append(to, e.value...)
	return e, true, nil
}

// tableWalk goes through a table in the order of keys.
type tableWalk struct {
	table *table
	rows  sstable.Iterator
	entry entry
	valid bool
}

func (t *table) walk() (*tableWalk, error) {
	rows, err := t.reader.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, t.damaged(err)
	}
	return &tableWalk{table: t, rows: rows}, nil
}

func (w *tableWalk) close() error { return w.rows.Close() }

// seek goes to the first entry whose key is not less than key.
func (w *tableWalk) seek(key []byte) error {
	if row := w.rows.SeekGE(key, 0); row != nil {
		w.arrive(row.K, row.InPlaceValue())
		return nil
	}
	return w.end()
}

// next goes to the next entry.
func (w *tableWalk) next() error {
	if row := w.rows.Next(); row != nil {
		w.arrive(row.K, row.InPlaceValue())
		return nil
	}
	return w.end()
}

// seekBefore goes to the last entry whose key is less than key.
func (w *tableWalk) seekBefore(key []byte) error {
	if row := w.rows.SeekLT(key, 0); row != nil {
		w.arrive(row.K, row.InPlaceValue())
		return nil
	}
	return w.end()
}

// previous goes to the entry before.
func (w *tableWalk) previous() error {
	if row := w.rows.Prev(); row != nil {
		w.arrive(row.K, row.InPlaceValue())
		return nil
	}
	return w.end()
}

func (w *tableWalk) arrive(key sstable.InternalKey, value []byte) {
	w.valid = true
	w.entry = entry{key: key.UserKey, value: value, version: kv.Version(key.SeqNum()),
		deleted: key.Kind() == sstable.InternalKeyKindDelete}
}

func (w *tableWalk) end() error {
	w.valid, w.entry = false, entry{}
	if err := w.rows.Error(); err != nil {
		return w.table.damaged(err)
	}
	return nil
}
