package transfer

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Limits of one transaction of a copy.
const (
	copyBatchBytes = 500_000
	copyBatchItems = 2000
)

// copyTarget writes an initially empty cluster.
type copyTarget struct {
	db     kv.Database
	keys   layout.Keyspace
	rows   []kv.Range // outside of clusters, that it gets
	record layout.IncomingRecord
	sleep  func(context.Context, time.Duration) error

	items []movedItem
	bytes int
}

func (t *copyTarget) transact(ctx context.Context, fn func(kv.Attempt) error) error {
	retry := kv.Retry{Options: kv.Options{Tag: "futura-copy"}, Sleep: t.sleep}
	_, err := kv.Transact(ctx, t.db, retry, fn)
	return err
}

// begin marks the cluster as incomplete. The remains of an earlier copy are
// removed, but for rows outside of clusters, which may be others' by now; anything else
// is ErrNotEmpty, except a cluster that was opened and never used. An unknown commit is retried and harmless.
func (t *copyTarget) begin(ctx context.Context) error {
	return t.transact(ctx, func(tx kv.Attempt) error {
		marked, err := tx.Get(t.keys.Incoming()).Wait(ctx)
		if err != nil {
			return err
		}
		if marked == nil {
			page, err := tx.GetRange(t.keys.All(), kv.RangeOptions{Limit: 2}).Wait(ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				if !bytes.Equal(item.Key, t.keys.Config()) {
					return fmt.Errorf("%w: it has %s, and more: use another store or name", ErrNotEmpty, tuple.String(item.Key))
				}
			}
		}
		var earlier layout.IncomingRecord
		if marked == nil || layout.Decode(t.keys.Incoming(), marked, &earlier) != nil || !earlier.Rows {
			if err := t.requireNoRows(ctx, tx); err != nil {
				return err
			}
		}
		t.record.Rows = len(t.rows) > 0 || earlier.Rows // those stay, whether or not this copy has rows
		tx.ClearRange(t.keys.All())
		return t.mark(tx)
	})
}

func (t *copyTarget) mark(tx kv.Tx) error {
	value := layout.Encode(&t.record)
	tx.Set(t.keys.Incoming(), value)
	return nil
}

// add adds an item, in the order of the keys, and writes the batch when it is
// full.
func (t *copyTarget) add(ctx context.Context, item movedItem) error {
	if t.bytes > copyBatchBytes || len(t.items) == copyBatchItems {
		if err := t.flush(ctx); err != nil {
			return err
		}
	}
	t.items = append(t.items, item)
	t.bytes += len(item.key) + len(item.value)
	return nil
}

// flush writes the added items. An unknown commit is retried: the mark tells
// whether the batch was written.
func (t *copyTarget) flush(ctx context.Context) error {
	if len(t.items) == 0 {
		return nil
	}
	before := t.record.Batch
	t.record.Batch++
	err := t.transact(ctx, func(tx kv.Attempt) error {
		batch, err := t.marked(ctx, tx)
		if err != nil || batch == t.record.Batch {
			return err
		}
		if batch != before {
			return fmt.Errorf("%w: its batch is %d instead of %d", ErrCopyReplaced, batch, before)
		}
		if err := t.writeRows(ctx, tx); err != nil {
			return err
		}
		for i, item := range t.items {
			if item.isRow() {
				continue
			}
			key := append(slices.Clone(t.keys.Prefix), item.key...)
			if !item.isRestamped() {
				tx.Set(key, item.value)
				continue
			}
			key, offset := tuple.AppendIncompleteStamp(key[:len(key)-1-layout.StampLength], uint16(i))
			tx.SetVersionstampedKey(key, offset, item.value)
		}
		return t.mark(tx)
	})
	t.items, t.bytes = t.items[:0], 0
	return err
}

// marked returns the batch that was written last.
func (t *copyTarget) marked(ctx context.Context, tx kv.Reader) (int64, error) {
	value, err := tx.Get(t.keys.Incoming()).Wait(ctx)
	if err != nil {
		return 0, err
	}
	if value == nil {
		return 0, fmt.Errorf("%w, and has ended", ErrCopyReplaced)
	}
	var record layout.IncomingRecord
	if err := layout.Decode(t.keys.Incoming(), value, &record); err != nil {
		return 0, err
	}
	if record.Writer != t.record.Writer {
		return 0, ErrCopyReplaced
	}
	return record.Batch, nil
}

// verify compares the copy with the source, and checks every invariant.
func (t *copyTarget) verify(ctx context.Context, want *tally, model fdbmodel.Options, progress func(done int64)) error {
	source := &copySource{db: t.db, keys: t.keys, rows: t.rows, version: kv.NoVersion, sleep: t.sleep}
	got, err := source.tally(ctx, progress)
	if err != nil {
		return err
	}
	if got.rows > want.rows {
		return fmt.Errorf("%w: it has %d rows outside of clusters, where %d were written: use another store, or leave out "+
			"the rows", ErrNotEmpty, got.rows, want.rows)
	}
	if got.checksum() != want.checksum() {
		return fmt.Errorf("%w: it has %d keys of %d futures, and should have %d of %d, with the same content",
			ErrBadCopy, got.keys, got.futures, want.keys, want.futures)
	}
	model.Incoming = true
	c, err := fdbmodel.Open(ctx, t.db, keyspace.Table().Parse(t.keys.Prefix).Cluster, model)
	if err != nil {
		return err
	}
	report, err := audit.Check(ctx, c, audit.Options{Problems: 1})
	if err != nil {
		return err
	}
	if report.Broken > 0 {
		return fmt.Errorf("%w: it has problems (%d), as the source has: %s: %s (%v)", ErrBadCopy, report.Broken,
			report.Problems[0].Invariant, report.Problems[0].Text, report.Problems[0].Keys)
	}
	return nil
}

// finish opens the cluster to other processes, as a new incarnation: what the copy's
// store will stamp comes after what the source's has stamped. An unknown commit is
// retried and harmless.
func (t *copyTarget) finish(ctx context.Context) error {
	return t.transact(ctx, func(tx kv.Attempt) error {
		if tx.MaybeCommitted {
			value, err := tx.Get(t.keys.Incoming()).Wait(ctx)
			if err != nil || value == nil {
				return err
			}
		}
		if _, err := t.marked(ctx, tx); err != nil {
			return err
		}
		tx.Clear(t.keys.Incoming())
		var config layout.Config
		value, err := tx.Get(t.keys.Config()).Wait(ctx)
		if err == nil {
			err = layout.Decode(t.keys.Config(), value, &config)
		}
		if err != nil {
			return err
		}
		config.Incarnation++
		tx.Set(t.keys.Config(), layout.Encode(&config))
		return nil
	})
}
