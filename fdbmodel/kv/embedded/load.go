package embedded

import (
	"bytes"
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
	w, err := merged(d, tables)
	defer func() { err = errors.Join(err, w.close()) }()
	for ; err == nil && w.valid; err = w.next() {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if w.entry.deleted {
			continue
		}
		if err := l.append(w.entry); err != nil {
			return d.corrupt(rowsName(w.source().File), "%v", err)
		}
	}
	return errors.Join(err, w.complete())
}

// append adds a row of a table behind all others.
func (l *loader) append(e entry) error {
	if err := checkRow(e.key, e.value); err != nil {
		return err
	}
	x := l.index
	var r ref
	if len(e.value) < x.largeValue {
		r = newRevision(&x.arena, e.key, e.value, x.largeValue)
	} else {
		r = newSpilled(&x.arena, e.key, len(e.value))
	}
	x.at(r).flag(flagBased)
	l.put(e.key, r, e.version)
	return nil
}

func (l *loader) set(key, value []byte) error {
	if err := checkRow(key, value); err != nil {
		return err
	}
	l.put(key, newRevision(&l.index.arena, key, value, l.index.largeValue), l.version)
	return nil
}

func (l *loader) put(key []byte, r ref, v kv.Version) {
	x := l.index
	e := x.at(r)
	e.setBorn(v)
	x.gain(e)
	if replaced := x.tree.put(key, r, v); replaced != 0 {
		e.flag(x.at(replaced).flags() & flagBased)
		l.forget(replaced)
	}
}

func (l *loader) clear(key []byte) {
	if r := l.index.tree.getNear(key); r != 0 {
		l.remove(r)
	}
}

func (l *loader) clearRange(begin, end []byte) {
	x := l.index
	for {
		s := x.tree.seekNear(begin)
		if s.end() || bytes.Compare(x.at(s.ref()).key(), end) >= 0 {
			return
		}
		l.remove(s.ref())
	}
}

func (l *loader) remove(r ref) {
	x := l.index
	e := x.at(r)
	if e.based() {
		x.deleted.add(e.key(), l.version)
	}
	x.tree.delete(e.key())
	l.forget(r)
}

func (l *loader) forget(r ref) {
	l.index.lose(l.index.at(r))
	l.index.arena.free(r)
}
