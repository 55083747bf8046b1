package embedded

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// checkRow reports whether a recovered row is one that can have been
// written.
func checkRow(key, value []byte) error {
	if len(key) > kv.MaxKeySize || len(value) > kv.MaxValueSize {
		return errMalformed
	}
	return nil
}

// loadTables puts the rows of tables into the index, which goes on reading there.
func (l *loader) loadTables(d directory, files []tableFile) (err error) {
	var tables []*table
	for _, file := range files {
		t, err := openTable(d, file, vfs.RandomReadsOption)
		if err != nil {
			return errors.Join(err, newTableSet(tables...).release())
		}
		tables = append(tables, t)
	}
	l.index.base = newTableSet(tables...)
	hints, err := d.readHints()
	if err != nil {
		l.log.Warn("what lay on disk alone can't be read: other rows are taken into memory", "error", err)
	}
	w, err := merged(d, tables)
	defer func() { err = errors.Join(err, w.close()) }()
	if err != nil {
		return err
	}
	return l.loadRows(w, hints, l.most)
}

// append adds a row of a table behind all others.
func (l *loader) append(w *mergedWalk) error {
	e := w.entry
	if e.deleted {
		return nil
	}
	if err := checkRow(e.key, e.value); err != nil {
		return w.source().damaged(err)
	}
	l.index.insert(e)
	return nil
}

func (l *loader) set(key, value []byte) error {
	if err := checkRow(key, value); err != nil {
		return err
	}
	l.index.set(key, value, l.version)
	return nil
}

func (l *loader) clear(key []byte) { l.index.clear(key, l.version) }

func (l *loader) clearRange(begin, end []byte) { l.index.clearRange(begin, end, l.version) }
