package fdbmodel

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// HoldJanitor makes worker the cluster's janitor, or keeps it so, if the record
// of the present one is still the one that the caller observed. It returns the
// resulting record and whether worker holds the role. Nothing relies on a
// single janitor: everything it does is safe alongside others. An unknown
// commit is harmless.
func (c *Cluster) HoldJanitor(ctx context.Context, worker layout.WorkerID, observed []byte, count int64,
) (record []byte, held bool, err error) {
	wanted := layout.Encode(&layout.JanitorRecord{Worker: worker, Count: count})
	_, err = c.transact(ctx, kv.Options{Tag: "futura-janitor", NoSync: true}, func(tx kv.Attempt) error {
		value, err := tx.Get(c.keys.Janitor()).Wait(ctx)
		if err != nil {
			return err
		}
		var present layout.JanitorRecord
		if value != nil {
			if err := layout.Decode(c.keys.Janitor(), value, &present); err != nil {
				return err
			}
		}
		if value != nil && present.Worker != worker && !bytes.Equal(value, observed) {
			record, held = value, false
			return nil
		}
		tx.Set(c.keys.Janitor(), wanted)
		record, held = wanted, true
		return nil
	})
	return record, held, err
}

// LookJanitor returns the record of the present janitor, which changes while
// the janitor is alive, and its worker id.
func (c *Cluster) LookJanitor(ctx context.Context) (record []byte, worker layout.WorkerID, err error) {
	err = c.View(ctx, func(tx kv.Attempt) error {
		value, err := tx.Snapshot().Get(c.keys.Janitor()).Wait(ctx)
		if err != nil || value == nil {
			record, worker = nil, ""
			return err
		}
		var present layout.JanitorRecord
		if err := layout.Decode(c.keys.Janitor(), value, &present); err != nil {
			return err
		}
		record, worker = value, present.Worker
		return nil
	})
	return record, worker, err
}

// DropJanitor gives up the role. An unknown commit is harmless.
func (c *Cluster) DropJanitor(ctx context.Context, worker layout.WorkerID) error {
	_, err := c.transact(ctx, kv.Options{Tag: "futura-janitor", NoSync: true}, func(tx kv.Attempt) error {
		value, err := tx.Get(c.keys.Janitor()).Wait(ctx)
		if err != nil || value == nil {
			return err
		}
		var present layout.JanitorRecord
		if err := layout.Decode(c.keys.Janitor(), value, &present); err != nil {
			return err
		}
		if present.Worker == worker {
			tx.Clear(c.keys.Janitor())
		}
		return nil
	})
	return err
}

// Limits of one transaction of a janitor.
const (
	// janitorBatch is the maximum number of futures that it changes.
	janitorBatch = 64
	// janitorPages is the maximum number of pages that it reads in search of
	// futures that it can change.
	janitorPages = 64
)

// PromoteDue makes the due futures of a shard ready, at most a batch. It
// returns how many, and when the next one is due (zero if none is delayed).
// Unreadable futures stay and don't hold up the others. A wrong clock promotes
// early or late, never twice. An unknown commit is retried: futures that were
// promoted are no longer delayed.
func (c *Cluster) PromoteDue(ctx context.Context, shard int) (promoted int, next time.Time, err error) {
	now := c.clock.Now()
	var placed demands
	result, err := c.transact(ctx, kv.Options{Tag: "futura-promote"}, func(tx kv.Attempt) error {
		promoted, next, placed = 0, time.Time{}, nil
		w := c.changes(tx)
		r := kv.Prefix(c.keys.DelayedOf(shard))
		for n := 0; n < janitorPages && promoted == 0; n++ {
			page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: janitorBatch + 1}).Wait(ctx)
			if err != nil {
				return err
			}
			var due []read.Pending
			due, next = c.dueOf(tx, shard, page, now)
			if promoted, placed, err = w.promote(ctx, due, now); err != nil {
				return err
			}
			if !page.More || next.After(now) {
				break
			}
			r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
		}
		w.flush()
		return nil
	})
	if err == nil {
		c.wakeFor(ctx, result.Version, placed)
	}
	return promoted, next, err
}

