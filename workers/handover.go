package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects/held"
)

// handOver has other workers take the objects of which this one, which is stopping, has
// the only copy: first those that can't be made again. The others read them from here.
// What is left when the time is up stays in the worker's directory, if it has one, and
// is lost with this worker otherwise.
func (m *membership) handOver(by time.Time) {
	w, k := m.worker, m.kept
	if k == nil || m.broken() || k.isEmpty() {
		return
	}
	ctx, cancel := withTimeout(m.store, w.cluster.Clock(), by.Sub(w.cluster.Now()))
	defer cancel()
	if !w.manual() { // whose steps end with what they asked of the store
		defer context.AfterFunc(w.vanish, cancel)()
	}
	var sole []layout.Row
	err := m.lastly(func(ctx context.Context) (err error) {
		sole, err = k.soleObjects(ctx)
		return err
	})
	if err != nil {
		w.options.Logger.Warn("objects could not be listed; what only this worker has of them is lost with it", "error", err)
	}
	if len(sole) == 0 {
		return
	}
	moved, left, err := k.moveAll(ctx, sole)
	if moved > 0 {
		w.options.Logger.Info("objects were handed over to other workers", "number", moved)
	}
	left, failed := m.stay(left)
	if err = errors.Join(err, failed); len(left) > 0 {
		bytes := int64(0)
		for i := range left {
			bytes += left[i].Result.Size
		}
		w.options.Logger.Warn("objects could not be handed over and are lost with this worker", "number", len(left),
			"bytes", bytes, "first", left[0].ID, "handed over", moved, "error", err)
	}
}

// stopHolding has no more objects come than there are. What was put before is counted
// before the handover, or never: the store of the cluster refuses it.
func (m *membership) stopHolding() {
	if m.kept == nil {
		return
	}
	m.kept.leaving.Store(true)
	if m.broken() {
		return
	}
	stop := func(ctx context.Context) error { return results.Of(m.worker.cluster).StopHolding(ctx, m.reg.ID()) }
	if err := m.lastly(stop); err != nil && !errors.Is(err, errAway) {
		m.worker.options.Logger.Warn("objects that are put with the worker while it stops may be lost", "error", err)
	}
}

func (k *keeper) isEmpty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.held) == 0
}

