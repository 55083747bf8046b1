package fdbmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// maxCopies is the maximum number of copies of one result.
const maxCopies = 64

// Copy is a copy of a result as an object in the store of a worker.
type Copy struct {
	layout.CopyRecord
	// Alive says that the worker is registered. Objects and Secret are then those of
	// layout.WorkerInfo.
	Alive   bool
	Objects string
	Secret  layout.Secret

	key []byte
}

// Copies returns the copies of a future's result, the latest first, and none if it
// is not an object. A worker that is alive may have lost its copy.
func (c *Cluster) Copies(ctx context.Context, id layout.ID) ([]Copy, error) {
	var copies []Copy
	err := c.View(ctx, func(tx kv.Attempt) (err error) {
		copies, err = c.copiesIn(ctx, tx.Snapshot(), id)
		return err
	})
	return copies, err
}

func (c *Cluster) copiesIn(ctx context.Context, tx kv.Reader, id layout.ID) ([]Copy, error) {
	page, err := tx.GetRange(kv.Prefix(c.keys.CopiesOf(id)), kv.RangeOptions{Limit: maxCopies, Reverse: true}).Wait(ctx)
	if err != nil {
		return nil, err
	}
	copies := make([]Copy, 0, len(page.Items))
	fences := make([]kv.Pending[[]byte], 0, len(page.Items))
	for _, item := range page.Items {
		found := Copy{key: item.Key}
		if err := layout.Decode(item.Key, item.Value, &found.CopyRecord); err != nil {
			return nil, err
		}
		copies = append(copies, found)
		fences = append(fences, tx.Get(c.keys.Worker(found.Worker, layout.WorkerAlive)))
	}
	for i := range copies {
		value, err := fences[i].Wait(ctx)
		if err != nil {
			return nil, err
		}
		var info layout.WorkerInfo
		if value == nil {
			continue
		}
		if err := layout.Decode(c.keys.Worker(copies[i].Worker, layout.WorkerAlive), value, &info); err != nil {
			return nil, err
		}
		copies[i].Alive, copies[i].Objects, copies[i].Secret = true, info.Objects, info.Secret
	}
	return copies, nil
}

