package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Filter says which futures List returns.
type Filter struct {
	// State is a state, or 0 for all.
	State layout.State
	// Queue, Function, Owner and Label are a name, or empty for all. An owner is a
	// batch.
	Queue, Function, Owner, Label string
	// Tag is a tag, or empty for all.
	Tag string
	// Error is a part of the message or the kind of the last failure, in any case of letters, or empty for all.
	Error string
	// Lane is a lane, or the zero value for all.
	Lane layout.Lane
	// Worker is a worker that holds the futures, or had an attempt at them that is still on
	// record, or empty for all.
	Worker layout.WorkerID
	// Since and Until are when the futures were submitted, Until exclusive, or the zero
	// time for no bound.
	Since, Until time.Time
	// LeftOut makes List leave out futures that have an owner, and counts those that
	// match otherwise: of a list of the newest all of them on its first page, and none on
	// others, if only State and Queue are set. Defaults to none: they are listed.
	LeftOut *int
	// Newest has List begin with those that were submitted last, over all shards. If
	// futures with an owner are listed too, and no tag is given, the order is that of
	// the shards, and within a shard that of the ids, reversed. Defaults to false.
	Newest bool
}

// ResolveFunction replaces an alias in Function as ResolveFunction of a Cluster does, whose
// errors it returns. The functions of futures that were put, and of promises,
// stay.
func (f *Filter) ResolveFunction(ctx context.Context, c *fdbmodel.Cluster) (err error) {
	if f.Function != "" && f.Function != layout.FunctionPut && f.Function != layout.FunctionPromise {
		f.Function, err = c.ResolveFunction(ctx, f.Function)
	}
	return err
}

func (f *Filter) matches(row *layout.Row) bool {
	return (f.State == 0 || row.State() == f.State) && (f.Queue == "" || row.Spec.Queue == f.Queue) &&
		(f.Function == "" || row.Spec.Function == f.Function) && (f.Owner == "" || row.Spec.Owner == f.Owner) &&
		(f.Label == "" || row.Spec.Label == f.Label) && (f.Tag == "" || slices.Contains(row.Spec.Tags, f.Tag)) &&
		(f.Lane.IsZero() || row.Spec.Lane == f.Lane) && (f.Error == "" || f.matchesError(row.Exception)) &&
		(f.Worker == "" || slices.Contains(workersOf(row), string(f.Worker))) &&
		f.isOfTime(layout.AgeOf(row.ID, row.Spec).Millis)
}

func (f *Filter) matchesError(e *layout.Exception) bool {
	contains := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(f.Error)) }
	return e != nil && (contains(e.Message) || contains(string(e.Kind)))
}

// workersOf are the workers that have a future, or had an attempt at it, each once.
func workersOf(row *layout.Row) (ids []string) {
	add := func(w layout.WorkerID) {
		if w != "" && !slices.Contains(ids, string(w)) {
			ids = append(ids, string(w))
		}
	}
	if row.Claim != nil {
		add(row.Claim.Worker)
	}
	if row.Result != nil {
		add(row.Result.Worker)
	}
	if row.Exception != nil {
		for _, w := range row.Exception.FailedOn {
			add(w)
		}
	}
	for _, a := range row.EndedAttempts() {
		add(a.Worker)
	}
	return ids
}

func (f *Filter) check() error {
	var err error
	if f.Queue != "" {
		err = layout.CheckQueueName(f.Queue)
	}
	if f.Tag != "" {
		err = errors.Join(err, layout.CheckTag(f.Tag))
	}
	if !f.Lane.IsZero() {
		err = errors.Join(err, f.Lane.Check())
	}
	return err
}

