package inspect

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Filter says which futures List returns.
type Filter struct {
	// State is a state, or 0 for all.
	State layout.State
	// Queue and Function are a name, or empty for all.
	Queue, Function string
}

func (f *Filter) matches(row *layout.Row) bool {
	return (f.State == 0 || row.State() == f.State) && (f.Queue == "" || row.Spec.Queue == f.Queue) &&
		(f.Function == "" || row.Spec.Function == f.Function)
}

// Limits of List.
const (
	// MaxList is the maximum number of futures that one List returns.
	MaxList  = 1000
	listPage = 500
	// listScan is the maximum number of keys that one List reads.
	listScan = 20_000
	// listBytes is how many bytes of values end a List, pageBytes a page. A row has
	// less than a page.
	listBytes, pageBytes = 8 << 20, 2 << 20
)

// List returns up to limit futures that match, and the cursor of the next page,
// empty at the end. The order is that of the shards, and within a shard that of
// the ids. A selective filter may return fewer than limit, or none, with a
// cursor: List reads a bounded number of keys and bytes. It returns ErrBadCursor for an
// invalid cursor, and ErrBadName for an invalid queue name. Unreadable records
// are skipped.
func List(ctx context.Context, c *fdbmodel.Cluster, f Filter, cursor []byte, limit int,
) (rows []layout.Row, next []byte, err error) {
	if f.Queue != "" {
		if err := layout.CheckQueueName(f.Queue); err != nil {
			return nil, nil, err
		}
	}
	if limit <= 0 || limit > MaxList {
		limit = MaxList
	}
	shard := 0
	r := kv.Prefix(c.Keys().FuturesOf(0))
	if len(cursor) > 0 {
		if len(cursor) != 18 || int(cursor[0])<<8|int(cursor[1]) >= c.Config().Shards {
			return nil, nil, fmt.Errorf("%w: %x is not a cursor of this list", layout.ErrBadCursor, cursor)
		}
		shard = int(cursor[0])<<8 | int(cursor[1])
		r = kv.Prefix(c.Keys().FuturesOf(shard))
		if id := layout.ID(cursor[2:]); !id.IsZero() {
			r.Begin = kv.AfterPrefix(tuple.AppendUUID(c.Keys().FuturesOf(shard), id))
		}
	}
	for read := (scanned{}); read.keys < listScan && read.bytes < listBytes; {
		part, n, last, err := rowsPage(ctx, c, shard, r)
		if err != nil {
			return nil, nil, err
		}
		read.keys, read.bytes = read.keys+n.keys, read.bytes+n.bytes
		for i := range part {
			if part[i].Spec == nil || !f.matches(&part[i]) {
				continue
			}
			if rows = append(rows, part[i]); len(rows) == limit {
				return rows, listCursor(shard, part[i].ID), nil
			}
		}
		if !last.IsZero() {
			r.Begin = kv.AfterPrefix(tuple.AppendUUID(c.Keys().FuturesOf(shard), last))
			next = listCursor(shard, last)
			continue
		}
		if shard++; shard == c.Config().Shards {
			return rows, nil, nil
		}
		r, next = kv.Prefix(c.Keys().FuturesOf(shard)), listCursor(shard, layout.ID{})
	}
	return rows, next, nil
}

func listCursor(shard int, id layout.ID) []byte {
	return append([]byte{byte(shard >> 8), byte(shard)}, id[:]...)
}

// scanned is what a List has read.
type scanned struct{ keys, bytes int }

// rowsPage reads whole rows of a shard. last is the last id read if the page is
// not the end; a row that the page may have split is left to the next one.
func rowsPage(ctx context.Context, c *fdbmodel.Cluster, shard int, r kv.Range,
) (rows []layout.Row, read scanned, last layout.ID, err error) {
	items, more, err := readPage(ctx, c, r, listPage)
	if err != nil {
		return nil, read, layout.ID{}, err
	}
	skip := len(c.Keys().FuturesOf(shard))
	read.keys = len(items)
	for _, item := range items {
		read.bytes += len(item.Value)
		rest := tuple.NewReader(item.Key[skip:])
		id := layout.ID(rest.UUID())
		if err := rest.Err(); err != nil {
			return nil, read, layout.ID{}, fmt.Errorf("%s: %w: %w", tuple.String(item.Key), layout.ErrBadRecord, err)
		}
		if len(rows) == 0 || rows[len(rows)-1].ID != id {
			rows = append(rows, layout.Row{ID: id})
		}
		row := &rows[len(rows)-1]
		if row.Add(item, rest) != nil {
			row.Spec = nil
		}
	}
	if more && len(rows) > 1 {
		rows = rows[:len(rows)-1]
		last = rows[len(rows)-1].ID
	} else if more {
		last = rows[0].ID
	}
	return rows, read, last, nil
}
