package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const rowsBlockSize = 32 << 10

// writeRows writes the newest value of each row to a file and syncs it. Rows
// may change meanwhile: the log has what did. wrote is told of the progress.
func writeRows(ctx context.Context, d directory, number uint64, x *index, wrote func(bytes int),
) (c rowsFile, err error) {
	path := d.file(rowsName(number))
	file, err := d.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return c, err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(file), sstable.WriterOptions{
		TableFormat: sstable.TableFormatPebblev4,
		Compression: sstable.NoCompression,
		BlockSize:   rowsBlockSize,
	})
	rows, err := addRows(ctx, w, x, wrote)
	if closing := w.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = d.sync()
	}
	if err != nil {
		return c, errors.Join(err, d.fs.Remove(path))
	}
	info, err := d.fs.Stat(path)
	if err != nil {
		return c, err
	}
	return rowsFile{File: number, Rows: rows, Size: info.Size()}, nil
}

// addRows copies the rows page by page, so that commits go on in between.
func addRows(ctx context.Context, w *sstable.Writer, x *index, wrote func(bytes int),
) (rows int64, err error) {
	everything := cursor{index: x, version: math.MaxInt64, floor: func() kv.Version { return 0 }, end: view(firstIllegal)}
	page := make([]struct{ key, value string }, 0, lockedRows)
	var key, value []byte
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return rows, err
		}
		page = page[:0]
		more, err = everything.next(func(key, value string) bool {
			page = append(page, struct{ key, value string }{key, value})
			return true
		})
		if err != nil {
			return rows, err
		}
		size := 0
		for _, entry := range page {
			key, value = append(key[:0], entry.key...), append(value[:0], entry.value...)
			if err := w.Set(key, value); err != nil {
				return rows, err
			}
			rows++
			size += len(key) + len(value)
		}
		wrote(size)
	}
	return rows, nil
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
	rows, err := readRows(readable, into)
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return err
	}
	if err != nil {
		return d.corrupt(name, "%v", err)
	}
	if rows != c.Rows {
		return d.corrupt(name, "it has %d rows instead of %d", rows, c.Rows)
	}
	return nil
}

// readRows adds the rows of a table, in order, and closes the file. A table
// that is so damaged that reading it panics is damaged.
func readRows(file objstorage.Readable, into *loader) (rows int64, err error) {
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
		into.append(entry.K.UserKey, value)
		rows++
	}
	return rows, it.Error()
}