// isOfTime reports whether a time in milliseconds of Unix time is within the bounds.
func (f *Filter) isOfTime(ms int64) bool {
	return (f.Since.IsZero() || ms >= f.Since.UnixMilli()) && (f.Until.IsZero() || ms < f.Until.UnixMilli())
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
// empty at the end: that page has futures, unless List has read as many keys or
// bytes as it may. Then it returns fewer than limit, or none, with a cursor. The
// order is that of the shards, and within a shard that of the ids, which is that of
// the submits for ids that were drawn. It returns ErrBadCursor for an invalid
// cursor, and ErrBadName for an invalid queue name, tag or lane. Unreadable records are
// skipped. A list of the newest reads what has the tag, or is in the state failed,
// claimed, ready or delayed (where few are), and little else; other lists of the newest read
// what was submitted between Since and Until, whether it matches or not, and lists in the order
// of the shards read all futures.
func List(ctx context.Context, c *fdbmodel.Cluster, f Filter, cursor []byte, limit int,
) (rows []layout.Row, next []byte, err error) {
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	if limit <= 0 || limit > MaxList {
		limit = MaxList
	}
	if f.Newest && (f.Tag != "" || f.LeftOut != nil && f.Owner == "") {
		return listNewest(ctx, c, f, cursor, limit)
	}
	shard := 0
	r := kv.Prefix(c.Keys().Shard(0, layout.SubFutures))
	if len(cursor) > 0 {
		if len(cursor) != 18 || int(cursor[0])<<8|int(cursor[1]) >= c.Config().Shards {
			return nil, nil, fmt.Errorf("%w: %x is not a cursor of this list", layout.ErrBadCursor, cursor)
		}
		shard = int(cursor[0])<<8 | int(cursor[1])
		r = kv.Prefix(c.Keys().Shard(shard, layout.SubFutures))
		if id := layout.ID(cursor[2:]); !id.IsZero() {
			f.skip(c, shard, id, &r)
		}
	}
	left := 0
	defer func() {
		if f.LeftOut != nil {
			*f.LeftOut += left
		}
	}()
	// Behind a full page List goes on until it knows whether there is another.
	var full []byte
	leftByFull := 0
	for read := (scanned{}); read.keys < listScan && read.bytes < listBytes; {
		part, n, last, err := rowsPage(ctx, c, shard, r,
			kv.RangeOptions{Limit: listPage, Bytes: pageBytes, Reverse: f.Newest})
		if err != nil {
			return nil, nil, err
		}
		read.keys, read.bytes = read.keys+n.keys, read.bytes+n.bytes
		for i := range part {
			switch row := &part[i]; {
			case row.Spec == nil || !f.matches(row):
			case f.LeftOut != nil && row.Spec.Held():
				left++
			case full != nil:
				left = leftByFull
				return rows, full, nil
			default:
				if rows = append(rows, *row); len(rows) == limit {
					full, leftByFull = listCursor(shard, row.ID), left
				}
			}
		}
		if !last.IsZero() {
			f.skip(c, shard, last, &r)
			next = listCursor(shard, last)
			continue
		}
		if shard++; shard == c.Config().Shards {
			return rows, nil, nil
		}
		r, next = kv.Prefix(c.Keys().Shard(shard, layout.SubFutures)), listCursor(shard, layout.ID{})
	}
	if full != nil {
		next, left = full, leftByFull
	}
	return rows, next, nil
}

// skip has a range of a shard go on behind a future.
func (f *Filter) skip(c *fdbmodel.Cluster, shard int, id layout.ID, r *kv.Range) {
	row := tuple.AppendUUID(c.Keys().Shard(shard, layout.SubFutures), id)
	if f.Newest {
		r.End = row
		return
	}
	r.Begin = kv.AfterPrefix(row)
}

func listCursor(shard int, id layout.ID) []byte {
	return append([]byte{byte(shard >> 8), byte(shard)}, id[:]...)
}

// scanned is what a List has read.
type scanned struct{ keys, bytes int }

// rowsPage reads whole rows of a shard. last is the last id read if the page is
// not the end; a row that the page may have split is left to the next one. Keys that begin
// with no id are skipped: a check names them.
func rowsPage(ctx context.Context, c *fdbmodel.Cluster, shard int, r kv.Range, o kv.RangeOptions,
) (rows []layout.Row, read scanned, last layout.ID, err error) {
	skip := len(c.Keys().Shard(shard, layout.SubFutures))
	for {
		items, more, err := readSome(ctx, c, r, o)
		if err != nil {
			return nil, read, layout.ID{}, err
		}
		read.keys += len(items)
		rows = rows[:0]
		var foreign []byte // the last key before a row that may be split
		unreadable := false
		for _, item := range items {
			read.bytes += len(item.Value)
			rest := tuple.NewReader(item.Key[skip:])
			id := layout.ID(rest.UUID())
			if rest.Err() != nil {
				foreign = item.Key
				continue
			}
			if len(rows) == 0 || rows[len(rows)-1].ID != id {
				rows, unreadable = append(rows, layout.Row{ID: id}), false
			}
			row := &rows[len(rows)-1]
			if unreadable = unreadable || row.Add(item, rest) != nil; unreadable {
				row.Spec = nil // whichever of its keys comes first
			}
		}
		switch n := len(rows); {
		case !more:
			return rows, read, layout.ID{}, nil
		case n > 1:
			return rows[:n-1], read, rows[n-2].ID, nil
		case n == 1 && (foreign == nil || bytes.Equal(foreign, items[len(items)-1].Key)):
			return rows, read, rows[0].ID, nil
		case read.keys >= listScan:
			return nil, read, layout.ID{}, fmt.Errorf("%s: %w: it and keys before it begin with no id: see futura check",
				tuple.String(foreign), layout.ErrBadRecord)
		case o.Reverse:
			r.End = foreign
		default:
			r.Begin = kv.After(foreign)
		}
	}
}
