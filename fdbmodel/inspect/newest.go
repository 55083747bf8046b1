package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Limits of a list of the newest.
const (
	// streamKeys and streamBytes are what one read of one shard returns at most: more
	// than one row.
	streamKeys, streamBytes = layout.MaxRowKeys + 37, 256 << 10
	// fewKeys is how many keys a place may have for a list of what waits there to read
	// all of them.
	fewKeys = 2000
	// fetchRows is how many rows are read at a time.
	fetchRows = 200
	// aheadOfClocks is how far in the future ids are looked for. Those that are hashes
	// are mostly beyond, and listed by keys of their own.
	aheadOfClocks = 5 * 365 * 24 * time.Hour
)

// entry is a future that a list comes to. Its row is nil until it is read.
type entry struct {
	age layout.Age
	row *layout.Row
}

// stream is what one shard has for a list, the newest first.
type stream struct {
	shard int
	// index is the prefix of a list of keys, nil for the rows of futures themselves.
	index  []byte
	left   kv.Range
	buffer []entry
	over   bool
}

// newest is a list of the newest first, over all shards.
type newest struct {
	cluster *fdbmodel.Cluster
	filter  Filter
	streams []*stream
	from    layout.Age // exclusive
	read    scanned
}

func (n *newest) exhausted() bool { return n.read.keys >= listScan || n.read.bytes >= listBytes }

// listNewest is List for a filter with Newest and LeftOut, or with a tag.
func listNewest(ctx context.Context, c *fdbmodel.Cluster, f Filter, cursor []byte, limit int,
) (rows []layout.Row, next []byte, err error) {
	n := &newest{cluster: c, filter: f, from: layout.Youngest()}
	if len(cursor) > 0 {
		if n.from, err = ageOfCursor(cursor); err != nil {
			return nil, nil, err
		}
	}
	if !f.Until.IsZero() {
		if until := (layout.Age{Millis: f.Until.UnixMilli()}); until.Compare(n.from) < 0 {
			n.from = until
		}
	}
	if err := n.open(ctx); err != nil {
		return nil, nil, err
	}
	last, left := n.from, 0
	counted := n.countsAll()
	if counted && len(cursor) == 0 {
		if left, err = n.countItems(ctx); err != nil {
			return nil, nil, err
		}
	}
	var full []byte // the cursor behind a full page
	leftByFull := 0
	for !n.exhausted() {
		batch, err := n.take(ctx, min(fetchRows, limit-len(rows)+1))
		if err != nil {
			return nil, nil, err
		}
		if len(batch) == 0 {
			n.leftOut(left)
			return rows, nil, nil // a page that was full had nothing behind it
		}
		for i := range batch {
			row := batch[i].row
			last = batch[i].age
			switch {
			case row == nil || row.Spec == nil || !f.matches(row):
			case f.LeftOut != nil && row.Spec.Held():
				if !counted {
					left++
				}
			case full != nil:
				n.leftOut(leftByFull)
				return rows, full, nil
			default:
				if rows = append(rows, *row); len(rows) == limit {
					full, leftByFull = cursorOfAge(last), left
				}
			}
		}
	}
	if full != nil {
		n.leftOut(leftByFull)
		return rows, full, nil
	}
	n.leftOut(left)
	return rows, cursorOfAge(last), nil
}

// countsAll reports whether the first page counts what the whole list leaves out, and later pages nothing.
func (n *newest) countsAll() bool {
	f := &n.filter
	apart := f.Tag + f.Function + f.Label + f.Error + f.Lane.Kind + string(f.Worker)
	return f.LeftOut != nil && apart == "" && f.Since.IsZero() && f.Until.IsZero()
}

// countItems returns how many futures with an owner the whole list leaves out, as far
// as the counters tell.
func (n *newest) countItems(ctx context.Context) (items int, err error) {
	f := &n.filter
	counts, err := n.cluster.Counts(ctx)
	for key, number := range counts {
		if key.Owner != "" && (f.State == 0 || f.State == key.State) && (f.Queue == "" || f.Queue == key.Queue) {
			items += int(number)
		}
	}
	return items, err
}

func (n *newest) leftOut(left int) {
	if n.filter.LeftOut != nil {
		*n.filter.LeftOut += left
	}
}

func cursorOfAge(a layout.Age) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(a.Millis)), a.ID[:]...)
}

func ageOfCursor(cursor []byte) (layout.Age, error) {
	if len(cursor) != 8+len(layout.ID{}) {
		return layout.Age{}, fmt.Errorf("%w: %x is not a cursor of this list", layout.ErrBadCursor, cursor)
	}
	return layout.Age{Millis: int64(binary.BigEndian.Uint64(cursor)), ID: layout.ID(cursor[8:])}, nil
}

// open decides where the list is read from: the shortest of what has all that match.
func (n *newest) open(ctx context.Context) error {
	keys, f := n.cluster.Keys(), &n.filter
	shards := n.cluster.Config().Shards
	if f.Tag == "" && f.State != layout.Failed {
		few, err := n.waiting(ctx)
		if err != nil || few != nil {
			n.streams = few
			return err
		}
	}
	for shard := range shards {
		switch {
		case f.Tag != "":
			n.addIndex(shard, keys.ListedTag(shard, f.Tag))
		case f.State == layout.Failed:
			n.addIndex(shard, keys.ListedFailed(shard))
		default:
			n.addIndex(shard, keys.ListedKeyed(shard))
			n.addRows(shard)
		}
	}
	return nil
}

