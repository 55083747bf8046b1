package fdbmodel

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Inspected is a key of the store with its value, both in a form to read.
type Inspected struct {
	KeyDescription
	Value ValueDescription `json:"value"`
}

func inspected(item kv.KeyValue) Inspected {
	return Inspected{DescribeKey(item.Key), DescribeValue(item.Key, item.Value)}
}

// Bounds of what is inspected.
const (
	// MaxInspect is the most keys that one InspectKeys or InspectPrefix
	// returns.
	MaxInspect      = 1000
	inspectPage     = 500
	inspectLarge    = 10  // keys of one page where values are large
	inspectMail     = 200 // mailbox values of a session that are searched for a future
	inspectedChunks = 5   // pieces of large values shown with their future
)

// Inspect returns a future's state and every key that has to do with it, at one
// version: its records, its place in the index, the keys of the worker that holds it, the
// first pieces of its large values, its notices in mailboxes and its place in
// the list of the finished. Records that can't be read are shown as that. It
// returns ErrNotFound.
func (c *Cluster) Inspect(ctx context.Context, id ID) (State, []Inspected, error) {
	var items []kv.KeyValue
	var row Row
	err := c.view(ctx, func(tx kv.Attempt) error {
		var err error
		row, items, err = c.itemsOf(ctx, tx.Snapshot(), id)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	all := make([]Inspected, len(items))
	for i := range items {
		all[i] = inspected(items[i])
	}
	return row.State(), all, nil
}

func (c *Cluster) itemsOf(ctx context.Context, tx kv.Reader, id ID) (row Row, items []kv.KeyValue, err error) {
	page, err := tx.GetRange(c.keys.rowRange(id), kv.RangeOptions{Limit: 1 + maxRowKeys}).Wait(ctx)
	if err != nil {
		return row, nil, err
	}
	if len(page.Items) == 0 {
		return row, nil, fmt.Errorf("future %s: %w", id, ErrNotFound)
	}
	items, row = page.Items, c.readable(id, page.Items)
	for _, key := range c.keysAround(&row) {
		value, err := tx.Get(key).Wait(ctx)
		if err != nil {
			return row, nil, err
		}
		if value != nil {
			items = append(items, kv.KeyValue{Key: key, Value: value})
		}
	}
	chunks, err := tx.GetRange(kv.Prefix(c.keys.chunksOfFuture(id)), kv.RangeOptions{Limit: inspectedChunks}).Wait(ctx)
	if err != nil {
		return row, nil, err
	}
	mail, err := c.mailOf(ctx, tx, &row)
	return row, append(append(items, chunks.Items...), mail...), err
}

// readable makes a row of those of its keys that can be read.
func (c *Cluster) readable(id ID, items []kv.KeyValue) Row {
	row, skip := Row{ID: id}, len(c.keys.row(id))
	for _, item := range items {
		before := row
		if row.add(item, tuple.NewReader(item.Key[skip:])) != nil {
			row = before
		}
	}
	return row
}

// keysAround returns the keys outside of a row that its records lead to.
func (c *Cluster) keysAround(row *Row) [][]byte {
	var keys [][]byte
	if row.Spec != nil {
		keys = append(keys, c.keys.waits(row))
	}
	if row.Attempts.Due != 0 {
		keys = append(keys, c.keys.delayed(row.ID, row.Attempts.Due))
	}
	if row.State() == Claimed {
		w := row.Claim.Worker
		keys = append(keys, c.keys.worker(w, workerAlive), c.keys.worker(w, workerHeartbeat),
			c.keys.claims(w, row.Claim.Sequence), c.keys.cancelled(w, row.ID))
	}
	if row.State() == Realized {
		// Result and list were written by one transaction, and so share a stamp.
		for shard := range c.config.Shards {
			keys = append(keys, tuple.AppendStamp(c.keys.doneOf(shard), row.Result.Stamp, 0))
		}
	}
	return keys
}

// mailOf returns the mail that tells of a future.
func (c *Cluster) mailOf(ctx context.Context, tx kv.Reader, row *Row) (mail []kv.KeyValue, err error) {
	sessions := row.Subscribers
	if row.Spec != nil && row.Spec.Session != "" && !slices.Contains(sessions, row.Spec.Session) {
		sessions = append(slices.Clone(sessions), row.Spec.Session)
	}
	for _, session := range sessions {
		page, err := tx.GetRange(kv.Prefix(c.keys.mailbox(session)), kv.RangeOptions{Limit: inspectMail}).Wait(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if bytes.Contains(item.Value, []byte(row.ID.String())) {
				mail = append(mail, item)
			}
		}
	}
	return mail, nil
}

// InspectKeys returns up to limit keys of a subspace or of a kind of key, as
// KeyKinds names them, that lie behind the key after, and the key to go on
// behind, nil at the end. The keys come shard by shard, and are of different
// versions. It returns ErrBadName.
func (c *Cluster) InspectKeys(ctx context.Context, name string, after []byte, limit int,
) (found []Inspected, next []byte, err error) {
	ranges, match, page, err := c.rangesOf(name)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range ranges {
		if after != nil && bytes.Compare(after, r.Begin) >= 0 {
			r.Begin = kv.After(after)
		}
		for !r.Empty() {
			part, more, err := c.inspectPage(ctx, r, page)
			if err != nil {
				return nil, nil, err
			}
			for _, item := range part {
				if _, kind := locateKey(item.Key); match != "" && (kind == nil || kind.name != match) {
					continue
				}
				if len(found) == inspectLimit(limit) {
					return found, next, nil
				}
				found, next = append(found, inspected(item)), item.Key
			}
			if !more {
				break
			}
			r.Begin = kv.After(part[len(part)-1].Key)
		}
	}
	return found, nil, nil
}

func inspectLimit(limit int) int {
	if limit <= 0 || limit > MaxInspect {
		return MaxInspect
	}
	return limit
}

func (c *Cluster) inspectPage(ctx context.Context, r kv.Range, limit int) ([]kv.KeyValue, bool, error) {
	var page kv.Page
	err := c.view(ctx, func(tx kv.Attempt) error {
		var err error
		page, err = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: limit}).Wait(ctx)
		return err
	})
	return page.Items, page.More, err
}

