package inspect

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/fork"
	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Item is a key of the store with its value, both in readable form.
type Item struct {
	layout.KeyDescription
	Value ValueDescription `json:"value"`
}

func itemOf(item kv.KeyValue) Item {
	return Item{keyspace.Table().Describe(item.Key), DescribeValue(item.Key, item.Value)}
}

// Limits of an inspection.
const (
	// MaxItems is the maximum number of keys that one call of Keys or Prefix
	// returns.
	MaxItems        = 1000
	inspectPage     = 500 // keys of a worker that a command lists
	inspectLarge    = 10  // keys of one page if values may be large
	inspectMail     = 200 // mailbox values of a session that are searched for a future
	inspectedEdges  = 20  // edges of a kind, and steps, shown with their future
	inspectedChunks = 5   // pieces of large values shown with their future
)

// Future returns a future's state and every key that concerns it, at one
// version: its records, its place in the index, the keys of the worker that
// holds it, the first of its steps and of the pieces of its large values, its notices in mailboxes and
// its place in the list of finished futures. Unreadable records are marked as
// such. It returns ErrNotFound for an unknown future.
func Future(ctx context.Context, c *fdbmodel.Cluster, id layout.ID) (layout.State, []Item, error) {
	var items []kv.KeyValue
	var row layout.Row
	err := c.View(ctx, func(tx kv.Attempt) error {
		var err error
		row, items, err = itemsOf(ctx, c, tx.Snapshot(), id)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	all := make([]Item, len(items))
	for i := range items {
		all[i] = itemOf(items[i])
	}
	return row.State(), all, nil
}

func itemsOf(ctx context.Context, c *fdbmodel.Cluster, tx kv.Reader, id layout.ID,
) (row layout.Row, items []kv.KeyValue, err error) {
	page, err := tx.GetRange(c.Keys().RowRange(id), kv.RangeOptions{Limit: 1 + layout.MaxRowKeys}).Wait(ctx)
	if err != nil {
		return row, nil, err
	}
	if len(page.Items) == 0 {
		return row, nil, fmt.Errorf("future %s: %w", id, fdbmodel.ErrNotFound)
	}
	items, row = page.Items, readable(c, id, page.Items)
	for _, key := range keysAround(c, &row) {
		value, err := tx.Get(key).Wait(ctx)
		if err != nil {
			return row, nil, err
		}
		if value != nil {
			items = append(items, kv.KeyValue{Key: key, Value: value})
		}
	}
	chunks, err := tx.GetRange(kv.Prefix(c.Keys().ChunksOfFuture(id)), kv.RangeOptions{Limit: inspectedChunks}).Wait(ctx)
	if err != nil {
		return row, nil, err
	}
	items = append(items, chunks.Items...)
	others := []kv.Range{kv.Prefix(c.Keys().InputsOf(id)), kv.Prefix(c.Keys().DependantsOf(id))}
	if row.Steps {
		others = append(others, kv.Prefix(step.Keys(c.Keys()).Of(id)))
	}
	if row.Forks {
		others = append(others, kv.Prefix(fork.Keys(c.Keys()).Of(id)))
	}
	for _, of := range append(others, doneWith(c, &row)...) {
		page, err := tx.GetRange(of, kv.RangeOptions{Limit: inspectedEdges}).Wait(ctx)
		if err != nil {
			return row, nil, err
		}
		items = append(items, page.Items...)
	}
	mail, err := mailOf(ctx, c, tx, &row)
	return row, append(items, mail...), err
}

// doneWith returns where the list of finished futures is that names a realized one. Its result and the list were
// written by one transaction, and so share a stamp, but for its order within that.
func doneWith(c *fdbmodel.Cluster, row *layout.Row) (ranges []kv.Range) {
	if row.State() != layout.Realized {
		return nil
	}
	for shard := range c.Config().Shards {
		of, stamp := c.Keys().DoneOf(shard), row.Result.Stamp
		ranges = append(ranges, kv.Range{Begin: tuple.AppendStamp(slices.Clip(of), stamp, 0),
			End: kv.After(tuple.AppendStamp(slices.Clip(of), stamp, math.MaxUint16))})
	}
	return ranges
}

// readable makes a row from those of its keys that can be read.
func readable(c *fdbmodel.Cluster, id layout.ID, items []kv.KeyValue) layout.Row {
	row, skip := layout.Row{ID: id}, c.Keys().RowLength(id)
	for _, item := range items {
		// Damage is shown with the key.
		_ = row.Add(item, tuple.NewReader(item.Key[skip:]))
	}
	return row
}

// keysAround returns the keys outside of a row that its records refer to.
func keysAround(c *fdbmodel.Cluster, row *layout.Row) [][]byte {
	var keys [][]byte
	if row.Spec != nil {
		if place := layout.PlaceOf(row); place != nil && place.Kind != layout.PlaceBlocked {
			keys = append(keys, place.Key(c.Keys(), row))
		}
		if lane := row.Spec.Lane; !lane.IsZero() {
			keys = append(keys, c.Keys().Lane(lane), c.Keys().LaneKind(lane.Kind))
		}
		keys = append(keys, c.Keys().ListedAs(row)...)
	}
	if row.State() == layout.Claimed {
		w := row.Claim.Worker
		keys = append(keys, c.Keys().Worker(w, layout.WorkerAlive), c.Keys().Worker(w, layout.WorkerHeartbeat),
			c.Keys().Claims(w, row.Claim.Sequence), c.Keys().Cancelled(w, row.ID))
	}
	if row.Blocked != nil || row.State().Terminal() {
		keys = append(keys, c.Keys().Resolve(row.ID))
	}
	return keys
}

// mailOf returns the mail about a future.
func mailOf(ctx context.Context, c *fdbmodel.Cluster, tx kv.Reader, row *layout.Row) (mail []kv.KeyValue, err error) {
	sessions := row.Subscribers
	if row.Spec != nil && row.Spec.Session != "" && !slices.Contains(sessions, row.Spec.Session) {
		sessions = append(slices.Clone(sessions), row.Spec.Session)
	}
	for _, session := range sessions {
		page, err := tx.GetRange(kv.Prefix(c.Keys().Mailbox(session)), kv.RangeOptions{Limit: inspectMail}).Wait(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if bytes.Contains(item.Value, row.ID[:]) {
				mail = append(mail, item)
			}
		}
	}
	return mail, nil
}

// Keys returns up to limit keys of a subspace or of a kind of key, as keyspace.Table
// names them, that follow the key after, and the key to continue after, nil at
// the end. The keys come shard by shard, and are read at different versions. It
// returns ErrBadName for an unknown name.
func Keys(ctx context.Context, c *fdbmodel.Cluster, name string, after []byte, limit int,
) (found []Item, next []byte, err error) {
	ranges, match, page, err := rangesOf(c, name)
	if err != nil {
		return nil, nil, err
	}
	return readItems(ctx, c, ranges, match, after, page, limit)
}

// readItems reads up to limit keys of some ranges that follow the key after, of
// one kind if match names one, page keys at a time.
func readItems(ctx context.Context, c *fdbmodel.Cluster, ranges []kv.Range, match string, after []byte, page, limit int,
) (found []Item, next []byte, err error) {
	if limit <= 0 || limit > MaxItems {
		limit = MaxItems
	}
	for _, r := range ranges {
		if after != nil && bytes.Compare(after, r.Begin) >= 0 {
			r.Begin = kv.After(after)
		}
		for more := true; more && !r.Empty(); {
			var part []kv.KeyValue
			if part, more, err = readPage(ctx, c, r, page); err != nil {
				return nil, nil, err
			}
			for _, item := range part {
				r.Begin = kv.After(item.Key)
				if kind := keyspace.Table().Parse(item.Key).Kind; match != "" && (kind == nil || kind.Name != match) {
					continue
				}
				if len(found) == limit {
					return found, next, nil
				}
				found, next = append(found, itemOf(item)), item.Key
			}
		}
	}
	return found, nil, nil
}

func readPage(ctx context.Context, c *fdbmodel.Cluster, r kv.Range, limit int) ([]kv.KeyValue, bool, error) {
	return readSome(ctx, c, r, kv.RangeOptions{Limit: limit, Bytes: pageBytes})
}

// readSome reads a page with options of its own.
func readSome(ctx context.Context, c *fdbmodel.Cluster, r kv.Range, o kv.RangeOptions) ([]kv.KeyValue, bool, error) {
	var page kv.Page
	err := c.View(ctx, func(tx kv.Attempt) error {
		var err error
		page, err = tx.Snapshot().GetRange(r, o).Wait(ctx)
		return err
	})
	return page.Items, page.More, err
}

// rangesOf returns where the keys of a subspace or a kind lie, the kind if name
// is one, and how many keys to read at a time.
func rangesOf(c *fdbmodel.Cluster, name string) (ranges []kv.Range, match string, page int, err error) {
	for _, k := range keyspace.Table().Kinds() {
		if k.Subspace != name && k.Name != name {
			continue
		}
		if k.Subspace != name {
			match = k.Name
		}
		if !k.Sharded {
			return []kv.Range{kv.Prefix(c.Keys().Global(k.Subspace))}, match, keyspace.Table().Page(&k), nil
		}
		for shard := range c.Config().Shards {
			ranges = append(ranges, kv.Prefix(c.Keys().Shard(shard, k.Subspace)))
		}
		return ranges, match, keyspace.Table().Page(&k), nil
	}
	kinds, subspaces := keyspace.Table().Names()
	return nil, "", 0, fmt.Errorf("%w: %.40q is neither a future's id, nor a subspace: use %s; nor a kind of key: use %s",
		layout.ErrBadName, name, strings.Join(subspaces, ", "), strings.Join(kinds, ", "))
}

// Prefix returns up to limit keys of the store that begin with prefix and
// follow the key after, and the key to continue after, nil at the end. They may
// be any keys. It returns ErrBadKey for a prefix that no key can have.
func Prefix(ctx context.Context, c *fdbmodel.Cluster, prefix, after []byte, limit int,
) (found []Item, next []byte, err error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, nil, err
	}
	return readItems(ctx, c, []kv.Range{kv.Prefix(prefix)}, "", after, inspectLarge, limit)
}

func checkPrefix(prefix []byte) error {
	if len(prefix) == 0 || prefix[0] == 0xff || len(prefix) > kv.MaxKeySize {
		return fmt.Errorf("%w: no key begins with %.80q: give 1 to %d bytes, the first below 0xff", layout.ErrBadKey,
			layout.EscapeKey(prefix), kv.MaxKeySize)
	}
	return nil
}

// Key returns any one key of the store. It returns ErrNotFound if the key does
// not exist, and ErrBadKey for what can be none.
func Key(ctx context.Context, c *fdbmodel.Cluster, key []byte) (Item, error) {
	if err := checkPrefix(key); err != nil {
		return Item{}, err
	}
	var value []byte
	err := c.View(ctx, func(tx kv.Attempt) error {
		var err error
		value, err = tx.Snapshot().Get(key).Wait(ctx)
		return err
	})
	if err == nil && value == nil {
		err = fmt.Errorf("key %s: %w", layout.EscapeKey(key), fdbmodel.ErrNotFound)
	}
	return itemOf(kv.KeyValue{Key: key, Value: value}), err
}