// since is the lowest time that is listed.
func (n *newest) since() int64 {
	if n.filter.Since.IsZero() {
		return 0
	}
	return n.filter.Since.UnixMilli()
}

func (n *newest) addIndex(shard int, prefix []byte) {
	r := kv.Prefix(prefix)
	if n.since() > 0 {
		r.Begin = layout.Listed(prefix, layout.Age{Millis: n.since()})
	}
	if n.from != layout.Youngest() {
		r.End = layout.Listed(prefix, n.from)
	}
	n.add(&stream{shard: shard, index: prefix, left: r})
}

// add adds a stream, unless Since is not before its end.
func (n *newest) add(s *stream) {
	if bytes.Compare(s.left.Begin, s.left.End) < 0 {
		n.streams = append(n.streams, s)
	}
}

func (n *newest) addRows(shard int) {
	prefix := n.cluster.Keys().Shard(shard, layout.SubFutures)
	end := n.cluster.Now().Add(aheadOfClocks)
	if until := time.UnixMilli(n.from.Millis).Add(time.Millisecond); n.from != layout.Youngest() && until.Before(end) {
		end = until
	}
	r := kv.Range{Begin: prefix, End: tuple.AppendUUID(prefix[:len(prefix):len(prefix)], layout.FirstIDAt(end))}
	if n.since() > 0 {
		r.Begin = tuple.AppendUUID(prefix[:len(prefix):len(prefix)], layout.FirstIDAt(n.filter.Since))
	}
	n.add(&stream{shard: shard, left: r})
}

// take returns the next futures of all shards, up to n, with their rows.
func (n *newest) take(ctx context.Context, most int) ([]entry, error) {
	var batch []entry
	for len(batch) < most {
		var best *stream
		for _, s := range n.streams {
			if err := n.fill(ctx, s); err != nil {
				return nil, err
			}
			if len(s.buffer) > 0 && (best == nil || s.buffer[0].age.Compare(best.buffer[0].age) > 0) {
				best = s
			}
		}
		if best == nil {
			break
		}
		batch = append(batch, best.buffer[0])
		best.buffer = best.buffer[1:]
	}
	return batch, n.fetch(ctx, batch)
}

// fill has a stream know its next future, if it has one.
func (n *newest) fill(ctx context.Context, s *stream) error {
	for len(s.buffer) == 0 && !s.over {
		found, err := n.page(ctx, s)
		if err != nil {
			return err
		}
		for _, e := range found {
			if e.age.Compare(n.from) < 0 && e.age.Millis >= n.since() {
				s.buffer = append(s.buffer, e)
			}
		}
	}
	return nil
}

// page reads a page of a stream.
func (n *newest) page(ctx context.Context, s *stream) (found []entry, err error) {
	o := kv.RangeOptions{Limit: streamKeys, Bytes: streamBytes, Reverse: true}
	if s.index == nil {
		rows, read, last, err := rowsPage(ctx, n.cluster, s.shard, s.left, o)
		n.read.keys, n.read.bytes = n.read.keys+read.keys, n.read.bytes+read.bytes
		for i := range rows {
			if r := &rows[i]; !r.ID.Time().IsZero() {
				found = append(found, entry{layout.AgeOf(r.ID, nil), r})
			}
		}
		if s.over = last.IsZero(); !s.over {
			s.left.End = tuple.AppendUUID(n.cluster.Keys().Shard(s.shard, layout.SubFutures), last)
		}
		return found, err
	}
	items, more, err := readSome(ctx, n.cluster, s.left, o)
	n.read.keys += len(items)
	for _, item := range items {
		rest := tuple.NewReader(item.Key[len(s.index):])
		age := layout.Age{Millis: rest.Int(), ID: layout.ID(rest.UUID())}
		if rest.Err() == nil { // a check names others
			found = append(found, entry{age, nil})
		}
	}
	if s.over = !more; more {
		s.left.End = items[len(items)-1].Key
	}
	return found, err
}

// fetch reads the rows that entries lack. Those that are gone, or can't be read, have
// none.
func (n *newest) fetch(ctx context.Context, batch []entry) error {
	at := map[layout.ID]int{}
	var ids []layout.ID
	for i := range batch {
		if batch[i].row == nil {
			at[batch[i].age.ID], ids = i, append(ids, batch[i].age.ID)
		}
	}
	rows, _, err := readAll(ctx, n.cluster, ids)
	for i := range rows {
		batch[at[rows[i].ID]].row = &rows[i]
	}
	n.read.keys += 3 * len(ids)
	return err
}

// readAll returns those of some futures that exist, and which of them can't be read.
func readAll(ctx context.Context, c *fdbmodel.Cluster, ids []layout.ID,
) (rows []layout.Row, unreadable []layout.ID, err error) {
	for part := range slices.Chunk(ids, fetchRows) {
		some, err := c.GetMany(ctx, part)
		if err == nil {
			rows = append(rows, some...)
			continue
		}
		if !layout.IsUnreadable(err) {
			return nil, nil, err
		}
		for _, id := range part {
			one, err := c.GetMany(ctx, []layout.ID{id})
			switch {
			case err == nil:
				rows = append(rows, one...)
			case layout.IsUnreadable(err):
				unreadable = append(unreadable, id)
			default:
				return nil, nil, err
			}
		}
	}
	return rows, unreadable, nil
}
