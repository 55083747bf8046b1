package fdbmodel

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/clock"
)

// AcquireJanitor makes worker the cluster's janitor, or keeps it so, if the
// record of the present one is still the one that the caller observed. It
// returns the resulting record and whether worker holds the role. Nothing
// relies on a single janitor: everything it does is safe alongside others. An
// unknown commit is harmless.
func (c *Cluster) AcquireJanitor(ctx context.Context, worker layout.WorkerID, observed []byte, count int64,
) (record []byte, held bool, err error) {
	wanted := layout.Encode(&layout.JanitorRecord{Worker: worker, Count: count})
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-janitor", NoSync: true}, func(tx kv.Attempt) error {
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

// ReadJanitor returns the record of the present janitor, which changes while
// the janitor is alive, and its worker id.
func (c *Cluster) ReadJanitor(ctx context.Context) (record []byte, worker layout.WorkerID, err error) {
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

// ReleaseJanitor gives up the role. An unknown commit is harmless.
func (c *Cluster) ReleaseJanitor(ctx context.Context, worker layout.WorkerID) error {
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-janitor", NoSync: true}, func(tx kv.Attempt) error {
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
	// janitorBatch is the maximum number of futures that it makes ready or
	// unassigns.
	janitorBatch = 64
	// maxExpire is the number of finished futures at which it takes no further
	// entry of the done lists.
	maxExpire = 2048
)

// PromoteDue makes due futures ready, at most a batch, those of all shards in
// turn. It returns how many, and when to call it again: at once if more may be
// due, else when the next one is; the zero time if none is delayed. It looks at
// all shards in one transaction, so an error of the store changes nothing in any
// of them. Unreadable futures stay and don't hold up the others. A wrong clock
// promotes early or late, never twice. An unknown commit is retried: futures
// that were promoted are no longer delayed, and wait for a worker's poll.
func (c *Cluster) PromoteDue(ctx context.Context) (promoted int, next time.Time, err error) {
	now := c.clock.Now()
	var then postCommit
	var result kv.Result
	err = aroundDamage(func(avoid avoidance) (err error) {
		result, err = c.Transact(ctx, kv.Options{Tag: "futura-promote"}, func(tx kv.Attempt) error {
			promoted, next, then, err = c.promoteDue(ctx, tx, now, avoid)
			return err
		})
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	c.follow(ctx, result.Version, then)
	return promoted, next, nil
}

func (c *Cluster) promoteDue(ctx context.Context, tx kv.Attempt, now time.Time, avoid avoidance,
) (promoted int, next time.Time, then postCommit, err error) {
	w, scan := c.write(tx), shards.Read(tx.Snapshot(), c.config.Shards, c.keys.DelayedOf, janitorBatch+1)
	for full := true; full && promoted == 0; {
		due, later, err := c.dueOf(ctx, tx, scan, now)
		if err != nil {
			return 0, next, then, err
		}
		if promoted, err = w.promote(ctx, due, now, avoid); err != nil {
			return 0, next, then, err
		}
		if full = len(due) == janitorBatch; full && promoted > 0 {
			later = now
		}
		next = clock.Earlier(next, later)
	}
	if err := w.Flush(ctx); err != nil {
		return 0, next, then, err
	}
	return promoted, next, w.postCommit(), nil
}

// dueOf requests the next due futures of a scan, at most a batch. If that is all
// of them, it returns when the next one is due.
func (c *Cluster) dueOf(ctx context.Context, tx kv.Tx, scan *shards.Scan, now time.Time,
) (due []read.Pending, next time.Time, err error) {
	for len(due) < janitorBatch {
		item, skip, err := scan.Next(ctx)
		if err != nil || item.Key == nil {
			return due, next, err
		}
		rest := tuple.NewReader(item.Key[skip:])
		at, id := rest.Int(), layout.ID(rest.UUID())
		switch {
		case rest.Err() != nil: // an audit reports it
		case at > layout.Millis(now):
			next = clock.Earlier(next, time.UnixMilli(at))
			scan.Leave()
		default:
			tx.AddReadConflictKey(item.Key)
			due = append(due, read.Record(tx, c.keys, id))
		}
	}
	return due, next, nil
}

// promote makes due futures ready, and returns how many.
func (w *WriteSet) promote(ctx context.Context, due []read.Pending, now time.Time, avoid avoidance,
) (promoted int, err error) {
	for _, p := range due {
		row, found, err := p.Wait(ctx)
		if layout.IsUnreadable(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if !found || row.Spec == nil || avoid.of(&row) {
			continue
		}
		after, outcome := Next(row, Event{Kind: EventPromote, Now: now})
		if outcome != Applied {
			continue
		}
		w.Apply(&row, &after)
		promoted++
	}
	return promoted, nil
}

// ExpireDone removes finished futures whose retention has passed, of at most one
// entry of each shard's done list. It returns how many, and when to call it
// again: at once if it removed an entry, else when the next one is due; the zero
// time if there is none. It looks at all shards in one transaction, so an error
// of the store removes nothing from any of them. Futures that were retried since
// stay; so do unreadable futures and inputs of futures that are not over, for
// another retention, and unreadable entries.
// An unknown commit is retried and harmless.
func (c *Cluster) ExpireDone(ctx context.Context) (removed int, next time.Time, err error) {
	now := c.clock.Now()
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-expire", NoSync: true}, func(tx kv.Attempt) error {
		var expired []expiredEntry
		var err error
		if expired, next, err = c.expiredOf(ctx, tx, now); err != nil {
			return err
		}
		w := c.write(tx)
		if removed, err = c.expire(ctx, w, expired); err != nil {
			return err
		}
		for _, e := range expired {
			tx.Clear(e.key)
			next = now
		}
		return w.Flush(ctx)
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	return removed, next, nil
}

// expiredEntry is an entry of a done list, with its futures as requested.
type expiredEntry struct {
	key     []byte
	at      int64
	ids     []layout.ID
	futures []read.Pending
}

// expiredOf requests the futures of the first readable entry of each shard,
// where its retention has passed. If that is none, it returns when the next one
// does.
func (c *Cluster) expiredOf(ctx context.Context, tx kv.Tx, now time.Time,
) (expired []expiredEntry, next time.Time, err error) {
	scan := shards.Read(tx.Snapshot(), c.config.Shards, c.keys.DoneOf, 1)
	for n := 0; n < maxExpire; {
		item, _, err := scan.Next(ctx)
		if err != nil || item.Key == nil {
			return expired, next, err
		}
		var entry layout.DoneEntry
		if err := layout.Decode(item.Key, item.Value, &entry); layout.IsUnreadable(err) {
			continue
		} else if err != nil {
			return nil, next, err
		}
		scan.Leave()
		if due := time.UnixMilli(entry.At).Add(c.config.Retention); due.After(now) {
			next = clock.Earlier(next, due)
			continue
		}
		ids := layout.UnpackIDs(entry.IDs)
		expired = append(expired, expiredEntry{item.Key, entry.At, ids, read.Records(tx, c.keys, ids)})
		n += len(ids)
	}
	return expired, next, nil
}

// expire removes the futures of entries, and returns how many. A future that
// finished again after a retry may be in several.
func (c *Cluster) expire(ctx context.Context, w *WriteSet, expired []expiredEntry) (removed int, err error) {
	seen := map[layout.ID]bool{}
	for _, e := range expired {
		for i, id := range e.ids {
			row, found, err := e.futures[i].Wait(ctx)
			switch {
			case layout.IsUnreadable(err):
				w.ends.Add(id) // a version that can read it may expire it then
			case err != nil:
				return 0, err
			case found && row.Spec != nil && row.State().Terminal() && row.FinishedAt() <= e.at && !seen[id]:
				seen[id] = true
				released, err := edge.IsReleased(ctx, w.Tx, w.Keys, &row)
				switch {
				case err != nil:
					return 0, err
				case !released:
					w.ends.Add(id) // it is used, and may expire after another retention
				default:
					w.remove(&row)
					removed++
				}
			}
		}
	}
	return removed, nil
}

// orphanAge is how old a future's id must be before chunks without a future
// are swept: large arguments are written before their future is.
const orphanAge = time.Hour

// SweepChunks removes chunks of a shard that no record refers to: arguments
// that were written ahead of a submit that never came, and results of attempts
// that lost their claim. Of these the longest stays as long as the future is not
// over, for Resume, unless the claim has as much. It examines the chunks of one
// future after cursor and returns the next cursor, nil at the end. An unknown
// commit is retried and harmless.
func (c *Cluster) SweepChunks(ctx context.Context, shard int, cursor []byte) (next []byte, removed int, err error) {
	prefix := c.keys.ChunksOf(shard)
	r := kv.Prefix(prefix)
	if cursor != nil {
		r.Begin = cursor
	}
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-sweep", NoSync: true}, func(tx kv.Attempt) error {
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
			if surplus, err := c.isSurplus(ctx, tx, &row, ref); err != nil || !surplus {
				return err
			}
		}
		tx.ClearRange(pieces)
		removed = 1
		return nil
	})
	return next, removed, err
}

// MayRefer reports whether a record may yet refer to a chunk.
func (c *Cluster) MayRefer(row *layout.Row, ref layout.ChunkRef) bool {
	if row.Spec != nil && ref.Kind != layout.ChunkArgs && ref.Kind != layout.ChunkInputs {
		return isHolders(row, ref) || isLeft(row, ref)
	}
	drawn := row.ID.Time() // of values that are put, results too are written ahead
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

// DropSession removes a session that has ended, with its mail. Its
// futures stay, and so do their results. An unknown commit is harmless.
func (c *Cluster) DropSession(ctx context.Context, session layout.SessionID) error {
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-session", NoSync: true}, func(tx kv.Attempt) error {
		// The late twin of an attempt can't drop a session that has come back.
		tx.AddReadConflictKey(c.keys.Session(session))
		tx.Clear(c.keys.Session(session))
		tx.Clear(c.keys.Bell(session))
		tx.ClearRange(kv.Prefix(c.keys.Mailbox(session)))
		return nil
	})
	return err
}