// soleObjects returns the futures whose result is an object of which this worker has
// the only copy, those that can't run again first. The error is that of futures, if any, which
// can't be read.
func (k *keeper) soleObjects(ctx context.Context) (sole []layout.Row, err error) {
	k.mu.Lock()
	ids := make([]layout.ID, 0, len(k.held))
	for key := range k.held {
		ids = append(ids, key.id)
	}
	k.mu.Unlock()
	slices.SortFunc(ids, func(a, b layout.ID) int { return slices.Compare(a[:], b[:]) })
	var unread error
	for part := range slices.Chunk(slices.Compact(ids), sweptTogether) {
		without, err := readable(part, func(ids []layout.ID) error {
			some, err := k.onlyHere(ctx, ids)
			sole = append(sole, some...)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, id := range part {
			unread = errors.Join(unread, without[id])
		}
	}
	slices.SortStableFunc(sole, func(a, b layout.Row) int { return cmp.Compare(rebuildable(&a), rebuildable(&b)) })
	return sole, unread
}

// onlyHere returns those of some futures of whose result this worker has the only copy.
func (k *keeper) onlyHere(ctx context.Context, ids []layout.ID) (sole []layout.Row, err error) {
	rows, err := k.cluster.GetMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		alone, err := k.isAlone(ctx, &rows[i])
		if err != nil {
			return nil, err
		}
		if alone {
			sole = append(sole, rows[i])
		}
	}
	return sole, nil
}

// rebuildable is higher for what is easier to make again.
func rebuildable(r *layout.Row) int {
	switch {
	case r.Spec.IsPut():
		return 0
	case !r.Spec.AllowReconstruction:
		return 1
	}
	return 2
}

// isAlone reports whether this worker has the only copy of a result, but for those of others that are leaving: each of
// them counts on what stays.
func (k *keeper) isAlone(ctx context.Context, row *layout.Row) (bool, error) {
	if row.Object() == "" {
		return false, nil
	}
	copies, err := results.Of(k.cluster).Copies(ctx, row.ID)
	if err != nil {
		return false, err
	}
	mine := false
	for i := range copies {
		if copies[i].Alive && !copies[i].Leaving && copies[i].Worker != k.worker {
			return false, nil
		}
		mine = mine || copies[i].Worker == k.worker
	}
	return mine, nil
}

// moveAll has other workers take the results of futures, and returns how many they
// took, and which they did not though they are there.
func (k *keeper) moveAll(ctx context.Context, rows []layout.Row) (moved int, left []layout.Row, err error) {
	members, err := k.cluster.Workers(ctx)
	if err != nil {
		return 0, rows, err
	}
	var others []layout.WorkerInfo
	for i := range members {
		if m := &members[i]; m.Alive && m.Unreadable == "" && !m.Leaving && m.ID != k.worker {
			others = append(others, m.WorkerInfo)
		}
	}
	to := k.peers
	if to == nil {
		var reader held.Reader
		defer reader.Close()
		to = &reader
	}
	holders, err := to.Holders(ctx, others)
	if err != nil {
		return 0, rows, err
	}
	return k.moveTo(ctx, holders, rows, func(h *held.Holder, id layout.ID) error {
		return to.Take(ctx, h, id, held.TakeOptions{Alone: true})
	})
}

// peers is how a worker that stops reaches those that may take its objects.
type peers interface {
	// Holders and Take are those of held.Reader.
	Holders(ctx context.Context, workers []layout.WorkerInfo) ([]held.Holder, error)
	Take(ctx context.Context, to *held.Holder, id layout.ID, o held.TakeOptions) error
}

// moveTo gives each result to the holder with most room. A holder that is full may have
// room for the next one; one that can't be reached, or stops, gets none.
func (k *keeper) moveTo(ctx context.Context, holders []held.Holder, rows []layout.Row,
	take func(*held.Holder, layout.ID) error,
) (moved int, left []layout.Row, err error) {
	for i := range rows {
		taken, failed := k.moveOne(ctx, &holders, &rows[i], take)
		switch {
		case taken:
			moved++
		case failed != nil:
			left = append(left, rows[i])
			err = failed
		}
	}
	return moved, left, errors.Join(err, ctx.Err())
}

// moveOne gives one result to a holder. It returns false without an error for a future
// that has no such result any more.
func (k *keeper) moveOne(ctx context.Context, holders *[]held.Holder, row *layout.Row,
	take func(*held.Holder, layout.ID) error,
) (taken bool, failed error) {
	failed = fmt.Errorf("%w: none has room for %d bytes", held.ErrNoHolder, row.Result.Size)
	for _, to := range slices.SortedStableFunc(slices.Values(*holders), mostRoom) {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if to.Room < row.Result.Size {
			continue
		}
		err := take(&to, row.ID)
		at := slices.IndexFunc(*holders, func(h held.Holder) bool { return h.Worker == to.Worker })
		switch {
		case err == nil:
			(*holders)[at].Room -= row.Result.Size
			return true, nil
		case errors.Is(err, held.ErrNoHolder):
		case k.isGone(ctx, row):
			return false, nil
		case !errors.Is(err, fdbmodel.ErrNotFound):
			*holders = slices.Delete(*holders, at, at+1)
		}
		failed = err
	}
	return false, failed
}

// mostRoom orders holders by their room.
func mostRoom(a, b held.Holder) int { return cmp.Compare(b.Room, a.Room) }

// isGone reports whether a future was removed or its result dropped since it was read.
func (k *keeper) isGone(ctx context.Context, row *layout.Row) bool {
	now, err := k.cluster.Get(ctx, row.ID)
	return errors.Is(err, fdbmodel.ErrNotFound) || err == nil && now.Object() != row.Object()
}