// dueOf requests the due futures of a page, at most a batch, and returns when
// the next one after them is due.
func (c *Cluster) dueOf(tx kv.Tx, shard int, page kv.Page, now time.Time) (due []read.Pending, next time.Time) {
	skip := len(c.keys.DelayedOf(shard))
	for _, item := range page.Items {
		rest := tuple.NewReader(item.Key[skip:])
		at, id := rest.Int(), layout.ID(rest.UUID())
		if rest.Err() != nil {
			continue // a check names it
		}
		if at > layout.Millis(now) || len(due) == janitorBatch {
			return due, time.UnixMilli(at)
		}
		tx.AddReadConflictKey(item.Key)
		due = append(due, read.Record(tx, c.keys, id))
	}
	return due, time.Time{}
}

// promote makes due futures ready, and returns how many, and which of them
// entered the pool.
func (w *changes) promote(ctx context.Context, due []read.Pending, now time.Time) (int, demands, error) {
	promoted, placed := 0, demands(nil)
	for _, p := range due {
		row, found, err := p.Wait(ctx)
		if layout.IsUnreadable(err) {
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		if !found || row.Spec == nil {
			continue
		}
		after, outcome := Next(row, Event{Kind: EventPromote, Now: now})
		if outcome != Applied {
			continue
		}
		w.apply(&row, &after)
		if promoted++; after.InPool() {
			placed.add(row.Spec)
		}
	}
	return promoted, placed, nil
}

// ExpireDone removes finished futures of a shard whose retention has passed, at
// most one entry of the done list. It returns how many futures, whether it
// removed an entry, and when the next one is due (zero if there is none).
// Futures that were retried since stay; so do unreadable futures, for another
// retention, and unreadable entries. An unknown commit is retried and harmless.
func (c *Cluster) ExpireDone(ctx context.Context, shard int) (removed int, progress bool, next time.Time, err error) {
	now := c.clock.Now()
	_, err = c.transact(ctx, kv.Options{Tag: "futura-expire", NoSync: true}, func(tx kv.Attempt) error {
		removed, progress, next = 0, false, time.Time{}
		key, entry, err := c.firstDone(ctx, tx, shard)
		if err != nil || key == nil {
			return err
		}
		if due := time.UnixMilli(entry.At).Add(c.config.Retention); due.After(now) {
			next = due
			return nil
		}
		progress = true
		ids := layout.UnpackIDs(entry.IDs)
		pending := make([]read.Pending, len(ids))
		for i, id := range ids {
			pending[i] = read.Record(tx, c.keys, id)
		}
		w := c.changes(tx)
		for i := range ids {
			row, found, err := pending[i].Wait(ctx)
			if layout.IsUnreadable(err) {
				w.done = append(w.done, ids[i]) // a version that can read it may expire it then
				continue
			}
			if err != nil {
				return err
			}
			if found && row.Spec != nil && row.State().Terminal() && row.FinishedAt() <= entry.At {
				w.remove(&row)
				removed++
			}
		}
		tx.Clear(key)
		w.flush()
		return nil
	})
	return removed, progress, next, err
}

// firstDone returns the first entry of a shard's done list that can be read, or
// a nil key if there is none.
func (c *Cluster) firstDone(ctx context.Context, tx kv.Tx, shard int) (key []byte, entry layout.DoneEntry, err error) {
	r := kv.Prefix(c.keys.DoneOf(shard))
	for range janitorPages {
		page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil || len(page.Items) == 0 {
			return nil, entry, err
		}
		item := page.Items[0]
		if err := layout.Decode(item.Key, item.Value, &entry); err == nil || !layout.IsUnreadable(err) {
			return item.Key, entry, err
		}
		entry, r.Begin = layout.DoneEntry{}, kv.After(item.Key)
	}
	return nil, entry, nil
}

// orphanAge is how old a future's id must be before chunks without a future
// are swept: large arguments are written before their future is.
const orphanAge = time.Hour

// SweepChunks removes chunks of a shard that no record refers to: arguments
// that were written ahead of a submit that never came, and results of attempts
// that lost their claim. It examines the chunks of one future after cursor and
// returns the next cursor, nil at the end. An unknown commit is retried and
// harmless.
func (c *Cluster) SweepChunks(ctx context.Context, shard int, cursor []byte) (next []byte, removed int, err error) {
	prefix := c.keys.ChunksOf(shard)
	r := kv.Prefix(prefix)
	if cursor != nil {
		r.Begin = cursor
	}
	_, err = c.transact(ctx, kv.Options{Tag: "futura-sweep", NoSync: true}, func(tx kv.Attempt) error {
		next, removed = nil, 0
		page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil || len(page.Items) == 0 {
			return err
		}
		rest := tuple.NewReader(page.Items[0].Key[len(prefix):])
		id := layout.ID(rest.UUID())
		ref := layout.ChunkRef{Kind: rest.Text(), Token: rest.Text()}
		if err := rest.Err(); err != nil {
			return fmt.Errorf("%s: %w: %w", tuple.String(page.Items[0].Key), layout.ErrBadRecord, err)
		}
		pieces := kv.Prefix(c.keys.Chunks(id, ref))
		next = pieces.End
		row, _, err := read.Record(tx, c.keys, id).Wait(ctx)
		if layout.IsUnreadable(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if row.RefersTo(ref) || c.MayRefer(&row, ref) {
			return nil
		}
		tx.ClearRange(pieces)
		removed = 1
		return nil
	})
	return next, removed, err
}

// MayRefer reports whether a record may yet refer to a chunk.
func (c *Cluster) MayRefer(row *layout.Row, ref layout.ChunkRef) bool {
	if ref.Kind != layout.ChunkArgs {
		return row.State() == layout.Claimed && row.Claim.Token.String() == ref.Token
	}
	drawn := row.ID.Time()
	return row.Spec == nil && !drawn.IsZero() && c.clock.Now().Sub(drawn) < orphanAge
}

// Sessions returns the sessions that have a record, mail or a bell, with their
// records, which change while the sessions are alive. The record is nil for a
// session without one.
func (c *Cluster) Sessions(ctx context.Context) (map[layout.SessionID][]byte, error) {
	sessions := map[layout.SessionID][]byte{}
	for shard := range c.config.Shards {
		err := c.View(ctx, func(tx kv.Attempt) error {
			for _, sub := range []string{layout.SubSessions, layout.SubMailbox, layout.SubBell} {
				if err := c.sessionsIn(ctx, tx, c.keys.Shard(shard, sub), sub == layout.SubSessions, sessions); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sessions, nil
}

// sessionPage is the maximum number of sessions read from a shard at once.
const sessionPage = 1000

func (c *Cluster) sessionsIn(ctx context.Context, tx kv.Tx, prefix []byte, records bool,
	sessions map[layout.SessionID][]byte,
) error {
	r := kv.Prefix(prefix)
	for range sessionPage {
		page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil || len(page.Items) == 0 {
			return err
		}
		item := page.Items[0]
		rest := tuple.NewReader(item.Key[len(prefix):])
		session := layout.SessionID(rest.Text())
		if err := rest.Err(); err != nil {
			return fmt.Errorf("%s: %w: %w", tuple.String(item.Key), layout.ErrBadRecord, err)
		}
		if records {
			sessions[session] = item.Value
		} else if _, known := sessions[session]; !known {
			sessions[session] = nil
		}
		r.Begin = kv.AfterPrefix(item.Key[:len(item.Key)-len(rest.Rest())])
	}
	return nil
}

// DropSession removes a session whose record did not change, with its mail. Its
// futures stay, and so do their results. An unknown commit is harmless.
func (c *Cluster) DropSession(ctx context.Context, session layout.SessionID) error {
	return c.dropSession(ctx, session)
}
