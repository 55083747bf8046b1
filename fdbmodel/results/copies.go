package results

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// Copies returns the copies of a future's result, the latest first, and none if it
// is not an object. A worker that is alive may have lost its copy. With an error for which layout.IsUnreadable
// holds it returns those that can be read.
func (r *Results) Copies(ctx context.Context, id layout.ID) ([]Copy, error) {
	var copies []Copy
	err := r.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		copies, err = read.Copies(ctx, tx.Snapshot(), r.keys, id)
		return err
	})
	return copies, err
}

// CopyRecords returns the records of the copies of futures' results. Pass at most a few
// hundred ids.
func (r *Results) CopyRecords(ctx context.Context, ids []layout.ID) (map[layout.ID][]layout.CopyRecord, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var records map[layout.ID][]layout.CopyRecord
	err := r.cluster.View(ctx, func(tx kv.Attempt) error {
		records = map[layout.ID][]layout.CopyRecord{}
		pages := make([]kv.Pending[kv.Page], len(ids))
		for i, id := range ids {
			pages[i] = tx.Snapshot().GetRange(kv.Prefix(r.keys.CopiesOf(id)), kv.RangeOptions{Limit: read.MaxCopies})
		}
		for i, id := range ids {
			page, err := pages[i].Wait(ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				var record layout.CopyRecord
				if err := layout.Decode(item.Key, item.Value, &record); err != nil {
					return err
				}
				records[id] = append(records[id], record)
			}
		}
		return nil
	})
	return records, err
}

// ReportLost says that the result of a future, as it was read, could not be had
// from any of its copies: missing are the workers, alive, that do not have theirs.
// It removes the copies of those and of dead workers. If none is left, the future
// runs again, or fails as lost if it may not. It returns the state after that;
// realized if there are copies, or another result by now. It returns fdbmodel.ErrNotFound
// for an unknown future, and fdbmodel.ErrUnreachable while only workers that have left, and
// are not named as missing, may come back with a copy. An unknown commit is retried
// and harmless: the result with that token is lost once.
func (r *Results) ReportLost(ctx context.Context, id layout.ID, token layout.Token, missing []layout.WorkerID,
) (layout.State, error) {
	var state layout.State
	_, err := r.cluster.Change(ctx, kv.Options{Tag: "futura-lose"}, func(_ kv.Attempt, w *fdbmodel.WriteSet) (err error) {
		state, err = w.Lose(ctx, id, token, missing)
		return err
	})
	if err != nil {
		return 0, err
	}
	return state, nil
}

// AddCopy says that a worker has a copy of the result of a future, as it was
// read; alone removes all others, whose workers drop what they have. One of a dead worker makes room for it. It returns
// fdbmodel.ErrTransition if the future has another result by now, or has 64 copies, fdbmodel.ErrReaped, and
// ErrHolderGone after StopHolding. An unknown commit is retried, and adds the copy once.
func (r *Results) AddCopy(ctx context.Context, worker layout.WorkerID, id layout.ID, token layout.Token, alone bool,
) error {
	_, err := r.cluster.Transact(ctx, kv.Options{Tag: "futura-clone"}, func(tx kv.Attempt) error {
		fence := r.fence(tx, worker)
		row, err := read.Existing(ctx, tx, r.keys, id)
		if err != nil {
			return err
		}
		info, err := r.member(ctx, fence, worker)
		if err != nil {
			return err
		}
		if row.Object() == "" || row.Result.Token != token {
			return fmt.Errorf("future %s has another result: clone is %w", id, fdbmodel.ErrTransition)
		}
		copies, err := read.Copies(ctx, tx, r.keys, id)
		if err != nil {
			return err
		}
		has, others := false, 0
		var dead []byte // the copy of a worker that may yet come back for it
		for i := range copies {
			switch c := &copies[i]; {
			case c.Worker == worker:
				has = true
			case alone, !c.Alive && c.Away != 0:
				tx.Clear(c.Key)
			default:
				if others++; !c.Alive {
					dead = c.Key
				}
			}
		}
		if info.Leaving {
			return fmt.Errorf("worker %s: %w: it stops", worker, ErrHolderGone)
		}
		if !has && others >= read.MaxCopies {
			if dead == nil {
				return fmt.Errorf("future %s has %d copies of its result: clone is %w", id, others, fdbmodel.ErrTransition)
			}
			tx.Clear(dead)
		}
		if !has {
			set := &index.Set{Keys: r.keys, Tx: tx, Now: layout.Millis(r.cluster.Now())}
			(&index.Copies{Set: set}).Add(&row, worker)
		}
		return nil
	})
	return err
}

// StopHolding has a worker hold no more objects than it does: from here on Put and
// AddCopy with it return ErrHolderGone. A read that begins after it sees all whose
// holder it is, but for the results of what it runs. It returns fdbmodel.ErrReaped. An
// unknown commit is retried and harmless.
func (r *Results) StopHolding(ctx context.Context, worker layout.WorkerID) error {
	_, err := r.cluster.Transact(ctx, kv.Options{Tag: "futura-leave"}, func(tx kv.Attempt) error {
		info, err := r.member(ctx, r.fence(tx, worker), worker)
		if err != nil {
			return err
		}
		info.Leaving = true
		tx.Set(r.keys.Worker(worker, layout.WorkerAlive), layout.Encode(&info))
		return nil
	})
	return err
}

// LeaveCopies says that a worker, which is leaving, keeps its copies of the results of
// futures in its directory: until that time readers wait for the next process with the
// directory, and report no loss. Pass at most a few hundred ids. Where it has no copy
// nothing changes. An unknown commit is retried and harmless.
func (r *Results) LeaveCopies(ctx context.Context, worker layout.WorkerID, ids []layout.ID, until time.Time) error {
	_, err := r.cluster.Transact(ctx, kv.Options{Tag: "futura-leave"}, func(tx kv.Attempt) error {
		for _, id := range ids {
			copies, err := read.Copies(ctx, tx, r.keys, id)
			if err != nil {
				return err
			}
			for i := range copies {
				if held := &copies[i]; held.Worker == worker {
					held.Away = layout.Millis(until)
					tx.Set(held.Key, layout.Encode(&held.CopyRecord))
				}
			}
		}
		return nil
	})
	return err
}

// fence requests the record of a worker, serializably: a reaper's clear makes the
// transaction conflict.
func (r *Results) fence(tx kv.Reader, worker layout.WorkerID) kv.Pending[[]byte] {
	return tx.Get(r.keys.Worker(worker, layout.WorkerAlive))
}

// member returns the info of a worker whose fence was asked for, or fdbmodel.ErrReaped.
func (r *Results) member(ctx context.Context, fence kv.Pending[[]byte], worker layout.WorkerID,
) (info layout.WorkerInfo, err error) {
	value, err := fence.Wait(ctx)
	switch {
	case err != nil:
		return info, err
	case value == nil:
		return info, fmt.Errorf("worker %s: %w", worker, fdbmodel.ErrReaped)
	}
	return info, layout.Decode(r.keys.Worker(worker, layout.WorkerAlive), value, &info)
}