// rangesOf returns where the keys of a subspace or a kind lie, the kind if name
// is one, and how many to read at a time.
func (c *Cluster) rangesOf(name string) (ranges []kv.Range, match string, page int, err error) {
	if name == subResults {
		// Results lie in the rows of their futures.
		name = stateResult
	}
	for _, k := range keyKinds() {
		if k.subspace != name && k.name != name {
			continue
		}
		if k.subspace != name {
			match = k.name
		}
		if !k.sharded {
			return []kv.Range{kv.Prefix(c.keys.global(k.subspace))}, match, k.page(), nil
		}
		for shard := range c.config.Shards {
			ranges = append(ranges, kv.Prefix(c.keys.shard(shard, k.subspace)))
		}
		return ranges, match, k.page(), nil
	}
	kinds, subspaces := KeyKinds()
	return nil, "", 0, fmt.Errorf("%w: %.40q is neither a future's id, nor a subspace: use %s; nor a kind of key: use %s",
		ErrBadName, name, strings.Join(append(subspaces, subResults), ", "), strings.Join(kinds, ", "))
}

// page is how many keys of the kind's subspace are read at a time.
func (k keyKind) page() int {
	switch k.subspace {
	case subChunks, subCode, subMailbox:
		return inspectLarge
	default:
		return inspectPage
	}
}

// InspectPrefix returns up to limit keys of the store that begin with prefix
// and lie behind the key after, and the key to go on behind, nil at the end.
// They may be any keys. It returns ErrBadSpec for a prefix that no key can
// have.
func (c *Cluster) InspectPrefix(ctx context.Context, prefix, after []byte, limit int,
) (found []Inspected, next []byte, err error) {
	if len(prefix) == 0 || prefix[0] == 0xff || len(prefix) > kv.MaxKeySize {
		return nil, nil, fmt.Errorf("%w: no key begins with %.80q: give 1 to %d bytes, the first below 0xff",
			ErrBadSpec, EscapeKey(prefix), kv.MaxKeySize)
	}
	r := kv.Prefix(prefix)
	if bytes.Compare(after, r.Begin) >= 0 {
		r.Begin = kv.After(after)
	}
	limit = inspectLimit(limit)
	for !r.Empty() {
		part, more, err := c.inspectPage(ctx, r, min(inspectLarge, 1+limit-len(found)))
		if err != nil {
			return nil, nil, err
		}
		for _, item := range part {
			if len(found) == limit {
				return found, next, nil
			}
			found, next = append(found, inspected(item)), item.Key
		}
		if !more {
			break
		}
		r.Begin = kv.After(part[len(part)-1].Key)
	}
	return found, nil, nil
}

// InspectKey returns one key of the store, whatever it is. It returns
// ErrNotFound.
func (c *Cluster) InspectKey(ctx context.Context, key []byte) (Inspected, error) {
	var value []byte
	err := c.view(ctx, func(tx kv.Attempt) error {
		var err error
		value, err = tx.Snapshot().Get(key).Wait(ctx)
		return err
	})
	if err == nil && value == nil {
		err = fmt.Errorf("key %s: %w", EscapeKey(key), ErrNotFound)
	}
	return inspected(kv.KeyValue{Key: key, Value: value}), err
}
