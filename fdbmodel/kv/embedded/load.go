package embedded

import (
	"bytes"

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

// append adds a row behind all others, whose value can be read in a file.
func (l *loader) append(key, value []byte, file uint64) error {
	if err := checkRow(key, value); err != nil {
		return err
	}
	x := l.index
	if len(value) < x.largeValue {
		l.put(key, newRevision(&x.arena, key, value, x.largeValue))
		return nil
	}
	l.put(key, newSpilled(&x.arena, key, len(value), file))
	return nil
}

func (l *loader) set(key, value []byte) error {
	if err := checkRow(key, value); err != nil {
		return err
	}
	l.put(key, newRevision(&l.index.arena, key, value, l.index.largeValue))
	return nil
}

func (l *loader) put(key []byte, r ref) {
	x := l.index
	x.gain(x.at(r))
	if replaced := x.tree.put(key, r); replaced != 0 {
		l.forget(replaced)
	}
}

func (l *loader) clear(key []byte) {
	x := l.index
	if r := x.tree.getNear(key); r != 0 {
		x.tree.delete(key)
		l.forget(r)
	}
}

func (l *loader) clearRange(begin, end []byte) {
	x := l.index
	for {
		s := x.tree.seekNear(begin)
		if s.end() || bytes.Compare(x.at(s.ref()).key(), end) >= 0 {
			return
		}
		r := s.ref()
		x.tree.delete(x.at(r).key())
		l.forget(r)
	}
}

func (l *loader) forget(r ref) {
	l.index.lose(l.index.at(r))
	l.index.arena.free(r)
}
