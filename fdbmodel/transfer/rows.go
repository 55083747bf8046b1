package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// ErrBadRows is returned for a prefix of rows that can't be copied.
var ErrBadRows = errors.New("not a prefix of rows outside of clusters")

// rowMark begins the key of a row that belongs to no cluster, in a copy. No key of a cluster
// begins with it, and it comes after all of them.
const rowMark = 0xff

// Limits of a page of rows.
const (
	rowPage      = 1000
	rowPageBytes = 1 << 20
)

// isRow reports whether an item belongs to no cluster. It has no kind then.
func (i *movedItem) isRow() bool { return i.kind == nil }

func (i *movedItem) isRestamped() bool { return !i.isRow() && i.kind.Moves == layout.Restamped }

// outside returns the two ranges of keys that belong to no cluster.
func outside() []kv.Range {
	clusters := layout.AllClusters()
	return []kv.Range{{Begin: []byte{}, End: clusters.Begin}, {Begin: clusters.End, End: []byte{0xff}}}
}

// rowsUnder returns the ranges of the rows under some prefixes, in order, and without overlap.
func rowsUnder(prefixes [][]byte) ([]kv.Range, error) {
	var all []kv.Range
	for _, prefix := range prefixes {
		before := len(all)
		for _, o := range outside() {
			part := o
			if len(prefix) > 0 && prefix[0] != 0xff {
				r := kv.Prefix(prefix)
				part = kv.Range{Begin: larger(r.Begin, o.Begin), End: smaller(r.End, o.End)}
			}
			if !part.Empty() {
				all = append(all, part)
			}
		}
		if len(all) == before || len(prefix) > 0 && prefix[0] == 0xff {
			return nil, fmt.Errorf("%w: %s", ErrBadRows, layout.EscapeKey(prefix))
		}
	}
	slices.SortFunc(all, func(a, b kv.Range) int { return bytes.Compare(a.Begin, b.Begin) })
	var merged []kv.Range
	for _, r := range all {
		if last := len(merged) - 1; last >= 0 && bytes.Compare(r.Begin, merged[last].End) <= 0 {
			merged[last].End = larger(merged[last].End, r.End)
			continue
		}
		merged = append(merged, r)
	}
	return merged, nil
}

func larger(a, b []byte) []byte { return slices.MaxFunc([][]byte{a, b}, bytes.Compare) }

func smaller(a, b []byte) []byte { return slices.MinFunc([][]byte{a, b}, bytes.Compare) }

// holdsRow reports whether a key lies in one of some ranges.
func holdsRow(rows []kv.Range, key []byte) bool {
	return slices.ContainsFunc(rows, func(r kv.Range) bool { return r.Contains(key) })
}

// hasOthers reports whether the store has keys outside of all clusters that are not copied.
func (s *copySource) hasOthers(ctx context.Context) (bool, error) {
	for _, o := range outside() {
		gaps := []kv.Range{o}
		for _, r := range s.rows {
			last := gaps[len(gaps)-1]
			if o.Contains(r.Begin) {
				gaps[len(gaps)-1].End = r.Begin
				gaps = append(gaps, kv.Range{Begin: r.End, End: last.End})
			}
		}
		for _, gap := range gaps {
			if gap.Empty() {
				continue
			}
			page, err := s.page(ctx, gap, kv.RangeOptions{Limit: 1})
			if err != nil || len(page.Items) > 0 {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// requireNoRows returns ErrNotEmpty if the target has rows where those of the source are to be.
func (t *copyTarget) requireNoRows(ctx context.Context, tx kv.Reader) error {
	for _, r := range t.rows {
		page, err := tx.GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil {
			return err
		}
		if len(page.Items) > 0 {
			return fmt.Errorf("%w: outside of clusters, where rows are to be written, it has %s, maybe more: use another "+
				"store, leave out the rows, or clear them if an interrupted copy has left them", ErrNotEmpty,
				layout.EscapeKey(page.Items[0].Key))
		}
	}
	return nil
}

// writeRows writes the rows of a batch. It overwrites none: a row that is there, and is another one than
// the source has, is ErrNotEmpty.
func (t *copyTarget) writeRows(ctx context.Context, tx kv.Tx) error {
	var rows []movedItem
	var there []kv.Pending[[]byte]
	for _, item := range t.items {
		if item.isRow() {
			rows, there = append(rows, item), append(there, tx.Get(item.key[1:]))
		}
	}
	for i, item := range rows {
		value, err := there[i].Wait(ctx)
		if err != nil {
			return err
		}
		if value != nil && !bytes.Equal(value, item.value) {
			return fmt.Errorf("%w: row %s, which belongs to no cluster, is there with another value: if an interrupted "+
				"copy of something else has left it, repeat that copy, or clear it; else use another store, or leave out the rows",
				ErrNotEmpty, layout.EscapeKey(item.key[1:]))
		}
		tx.Set(item.key[1:], item.value)
	}
	return nil
}

// prefixesOf returns the prefixes of rows that the head of a backup names.
func prefixesOf(names []string) (prefixes [][]byte, err error) {
	for _, name := range names {
		prefix, err := layout.UnescapeKey(name)
		if err != nil {
			return nil, err
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// namesOf is the inverse of prefixesOf.
func namesOf(prefixes [][]byte) (names []string) {
	for _, prefix := range prefixes {
		names = append(names, layout.EscapeKey(prefix))
	}
	return names
}
