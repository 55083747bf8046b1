package fdbmodel

import (
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// refuse gives back the futures of a claim whose records can't be read, so that
// a worker of a newer version can claim them, and returns the others.
func (r *Registration) refuse(ctx context.Context, token layout.Token, futures []ClaimedFuture,
	taken []layout.ReadyEntry,
) ([]ClaimedFuture, []layout.ReadyEntry, error) {
	var unreadable []layout.ReadyEntry
	for i := range futures {
		// An entry without a key was found again after an unknown commit.
		if layout.IsUnreadable(futures[i].Err) && taken[i].Key != nil {
			unreadable = append(unreadable, taken[i])
		}
	}
	if len(unreadable) == 0 {
		return futures, taken, nil
	}
	undone, err := r.undoClaim(ctx, token, unreadable)
	if err != nil {
		return nil, nil, err
	}
	now := r.cluster.clock.Now()
	for id := range undone {
		r.scan.AddUnreadable(id, now)
	}
	futures = slices.DeleteFunc(futures, func(f ClaimedFuture) bool { return undone[f.ID] })
	taken = slices.DeleteFunc(taken, func(e layout.ReadyEntry) bool { return undone[e.ID] })
	return futures, taken, nil
}

// undoClaim reverses a claim without reading the unreadable records. It returns
// the futures that the worker no longer holds; those with a cancel request in
// the meantime are not among them.
func (r *Registration) undoClaim(ctx context.Context, token layout.Token, entries []layout.ReadyEntry,
) (map[layout.ID]bool, error) {
	keys := r.cluster.keys
	listKey := keys.Claims(r.info.ID, token.Sequence)
	var undone map[layout.ID]bool
	_, err := Patient{r.cluster}.Transact(ctx, kv.Options{Tag: "futura-refuse"}, func(tx kv.Attempt) error {
		undone = map[layout.ID]bool{}
		alive := r.askAlive(tx)
		list := tx.Get(listKey)
		claims, cancels := make([]kv.Pending[[]byte], len(entries)), make([]kv.Pending[[]byte], len(entries))
		for i := range entries {
			claims[i] = tx.Get(keys.State(entries[i].ID, layout.StateClaim))
			cancels[i] = tx.Get(keys.State(entries[i].ID, layout.StateCancel))
		}
		if err := r.checkAlive(ctx, alive); err != nil {
			return err
		}
		w := r.cluster.write(tx)
		for i := range entries {
			e := &entries[i]
			held, asked, err := holds(ctx, keys.State(e.ID, layout.StateClaim), token, claims[i], cancels[i])
			if err != nil {
				return err
			}
			if held && asked {
				continue
			}
			undone[e.ID] = true
			if !held {
				continue // an attempt with an unknown result committed
			}
			w.unclaim(e)
		}
		if err := shortenList(ctx, tx, listKey, list, undone); err != nil {
			return err
		}
		return w.Flush(ctx)
	})
	return undone, err
}

// holds reports whether the token holds a future, as far as its records can be
// read, and whether its cancellation was requested.
func holds(ctx context.Context, key []byte, token layout.Token, claim, cancel kv.Pending[[]byte],
) (held, asked bool, err error) {
	request, err := cancel.Wait(ctx)
	if err != nil {
		return false, false, err
	}
	value, err := claim.Wait(ctx)
	if err != nil || value == nil {
		return false, request != nil, err
	}
	var present layout.Claim
	_, err = layout.DecodeStamped(key, value, &present)
	return err == nil && present.Token == token, request != nil, nil
}

// shortenList removes futures from a list of claims.
func shortenList(ctx context.Context, tx kv.Tx, key []byte, list kv.Pending[[]byte], out map[layout.ID]bool) error {
	value, err := list.Wait(ctx)
	if err != nil || value == nil || len(out) == 0 {
		return err
	}
	ids, err := layout.DecodeClaims(key, value)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id layout.ID) bool { return out[id] })
	if len(ids) == 0 {
		tx.Clear(key)
		return nil
	}
	tx.Set(key, layout.EncodeClaims(ids))
	return nil
}
