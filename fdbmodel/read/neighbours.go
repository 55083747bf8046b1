package read

import (
	"bytes"
	"context"
	"sort"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Neighbours are futures whose ids were made to lie together, such as those of
// a batch. A read costs more for the request than for a row, so rows that lie
// close together are read at once.
const (
	// maxApart is the maximum distance between a future and the last one in the
	// same read. The rows between them are read in vain.
	maxApart = 4
	// maxTogether and minTogether bound the futures of one read.
	maxTogether = 32
	minTogether = 3
	// neighbourKeys is the maximum average number of keys per row in a read of
	// neighbours; if rows have more, each one is read alone.
	neighbourKeys = 4
)

// together returns how many of the leading ids are read at once.
func together(ids []layout.ID) int {
	n := 1
	for n < min(len(ids), maxTogether) && ids[n].Follows(ids[n-1]) &&
		layout.BatchItemIndex(ids[n])-layout.BatchItemIndex(ids[n-1]) <= maxApart {
		n++
	}
	if n < minTogether {
		return 1
	}
	return n
}

// Rows requests futures, each from the key that first returns to the end of its
// mutable records, without conflicts if tx adds none.
func Rows(tx kv.Reader, k layout.Keyspace, ids []layout.ID, first func(layout.ID) []byte) []Pending {
	rows := make([]Pending, 0, len(ids))
	alone := func(id layout.ID) kv.Pending[kv.Page] {
		return tx.GetRange(kv.Range{Begin: first(id), End: kv.AfterPrefix(k.StateOf(id))},
			kv.RangeOptions{Limit: layout.MaxRowKeys})
	}
	for len(ids) > 0 {
		n := together(ids)
		if n == 1 {
			rows, ids = append(rows, Pending{ids[0], k, alone(ids[0])}), ids[1:]
			continue
		}
		last := ids[n-1]
		limit := neighbourKeys * (layout.BatchItemIndex(last) - layout.BatchItemIndex(ids[0]) + 1)
		all := &sharedPage{pending: tx.GetRange(kv.Range{Begin: first(ids[0]), End: kv.AfterPrefix(k.StateOf(last))},
			kv.RangeOptions{Limit: limit})}
		for _, id := range ids[:n] {
			rows = append(rows, Pending{id, k, kv.Later(func(ctx context.Context) (kv.Page, error) {
				page, err := all.wait(ctx)
				if err != nil || !page.More {
					return pageOf(page, first(id), kv.AfterPrefix(k.StateOf(id))), err
				}
				return alone(id).Wait(ctx)
			})})
		}
		ids = ids[n:]
	}
	return rows
}

// Records requests the specs and mutable records of futures, as Record does for
// one.
func Records(tx kv.Tx, k layout.Keyspace, ids []layout.ID) []Pending {
	for _, id := range ids {
		tx.AddReadConflictRange(k.RecordRange(id))
	}
	return Rows(tx.Snapshot(), k, ids, k.Spec)
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

// pageOf returns the part of a page between two keys.
func pageOf(page kv.Page, begin, end []byte) kv.Page {
	at := func(key []byte) int {
		return sort.Search(len(page.Items), func(i int) bool { return bytes.Compare(page.Items[i].Key, key) >= 0 })
	}
	return kv.Page{Items: page.Items[at(begin):at(end)]}
}
