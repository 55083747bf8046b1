package embedded

import (
	"bytes"
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// pageBytes is about how much of the rows is copied at a time.
const pageBytes = 256 << 10

// changeSet is what changed in the index after one version and through another.
type changeSet struct {
	store          *Store
	after, through kv.Version
	// deleted are the deletions as the index has them, and gone what is left of them to be
	// written.
	deleted []byte
	gone    graves
	// base is the tables before. fewer are the rows of them that are no more, of which
	// memory did not know.
	base  *tableSet
	fewer struct{ keys, bytes int64 }
	// lookups counts those that were looked for, average is their size otherwise.
	lookups int
	average int64
	// begin is where the walk over the rows goes on.
	begin []byte
	page  rowBuffer
	large []largeRow
	rows  int64
	// wrote receives the progress: how many rows were passed.
	wrote func(rows int)
}

// write writes the changes to a table, page by page, so that commits go on in between. There
// is no table if there are none. What changes again is left to the log.
func (c *changeSet) write(ctx context.Context, number uint64) (*table, error) {
	x := &c.store.index
	c.store.commitLock.Lock()
	c.deleted, c.base = x.deleted.through(c.through), x.base.hold()
	c.gone = graves{deleted: inOrder(c.deleted), holes: x.cold.holes.through(c.through), base: c.base}
	c.average = x.cold.bytes / max(x.cold.keys, 1)
	c.store.commitLock.Unlock()
	defer func() { _ = errors.Join(c.gone.close(), c.base.release()) }()
	c.page.reuses = true
	w, err := newTableWriter(c.store.disk.journal.dir, number)
	if err != nil {
		return nil, err
	}
	for more := true; more && err == nil; {
		if err = ctx.Err(); err != nil {
			break
		}
		var passed int
		passed, more, err = c.next()
		err = errors.Join(err, c.page.drain(func(e entry, _ bool) error { return c.add(w, e) }))
		c.wrote(passed)
	}
	if err == nil {
		err = c.buryBefore(w, nil)
	}
	c.rows = w.rows
	return w.finish(err)
}

// add writes a row after the deletions before it. One of the row itself was before it was
// written again.
func (c *changeSet) add(w *tableWriter, e entry) error {
	if err := c.buryBefore(w, e.key); err != nil {
		return err
	}
	grave, found, err := c.gone.peek()
	if err != nil {
		return err
	}
	if found && bytes.Equal(grave.key, e.key) {
		e.open = e.open || grave.open
		if err := c.gone.next(); err != nil {
			return err
		}
	}
	return c.put(w, e)
}

// buryBefore writes the deletions before a key, all of them if that is nil.
func (c *changeSet) buryBefore(w *tableWriter, key []byte) error {
	for {
		grave, found, err := c.gone.peek()
		if err != nil || !found || key != nil && bytes.Compare(grave.key, key) >= 0 {
			return err
		}
		if err := errors.Join(c.put(w, grave), c.gone.next()); err != nil {
			return err
		}
	}
}

// lookupsMost is how many rows that memory did not know a checkpoint looks for in the tables,
// to count them.
const lookupsMost = 4096

// put writes an entry. If it replaces one that memory did not know, that counts no more; after
// many, and where a table is damaged, each is taken for one of average size.
func (c *changeSet) put(w *tableWriter, e entry) error {
	if !e.open {
		return w.add(e)
	}
	old, found, size := entry{}, true, c.average
	if c.lookups < lookupsMost {
		c.lookups++
		var err error
		old, found, err = c.base.get(e.key, nil)
		switch {
		case errors.Is(err, kv.ErrCorrupt):
			found = true
		case err != nil:
			return err
		default:
			size = int64(len(e.key) + len(old.value))
		}
	}
	if found && !old.deleted {
		c.fewer.keys++
		c.fewer.bytes += size
	}
	return w.add(e)
}

// lockedLeaves is how many leaves without changes are passed under one hold of the lock of
// commits.
const lockedLeaves = 1024

// next copies the next rows that changed, and returns how many rows it passed, and false
// when nothing is left.
func (c *changeSet) next() (passed int, more bool, err error) {
	s, x := c.store, &c.store.index
	s.commitLock.Lock()
	defer s.commitLock.Unlock()
	var copied []ref
	at, visited := x.tree.seek(c.begin), 0
	for leaves := 0; !at.end(); at.settle() {
		if visited >= lockedRows || leaves >= lockedLeaves || len(c.page.bytes) >= pageBytes {
			c.begin = append(c.begin[:0], x.tree.key(at.ref())...)
			more = true
			break
		}
		if at.leaf.changed <= c.after {
			passed += at.leaf.count - at.at
			at.at = at.leaf.count
			leaves++
			continue
		}
		if copied, err = c.copy(at.ref(), copied); err != nil {
			return passed, false, err
		}
		at.at++
		passed++
		visited++
	}
	x.mu.Lock()
	for _, r := range copied {
		x.at(r).flag(flagBased)
		x.at(r).unflag(flagOpen)
	}
	x.mu.Unlock()
	return passed, more, nil
}

// copy copies a row if the checkpoint has to have it.
func (c *changeSet) copy(r ref, copied []ref) ([]ref, error) {
	x := &c.store.index
	e := x.at(r)
	if e.absent() || e.born() <= c.after || e.born() > c.through {
		return copied, nil
	}
	if e.size() >= x.largeValue {
		c.large = append(c.large, largeRow{key: bytes.Clone(e.key()), revision: r, version: e.born()})
	}
	return append(copied, r), c.page.add(x, e)
}
