package read

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Neighbours are futures whose ids were made to lie together, such as those of
// a batch, or of one submit. A read costs more for the request than for a row, so rows that lie
// close together are read at once.
const (
	// MaxTogether is the maximum number of futures in one read, and minTogether the
	// minimum.
	MaxTogether = 32
	minTogether = 3
	// maxApart is the maximum distance between a future and the last one in the
	// same read. The rows between them are read in vain.
	maxApart = 4
	// neighbourKeys is the maximum average number of keys per row in a read of
	// neighbours; if rows have more, each one is read alone.
	neighbourKeys = 6
)

// together returns how many of the leading ids are read at once, without rows of unreadable futures, and
// how many rows may lie between the first and the last of them.
func together(ids, unreadable []layout.ID) (n, span int) {
	n, span = 1, 1
	for ; n < min(len(ids), MaxTogether); n++ {
		apart, known := ids[n].Apart(ids[n-1])
		if !known || apart > maxApart || apart > 1 && anyBetween(unreadable, ids[n-1], ids[n]) {
			break
		}
		span += apart
	}
	if n < minTogether {
		return 1, 1
	}
	return n, span
}

// anyBetween reports whether one of some ids lies between two others.
func anyBetween(ids []layout.ID, first, last layout.ID) bool {
	return slices.ContainsFunc(ids, func(id layout.ID) bool {
		return bytes.Compare(first[:], id[:]) < 0 && bytes.Compare(id[:], last[:]) < 0
	})
}

// Rows requests futures, each from the key that first returns to the end of its
// mutable records, without conflicts if tx adds none.
func Rows(tx kv.Reader, k layout.Keyspace, ids []layout.ID, first func(layout.ID) []byte) []Pending {
	return rowsBeside(tx, k, ids, first, nil)
}

func rowsBeside(tx kv.Reader, k layout.Keyspace, ids []layout.ID, first func(layout.ID) []byte,
	unreadable []layout.ID,
) []Pending {
	rows := make([]Pending, 0, len(ids))
	alone := func(id layout.ID) kv.Pending[kv.Page] {
		return tx.GetRange(kv.Range{Begin: first(id), End: kv.AfterPrefix(k.StateOf(id))},
			kv.RangeOptions{Limit: layout.MaxRowKeys})
	}
	for len(ids) > 0 {
		n, span := together(ids, unreadable)
		if n == 1 {
			rows, ids = append(rows, Pending{ids[0], k, alone(ids[0])}), ids[1:]
			continue
		}
		last := ids[n-1]
		end := kv.AfterPrefix(k.StateOf(last))
		after := end[k.RowLength(last):] // what no part of a row has behind the row's prefix
		all := &sharedPage{pending: tx.GetRange(kv.Range{Begin: first(ids[0]), End: end},
			kv.RangeOptions{Limit: neighbourKeys * span})}
		for _, id := range ids[:n] {
			rows = append(rows, Pending{id, k, kv.Later(func(ctx context.Context) (kv.Page, error) {
				page, err := all.wait(ctx)
				if err != nil || !page.More {
					return pageOf(page, first(id), k.RowLength(id), after), err
				}
				return alone(id).Wait(ctx)
			})})
		}
		ids = ids[n:]
	}
	return rows
}

// Users requests the keys of the first futures that use the results of others, at
// most limit of each one, without conflicts if tx adds none.
func Users(tx kv.Reader, k layout.Keyspace, ids []layout.ID, limit int) []kv.Pending[kv.Page] {
	users := make([]kv.Pending[kv.Page], 0, len(ids))
	alone := func(id layout.ID) kv.Pending[kv.Page] {
		return tx.GetRange(kv.Prefix(k.DependantsOf(id)), kv.RangeOptions{Limit: limit})
	}
	for len(ids) > 0 {
		n, span := together(ids, nil)
		if n == 1 {
			users, ids = append(users, alone(ids[0])), ids[1:]
			continue
		}
		between := kv.Range{Begin: k.DependantsOf(ids[0]), End: kv.AfterPrefix(k.DependantsOf(ids[n-1]))}
		all := &sharedPage{pending: tx.GetRange(between, kv.RangeOptions{Limit: neighbourKeys * span})}
		for _, id := range ids[:n] {
			users = append(users, kv.Later(func(ctx context.Context) (kv.Page, error) {
				page, err := all.wait(ctx)
				switch {
				case err != nil:
					return page, err
				case page.More:
					return alone(id).Wait(ctx)
				}
				begin := k.DependantsOf(id)
				page = pageOf(page, begin, len(begin), nil)
				if page.More = len(page.Items) > limit; page.More {
					page.Items = page.Items[:limit]
				}
				return page, nil
			}))
		}
		ids = ids[n:]
	}
	return users
}

// Records requests the specs and mutable records of futures, as Record does for
// one. unreadable are futures that the transaction can't read any more, since it wrote a record with a
// versionstamp of them: no read touches them.
func Records(tx kv.Tx, k layout.Keyspace, ids []layout.ID, unreadable ...layout.ID) []Pending {
	for _, id := range ids {
		tx.AddReadConflictRange(k.RecordRange(id))
	}
	return rowsBeside(tx.Snapshot(), k, ids, k.Spec, unreadable)
}

// sharedPage is the answer to a read that several futures share.
type sharedPage struct {
	pending kv.Pending[kv.Page]
	waited  bool
	page    kv.Page
	err     error
}

func (s *sharedPage) wait(ctx context.Context) (kv.Page, error) {
	if !s.waited {
		s.waited = true
		s.page, s.err = s.pending.Wait(ctx)
	}
	return s.page, s.err
}

// pageOf returns the part of a page that begins with a key and goes on as long as keys
// are the same in so many bytes, and what follows those is less than after, if that is
// not nil.
func pageOf(page kv.Page, begin []byte, same int, after []byte) kv.Page {
	first := sort.Search(len(page.Items), func(i int) bool { return bytes.Compare(page.Items[i].Key, begin) >= 0 })
	end := first
	for ; end < len(page.Items); end++ {
		key := page.Items[end].Key
		if !bytes.HasPrefix(key, begin[:same]) || after != nil && bytes.Compare(key[same:], after) >= 0 {
			break
		}
	}
	return kv.Page{Items: page.Items[first:end]}
}
