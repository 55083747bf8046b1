package embedded

import "bytes"

// graves are the rows that a checkpoint deletes from the tables, in the order of keys: those
// that were deleted, and what the tables have in holes.
type graves struct {
	deleted []entry
	holes   []hole
	base    *tableSet
	// walk is through the first of the holes, nil before it begins.
	walk *mergedWalk
}

// peek returns the next one, which is valid until next is called, and false at the end. Those
// of holes are open: the tables know what was there.
func (g *graves) peek() (e entry, found bool, err error) {
	if e, found, err = g.inHole(); err != nil {
		return e, false, err
	}
	if len(g.deleted) > 0 && (!found || bytes.Compare(g.deleted[0].key, e.key) <= 0) {
		both := found && bytes.Equal(g.deleted[0].key, e.key)
		e, found = g.deleted[0], true
		e.open = e.open || both
	}
	return e, found, nil
}

// next goes on behind what peek returned.
func (g *graves) next() error {
	e, _, err := g.inHole()
	if err != nil {
		return err
	}
	if len(g.deleted) > 0 && (e.key == nil || bytes.Compare(g.deleted[0].key, e.key) <= 0) {
		both := bytes.Equal(g.deleted[0].key, e.key)
		if g.deleted = g.deleted[1:]; e.key == nil || !both {
			return nil
		}
	}
	return g.walk.next()
}

// inHole returns the next row of the tables in a hole.
func (g *graves) inHole() (e entry, found bool, err error) {
	for len(g.holes) > 0 {
		if g.walk == nil {
			if g.walk, err = g.base.walk(); err != nil {
				return e, false, err
			}
			if err := g.walk.seek(g.holes[0].begin); err != nil {
				return e, false, err
			}
		}
		w := g.walk
		switch {
		case w.valid && bytes.Compare(w.entry.key, g.holes[0].begin) < 0:
			err = w.seek(g.holes[0].begin)
		case !w.valid || bytes.Compare(w.entry.key, g.holes[0].end) >= 0:
			g.holes = g.holes[1:]
		case w.entry.deleted:
			err = w.next()
		default:
			return entry{key: w.entry.key, version: g.holes[0].version, deleted: true, open: true}, true, nil
		}
		if err != nil {
			return e, false, err
		}
	}
	return e, false, nil
}

func (g *graves) close() error {
	if g.walk == nil {
		return nil
	}
	return g.walk.close()
}
