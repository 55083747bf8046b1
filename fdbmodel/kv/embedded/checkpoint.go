package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	rowsBlockSize = 32 << 10
	// pageBytes is about how much of the rows is copied at a time.
	pageBytes = 256 << 10
)

// writeRows writes the newest value of each row to a file and syncs it. Rows
// may change meanwhile: the log has what did. wrote receives the progress.
func writeRows(ctx context.Context, d directory, number uint64, x *index, wrote func(bytes int),
) (c rowsFile, large []largeRow, err error) {
	path := d.file(rowsName(number))
	file, err := d.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return c, nil, err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(file), sstable.WriterOptions{
		TableFormat: sstable.TableFormatPebblev4,
		Compression: sstable.NoCompression,
		BlockSize:   rowsBlockSize,
	})
	rows, large, err := addRows(ctx, w, x, wrote)
	if closing := w.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = d.sync()
	}
	if err != nil {
		return c, nil, errors.Join(err, d.fs.Remove(path))
	}
	info, err := d.fs.Stat(path)
	if err != nil {
		return c, nil, err
	}
	return rowsFile{File: number, Rows: rows, Size: info.Size()}, large, nil
}

// addRows copies the rows page by page, so that commits go on in between.
func addRows(ctx context.Context, w *sstable.Writer, x *index, wrote func(bytes int),
) (rows int64, large []largeRow, err error) {
	everything := cursor{index: x, version: math.MaxInt64, end: []byte{0xff}}
	page := rowBuffer{reuses: true}
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return rows, nil, err
		}
		var failed error
		more, err = everything.next(func(r ref, e revision) bool {
			if failed = page.add(x, e); e.size() >= x.largeValue {
				large = append(large, largeRow{key: bytes.Clone(e.key()), revision: r, version: e.born()})
			}
			return failed == nil && len(page.bytes) < pageBytes
		})
		size := 0
		written := page.drain(func(key, value []byte, _ bool) error {
			rows++
			size += len(key) + len(value)
			return w.Set(key, value)
		})
		if err := errors.Join(err, failed, written); err != nil {
			return rows, nil, err
		}
		wrote(size)
	}
	return rows, large, nil
}

// loadRows reads a checkpoint.
func loadRows(d directory, c rowsFile, into *loader) (err error) {
	name := rowsName(c.File)
	file, err := d.fs.Open(d.file(name), vfs.SequentialReadsOption)
	if errors.Is(err, fs.ErrNotExist) {
		return d.corrupt(name, "it is missing")
	}
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	before := into.index.tableBytes
	rows, err := readRows(readable, into, c.File)
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return err
	}
	if err != nil {
		return d.corrupt(name, "%v", err)
	}
	if rows != c.Rows {
		return d.corrupt(name, "it has %d rows instead of %d", rows, c.Rows)
	}
	if into.index.tableBytes == before {
		return nil
	}
	f, err := openTable(d, c.File)
	if err != nil {
		return err
	}
	into.index.valueFiles[c.File], into.index.newestTable = f, c.File
	return nil
}

// readRows adds the rows of a table, in order, and closes the file. A table
// that is so damaged that reading it panics is damaged.
func readRows(file objstorage.Readable, into *loader, number uint64) (rows int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("unreadable: %v", p)
		}
	}()
	table, err := sstable.NewReader(context.Background(), file, sstable.ReaderOptions{})
	if err != nil {
		return 0, errors.Join(err, file.Close())
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	it, err := table.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for entry := it.First(); entry != nil; entry = it.Next() {
		value, _, err := entry.Value(nil)
		if err != nil {
			return rows, err
		}
		if err := into.append(entry.K.UserKey, value, number); err != nil {
			return rows, err
		}
		rows++
	}
	return rows, it.Error()
}
