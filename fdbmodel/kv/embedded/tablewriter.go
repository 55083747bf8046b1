package embedded

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableBlockSize is the size of the blocks of a table, and of those of its index. A
// row is read with its block and two of the index.
const tableBlockSize = 16 << 10

// tableWriter writes a table.
type tableWriter struct {
	dir    directory
	number uint64
	path   string
	rows   int64
	table  sstable.RawWriter
}

func newTableWriter(d directory, number uint64) (*tableWriter, error) {
	if err := d.inPlace(); err != nil {
		return nil, err
	}
	path := d.file(rowsName(number))
	file, err := d.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &tableWriter{dir: d, number: number, path: path,
		table: sstable.NewRawWriter(objstorageprovider.NewFileWritable(file), sstable.WriterOptions{
			TableFormat:    sstable.TableFormatPebblev4,
			Compression:    sstable.NoCompression,
			BlockSize:      tableBlockSize,
			IndexBlockSize: tableBlockSize,
		})}, nil
}

// add writes an entry, whose key is greater than those before.
func (w *tableWriter) add(e entry) error {
	kind := sstable.InternalKeyKindSet
	if e.deleted {
		kind = sstable.InternalKeyKindDelete
	}
	key := sstable.InternalKey{UserKey: e.key}
	setTrailer(&key.Trailer, uint64(e.version)<<8|uint64(kind))
	w.rows++
	return w.table.Add(key, e.value, false)
}

// setTrailer sets a field whose type has no name outside of the library.
func setTrailer[T ~uint64](trailer *T, to uint64) { *trailer = T(to) }

// finish makes the table durable and opens it, unless it failed or has no rows: then
// there is no file.
func (w *tableWriter) finish(failed error) (t *table, err error) {
	err = errors.Join(failed, w.table.Close())
	if err == nil && w.rows > 0 {
		t, err = w.open()
	}
	if t == nil {
		err = errors.Join(err, w.dir.fs.Remove(w.path))
	}
	return t, err
}

func (w *tableWriter) open() (*table, error) {
	if err := w.dir.sync(); err != nil {
		return nil, err
	}
	info, err := w.dir.fs.Stat(w.path)
	if err != nil {
		return nil, err
	}
	return openTable(w.dir, tableFile{File: w.number, Rows: w.rows, Size: info.Size()}, vfs.RandomReadsOption)
}