// CopyRecords returns the records of the copies of futures' results. Pass at most a few
// hundred ids.
func (c *Cluster) CopyRecords(ctx context.Context, ids []layout.ID) (map[layout.ID][]layout.CopyRecord, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var records map[layout.ID][]layout.CopyRecord
	err := c.View(ctx, func(tx kv.Attempt) error {
		records = map[layout.ID][]layout.CopyRecord{}
		pages := make([]kv.Pending[kv.Page], len(ids))
		for i, id := range ids {
			pages[i] = tx.Snapshot().GetRange(kv.Prefix(c.keys.CopiesOf(id)), kv.RangeOptions{Limit: maxCopies})
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
// realized if there are copies, or another result by now. It returns ErrNotFound
// for an unknown future, and ErrUnreachable while only workers that have left, and
// are not named as missing, may come back with a copy. An unknown commit is retried
// and harmless: the result with that token is lost once.
func (c *Cluster) ReportLost(ctx context.Context, id layout.ID, token layout.Token, missing []layout.WorkerID,
) (layout.State, error) {
	var state layout.State
	var then postCommit
	result, err := c.Transact(ctx, kv.Options{Tag: "futura-lose"}, func(tx kv.Attempt) error {
		then = postCommit{}
		row, err := c.requireRow(ctx, tx, id)
		if err != nil {
			return err
		}
		if state = row.State(); row.Object() == "" || row.Result.Token != token {
			return nil
		}
		copies, err := c.copiesIn(ctx, tx, id)
		if err != nil {
			return err
		}
		var gone []string
		var alive, away *Copy
		for i := range copies {
			held := &copies[i]
			is := held.Object == row.Result.Object && !slices.Contains(missing, held.Worker)
			switch {
			case is && held.Alive:
				alive = held
			case is && held.awaited(c.clock.Now()) > 0:
				away = held
			default:
				tx.Clear(held.key)
				gone = append(gone, string(held.Worker))
			}
		}
		switch {
		case alive != nil:
			return nil
		case away != nil:
			return away.unreachable(c.clock.Now())
		}
		why := "no worker has a copy"
		if len(gone) > 0 {
			why = "with " + strings.Join(gone[:min(len(gone), 5)], ", ")
		}
		after, outcome := Next(row, Event{Kind: EventLose, Token: token, Reason: why, Now: c.clock.Now()})
		if outcome != Applied {
			return nil
		}
		w := c.write(tx)
		w.Apply(&row, &after)
		if err := w.Flush(ctx); err != nil {
			return err
		}
		state, then = after.State(), w.postCommit()
		return nil
	})
	if err != nil {
		return 0, err
	}
	c.follow(ctx, result.Version, then)
	return state, nil
}

// AddCopy says that the worker has a copy of the result of a future, as it was
// read; alone removes all others, whose workers drop what they have. It returns
// ErrTransition if the future has another result by now, or has 64 copies, ErrReaped, and
// ErrHolderGone after StopHolding. An unknown commit is retried, and adds the copy once.
func (r *Registration) AddCopy(ctx context.Context, id layout.ID, token layout.Token, alone bool) error {
	c := r.cluster
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-clone"}, func(tx kv.Attempt) error {
		alive := tx.Get(c.keys.Worker(r.info.ID, layout.WorkerAlive))
		row, err := c.requireRow(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := r.checkAlive(ctx, alive); err != nil {
			return err
		}
		if row.Object() == "" || row.Result.Token != token {
			return fmt.Errorf("future %s has another result: clone is %w", id, ErrTransition)
		}
		copies, err := c.copiesIn(ctx, tx, id)
		if err != nil {
			return err
		}
		has := false
		for i := range copies {
			switch {
			case copies[i].Worker == r.info.ID:
				has = true
			case alone, !copies[i].Alive && copies[i].Away != 0:
				tx.Clear(copies[i].key)
			}
		}
		if holds, err := c.holds(ctx, alive, r.info.ID); err != nil || !holds {
			return cmp.Or(err, fmt.Errorf("worker %s: %w: it stops", r.info.ID, ErrHolderGone))
		}
		if !has && !alone && len(copies) >= maxCopies {
			return fmt.Errorf("future %s has %d copies of its result: clone is %w", id, len(copies), ErrTransition)
		}
		if !has {
			c.write(tx).copies.Add(&row, r.info.ID)
		}
		return nil
	})
	return err
}

// StopHolding has the worker hold no more objects than it does: from here on Put and
// AddCopy with it return ErrHolderGone. A read that begins after it sees all whose
// holder it is, but for the results of what it runs. It returns ErrReaped. An unknown
// commit is retried and harmless.
func (r *Registration) StopHolding(ctx context.Context) error {
	_, err := r.cluster.Transact(ctx, kv.Options{Tag: "futura-leave"}, func(tx kv.Attempt) error {
		value, err := r.askAlive(tx).Wait(ctx)
		if err != nil {
			return err
		}
		if value == nil {
			return fmt.Errorf("worker %s: %w", r.info.ID, ErrReaped)
		}
		key := r.cluster.keys.Worker(r.info.ID, layout.WorkerAlive)
		var info layout.WorkerInfo
		if err := layout.Decode(key, value, &info); err != nil {
			return err
		}
		info.Leaving = true
		tx.Set(key, layout.Encode(&info))
		return nil
	})
	return err
}

// holds reports whether a worker, whose fence was asked for, can get an object.
func (c *Cluster) holds(ctx context.Context, fence kv.Pending[[]byte], worker layout.WorkerID) (bool, error) {
	value, err := fence.Wait(ctx)
	if err != nil || value == nil {
		return false, err
	}
	var info layout.WorkerInfo
	err = layout.Decode(c.keys.Worker(worker, layout.WorkerAlive), value, &info)
	return err == nil && !info.Leaving, err
}
