package embedded

import (
	"bytes"
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// tableSet is the tables of a store at one time, the oldest first. Of a key, the
// newest table that has it counts. Whoever reads a set holds it, so that it can be
// read as it was, whatever is written and merged meanwhile.
type tableSet struct {
	tables []*table
	// users are those who hold it, and the index while it is the newest.
	users atomic.Int64
	// closed says that it takes the place of the tables of a store that was closed: nothing is read there.
	closed bool
}

// newTableSet makes a set that its caller holds.
func newTableSet(tables ...*table) *tableSet {
	s := &tableSet{tables: tables}
	for _, t := range tables {
		t.sets.Add(1)
	}
	s.users.Store(1)
	return s
}

func (s *tableSet) hold() *tableSet {
	s.users.Add(1)
	return s
}

func (s *tableSet) release() error {
	if s.users.Add(-1) > 0 {
		return nil
	}
	var err error
	for _, t := range s.tables {
		err = errors.Join(err, t.release())
	}
	return err
}

// get returns what the tables have of a key, with its value behind to. A row that
// was deleted is found as such, as long as a table has that.
func (s *tableSet) get(key, to []byte) (e entry, found bool, err error) {
	if s.closed {
		return e, false, kv.ErrClosed
	}
	for i := len(s.tables) - 1; i >= 0; i-- {
		if e, found, err = s.tables[i].get(key, to); found || err != nil {
			return e, found, err
		}
	}
	return e, false, nil
}

// read returns the value of a row that the tables have, behind to.
func (s *tableSet) read(key []byte, v kv.Version, to []byte) ([]byte, error) {
	e, found, err := s.get(key, to)
	if err == nil && (!found || e.deleted || e.version != v) {
		newest := s.tables[len(s.tables)-1]
		err = newest.dir.corrupt(rowsName(newest.File), "a value is neither there nor in an older table")
	}
	if err != nil {
		return nil, err
	}
	return e.value, nil
}

// find returns the value that the tables have of a key, behind to, and nil for none.
func (s *tableSet) find(key, to []byte) ([]byte, error) {
	e, found, err := s.get(key, to)
	if err != nil || !found || e.deleted {
		return nil, err
	}
	if e.value == nil {
		return []byte{}, nil
	}
	return e.value, nil
}

// mergedWalk goes through tables together, and finds of each key what the newest
// table has.
type mergedWalk struct {
	// walks are through the tables, the newest first, and rows how many entries each
	// has passed.
	walks []*tableWalk
	rows  []int64
	// owns says that the tables are closed with the walk.
	owns    bool
	reverse bool
	// moving is the table that is being read.
	moving *table
	// at are the walks that have come to the key of the entry.
	at    []int
	entry entry
	valid bool
}

// merged begins a walk through all of tables, in files of its own. The walk must be closed,
// also after an error.
func merged(d directory, tables []*table) (m *mergedWalk, err error) {
	m = &mergedWalk{owns: true}
	for i := len(tables) - 1; i >= 0; i-- {
		t, err := openTable(d, tables[i].tableFile, vfs.SequentialReadsOption)
		if err != nil {
			return m, err
		}
		t.sets.Store(1)
		if err := m.add(t); err != nil {
			return m, errors.Join(err, t.release())
		}
	}
	return m, m.seek(nil)
}

// walk begins a walk through the tables of a set, which the caller holds. The walk must be
// closed, also after an error.
func (s *tableSet) walk() (m *mergedWalk, err error) {
	m = &mergedWalk{}
	if s.closed {
		return m, kv.ErrClosed
	}
	for i := len(s.tables) - 1; i >= 0; i-- {
		if err := m.add(s.tables[i]); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (m *mergedWalk) add(t *table) error {
	w, err := t.walk()
	if err == nil {
		m.walks, m.rows = append(m.walks, w), append(m.rows, 0)
	}
	return err
}

func (m *mergedWalk) close() error {
	var err error
	for _, w := range m.walks {
		if err = errors.Join(err, w.close()); m.owns {
			err = errors.Join(err, w.table.release())
		}
	}
	return err
}

// seek goes to the first key that is not less than key.
func (m *mergedWalk) seek(key []byte) (err error) {
	defer m.guard(&err)
	m.reverse = false
	for i, w := range m.walks {
		m.moving = w.table
		if err := w.seek(key); err != nil {
			return err
		}
		m.count(i)
	}
	m.choose()
	return nil
}

// seekBefore goes to the last key that is less than key, and lets the walk go back.
func (m *mergedWalk) seekBefore(key []byte) (err error) {
	defer m.guard(&err)
	m.reverse = true
	for _, w := range m.walks {
		m.moving = w.table
		if err := w.seekBefore(key); err != nil {
			return err
		}
	}
	m.choose()
	return nil
}

// next goes to the next key.
func (m *mergedWalk) next() (err error) {
	defer m.guard(&err)
	for _, i := range m.at {
		w := m.walks[i]
		m.moving = w.table
		if m.reverse {
			err = w.previous()
		} else {
			err = w.next()
		}
		if err != nil {
			return err
		}
		m.count(i)
	}
	m.choose()
	return nil
}

func (m *mergedWalk) count(i int) {
	if m.walks[i].valid {
		m.rows[i]++
	}
}

// guard makes a panic of the library an error of the table.
func (m *mergedWalk) guard(err *error) {
	if p := recover(); p != nil {
		*err = m.moving.unreadable(p)
	}
}

// choose finds the least of the keys that the walks have come to, or the greatest.
func (m *mergedWalk) choose() {
	m.at, m.valid = m.at[:0], false
	for i, w := range m.walks {
		if !w.valid {
			continue
		}
		order := -1
		if m.valid {
			order = bytes.Compare(w.entry.key, m.entry.key)
			if m.reverse {
				order = -order
			}
		}
		if order < 0 {
			m.at, m.entry, m.valid = m.at[:0], w.entry, true
		}
		if order <= 0 {
			m.at = append(m.at, i)
		}
	}
}

// source is the table that has the entry.
func (m *mergedWalk) source() *table { return m.walks[m.at[0]].table }

// complete returns kv.ErrCorrupt unless each table had as many entries as the manifest
// says, once all were passed.
func (m *mergedWalk) complete() error {
	for i, w := range m.walks {
		if m.rows[i] != w.table.Rows {
			return w.table.dir.corrupt(rowsName(w.table.File), "it has %d rows instead of %d", m.rows[i], w.table.Rows)
		}
	}
	return nil
}
