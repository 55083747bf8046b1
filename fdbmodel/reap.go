package fdbmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// claimBatch is the record of one claim transaction: what it took.
type claimBatch struct {
	IDs idList `msgpack:"i" json:"ids"`
}

// idList is ids as records hold them: 16 bytes each.
type idList []byte

func packIDs(ids []ID) []byte {
	b := make([]byte, 0, 16*len(ids))
	for _, id := range ids {
		b = append(b, id[:]...)
	}
	return b
}

func unpackIDs(b []byte) []ID {
	ids := make([]ID, 0, len(b)/16)
	for ; len(b) >= 16; b = b[16:] {
		ids = append(ids, ID(b[:16]))
	}
	return ids
}

// ReapClaims takes back everything that a dead worker holds and forgets the
// worker. It returns how many futures went back to the pool or failed. It may
// be run by several processes at once and be cut off anywhere: whoever runs it
// next goes on. It returns ErrTransition for a worker that lives. An unknown
// commit is retried: what was taken back is no longer the worker's.
func (c *Cluster) ReapClaims(ctx context.Context, worker WorkerID) (int, error) {
	total := 0
	for {
		n, err := c.endClaims(ctx, worker, EventReap)
		if err != nil {
			return total, err
		}
		if n == 0 {
			break
		}
		total += n - 1
	}
	_, err := c.transact(ctx, kv.Options{Tag: "futura-reap"}, func(tx kv.Attempt) error {
		alive, err := tx.Get(c.keys.worker(worker, workerAlive)).Wait(ctx)
		if err != nil {
			return err
		}
		if alive != nil {
			return fmt.Errorf("worker %s lives: %w", worker, ErrTransition)
		}
		return c.forget(ctx, tx, WorkerInfo{ID: worker})
	})
	return total, err
}

// endClaims applies kind, Reap or Relinquish, to what one claim batch of a
// worker still holds, and removes the batch. It returns 0 when there is no
// batch left, and 1 plus the number of futures changed otherwise.
func (c *Cluster) endClaims(ctx context.Context, worker WorkerID, kind EventKind) (int, error) {
	changed := 0
	_, err := c.transact(ctx, kv.Options{Tag: "futura-reap"}, func(tx kv.Attempt) error {
		changed = 0
		if kind == EventReap {
			alive, err := tx.Get(c.keys.worker(worker, workerAlive)).Wait(ctx)
			if err != nil {
				return err
			}
			if alive != nil {
				return fmt.Errorf("worker %s lives: %w", worker, ErrTransition)
			}
		}
		prefix := c.keys.worker(worker, workerClaims)
		page, err := tx.GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil || len(page.Items) == 0 {
			return err
		}
		n, err := c.endBatch(ctx, tx, worker, kind, page.Items[0], len(prefix))
		changed = 1 + n
		return err
	})
	return changed, err
}

func (c *Cluster) endBatch(ctx context.Context, tx kv.Tx, worker WorkerID, kind EventKind, item kv.KeyValue, skip int,
) (int, error) {
	rest := tuple.NewReader(item.Key[skip:])
	sequence := rest.Int()
	var batch claimBatch
	if err := decodeRecord(item.Key, item.Value, &batch); err != nil {
		return 0, err
	}
	ids := unpackIDs(batch.IDs)
	pending := make([]pendingRow, len(ids))
	for i, id := range ids {
		pending[i] = c.keys.askRecord(tx, id)
	}
	w := c.changes(tx)
	changed := 0
	for i := range ids {
		row, found, err := pending[i].wait(ctx)
		if errors.Is(err, ErrBadRecord) {
			// One that can't be read must not keep the others from going back.
			continue
		}
		if err != nil {
			return 0, err
		}
		if !found || row.Spec == nil || row.Claim == nil || row.Claim.Sequence != sequence {
			continue
		}
		event := Event{Kind: kind, Token: Token{Worker: worker, Sequence: sequence}, Now: c.clock.Now()}
		after, outcome := Next(row, event)
		if outcome != Applied {
			continue
		}
		if err := w.apply(&row, &after); err != nil {
			return 0, err
		}
		changed++
	}
	tx.Clear(item.Key)
	return changed, w.flush()
}
