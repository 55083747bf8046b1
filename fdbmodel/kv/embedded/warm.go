package embedded

import (
	"bytes"
	"hash/maphash"
	"sync"

	"github.com/futura-run/futura/internal/signal"
)

const (
	// warmMemory is how many reads of cold rows are remembered: a part becomes warm when it is
	// read from the same key on again, so that a walk through everything warms nothing.
	warmMemory = 1024
	// warmRows and warmBytes bound what becomes warm at a time.
	warmRows  = 256
	warmBytes = 1 << 20
	// warmWaiting is how many parts wait to become warm at most.
	warmWaiting = 64
)

// warming is the cold keys that were read, and those that have to become warm.
type warming struct {
	mu   sync.Mutex
	seed maphash.Seed
	// reads are the hashes of the last keys, in a ring, at is where it goes on.
	reads [warmMemory]uint64
	at    int
	// wanted are keys from which on rows have to become warm.
	wanted [][]byte
}

func (w *warming) init() { w.seed = maphash.MakeSeed() }

// read takes note that rows were read from the tables from a key on, and reports whether there
// are parts that have to become warm.
func (w *warming) read(key []byte) bool {
	hash := maphash.Bytes(w.seed, key)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.reads {
		if w.reads[i] == hash {
			w.reads[i] = 0
			if len(w.wanted) < warmWaiting {
				w.wanted = append(w.wanted, bytes.Clone(key))
			}
			return true
		}
	}
	w.reads[w.at] = hash
	w.at = (w.at + 1) % warmMemory
	return false
}

func (w *warming) next() (key []byte, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wanted) == 0 {
		return nil, false
	}
	key, w.wanted = w.wanted[0], w.wanted[1:]
	return key, true
}

// coldRead is called after rows were read from the tables, from a key on.
func (s *Store) coldRead(key []byte) {
	if !s.warming.read(key) {
		return
	}
	if s.disk.checkpointer != nil {
		signal.Send(s.disk.checkpointer.more)
		return
	}
	s.warm()
}

// warm brings rows back into memory that were read again. What can't be read stays cold: who
// reads it is told.
func (s *Store) warm() {
	warmed := false
	for key, ok := s.warming.next(); ok && s.Err() == nil; key, ok = s.warming.next() {
		s.warmFrom(key)
		warmed = true
	}
	if warmed {
		s.checkpointLock.Lock()
		defer s.checkpointLock.Unlock()
		s.evict()
	}
}

// warmPart is rows of a cold part, read from tables that have everything up to a version.
type warmPart struct {
	begin, end []byte
	rows       rowBuffer
	tables     *tableSet
	epoch      uint64
}

func (s *Store) warmFrom(key []byte) {
	x := &s.index
	x.mu.RLock()
	i := x.cold.from(key)
	if !x.isCold(key) || len(x.cold.ranges) >= coldMost {
		x.mu.RUnlock()
		return
	}
	p := &warmPart{begin: key, end: x.cold.ranges[i].End, tables: x.base.hold(), epoch: x.cold.epoch}
	x.mu.RUnlock()
	defer func() { _ = p.tables.release() }()
	if p.read() != nil {
		return
	}
	s.commitLock.Lock()
	defer s.commitLock.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.warmUp(p)
}

// read reads the first rows of the part, which ends behind them.
func (p *warmPart) read() (err error) {
	w, err := p.tables.walk()
	defer func() { _ = w.close() }()
	if err == nil {
		err = w.seek(p.begin)
	}
	for ; err == nil && w.valid && bytes.Compare(w.entry.key, p.end) < 0; err = w.next() {
		if len(p.rows.sizes) >= warmRows || p.rows.size >= warmBytes {
			p.end = bytes.Clone(w.entry.key)
			break
		}
		if !w.entry.deleted {
			p.rows.addEntry(w.entry)
		}
	}
	return err
}

// warmUp puts the rows of a part into memory that memory does not know. If a checkpoint came
// since they were read, or a part of them was cleared, it does nothing. The caller holds the
// locks of commits and of the index.
func (x *index) warmUp(p *warmPart) {
	whole := x.cold.overlapping(p.begin, p.end)
	if x.cold.epoch != p.epoch || len(x.cold.holes.overlapping(p.begin, p.end)) > 0 || len(whole) != 1 ||
		bytes.Compare(whole[0].Begin, p.begin) > 0 || bytes.Compare(whole[0].End, p.end) < 0 {
		p.rows.discard()
		return
	}
	_ = p.rows.drain(func(e entry, _ bool) error {
		if x.tree.getNear(e.key) != 0 {
			return nil
		}
		x.cold.count(-1, -int64(len(e.key)+len(e.value)))
		x.insert(e)
		return nil
	})
	x.cold.remove(p.begin, p.end)
	x.cold.count(0, 0)
}

// insert puts a row of a table into memory that does not know it. A large value stays there.
func (x *index) insert(e entry) {
	var r ref
	if len(e.value) < x.largeValue {
		r = newRevision(&x.arena, e.key, e.value, x.largeValue)
	} else {
		r = newSpilled(&x.arena, e.key, len(e.value))
	}
	row := x.at(r)
	row.setBorn(e.version)
	row.flag(flagBased)
	x.gain(row)
	x.tree.put(e.key, r, e.version)
}
