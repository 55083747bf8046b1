package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// putGrace is how long an object is held that was put for a future which does not
// exist yet.
const putGrace = 5 * time.Minute

// heldObject is an object that a worker holds for a future.
type heldObject struct {
	id   layout.ID
	hash objects.Hash
}

// holding says since when an object is held. Its number tells a sweep whether it is
// older than what the sweep has read, and until whether it is kept in any case.
type holding struct {
	number int64
	until  time.Time
}

// hold counts an object as used by a future.
func (k *keeper) hold(id layout.ID, hash objects.Hash, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := heldObject{id, hash}
	if _, found := k.held[key]; !found {
		k.uses[hash]++
	}
	k.kept++
	k.held[key] = holding{k.kept, until}
}

// holdPut holds what a client has put for a future, until that exists or the grace
// has passed.
func (k *keeper) holdPut(owner peer.Owner, ref objects.Ref) {
	k.hold(layout.ID(owner[:len(layout.ID{})]), ref.Hash, k.cluster.Now().Add(putGrace))
}

// accepts returns an error if the worker stops: then it takes no objects but results.
func (k *keeper) accepts() error {
	if k.leaving.Load() {
		return fmt.Errorf("worker %s: %w", k.worker, objects.ErrStopping)
	}
	return nil
}

// Keep implements taskcontext.Keeper.
func (k *keeper) Keep(ctx context.Context, id layout.ID, r io.Reader, about int64,
) (object string, size int64, holder layout.WorkerID, err error) {
	if err := k.accepts(); err != nil {
		return "", 0, "", err
	}
	room, err := k.store.Reserve(ctx, about) // before anything is read
	if err != nil {
		return "", 0, "", err
	}
	defer room.Release()
	ref, err := k.store.Put(ctx, r, objects.PutOptions{Size: about, Reservation: room, Kept: func(ref objects.Ref) {
		k.hold(id, ref.Hash, k.cluster.Now().Add(putGrace))
	}})
	if err == nil {
		err = k.accepts() // the future could not be made
	}
	return ref.Hash.String(), ref.Size, k.worker, err
}

// deleteUnused deletes the objects that no future uses.
func (k *keeper) deleteUnused() error {
	k.mu.Lock()
	var unused []objects.Hash
	for hash, uses := range k.uses {
		if uses <= 0 {
			unused = append(unused, hash)
		}
	}
	k.mu.Unlock()
	var errs []error
	for _, hash := range unused {
		_, err := k.store.DeleteIf(hash, func() bool { return k.stopUsing(hash) })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// stopUsing reports whether an object has no use, and forgets it then.
func (k *keeper) stopUsing(hash objects.Hash) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.uses[hash] > 0 {
		return false
	}
	delete(k.uses, hash)
	return true
}

// sweep drops the objects whose futures have no such result, or of which this worker
// has no copy that counts: they were discarded or moved, or the claim was lost, or
// nothing came of a put.
func (k *keeper) sweep(ctx context.Context) error {
	k.mu.Lock()
	all, until := make([]heldObject, 0, len(k.held)), k.kept
	for key := range k.held {
		all = append(all, key)
	}
	k.mu.Unlock()
	slices.SortFunc(all, func(a, b heldObject) int { return slices.Compare(a.id[:], b.id[:]) })
	for part := range slices.Chunk(all, sweptTogether) {
		if err := k.sweepSome(ctx, part, until); err != nil {
			return err
		}
	}
	return k.deleteUnused()
}

// sweepSome looks at some objects, and at the holdings up to a number.
func (k *keeper) sweepSome(ctx context.Context, part []heldObject, until int64) error {
	var ids []layout.ID
	for _, key := range part {
		if n := len(ids); n == 0 || ids[n-1] != key.id {
			ids = append(ids, key.id)
		}
	}
	var rows []layout.Row
	unread, err := readable(ids, func(ids []layout.ID) error {
		some, err := k.cluster.GetMany(ctx, ids)
		if err == nil {
			rows = append(rows, some...)
		}
		return err
	})
	if err != nil {
		return err
	}
	running := map[layout.ID]bool{}
	var asObjects []layout.ID
	for i := range rows {
		switch r := &rows[i]; {
		case r.Object() != "":
			asObjects = append(asObjects, r.ID)
		case r.State() == layout.Claimed:
			running[r.ID] = true // its result may be on the way
		}
	}
	copies := map[layout.ID][]layout.CopyRecord{}
	unknown, err := readable(asObjects, func(ids []layout.ID) error {
		some, err := results.Of(k.cluster).CopyRecords(ctx, ids)
		maps.Copy(copies, some)
		return err
	})
	if err != nil {
		return err
	}
	needed := func(key heldObject) bool {
		is := func(c layout.CopyRecord) bool { return c.Worker == k.worker && c.Object == key.hash.String() }
		return running[key.id] || unread[key.id] != nil || unknown[key.id] != nil ||
			slices.ContainsFunc(copies[key.id], is)
	}
	k.forget(part, until, k.cluster.Now(), needed)
	return nil
}

// readable reads futures together, and one by one if one of them can't be read: that costs no other one. It returns
// why which can't.
func readable(ids []layout.ID, read func([]layout.ID) error) (unread map[layout.ID]error, err error) {
	if err := read(ids); !layout.IsUnreadable(err) {
		return nil, err
	}
	unread = map[layout.ID]error{}
	for _, id := range ids {
		err := read([]layout.ID{id})
		if err != nil && !layout.IsUnreadable(err) {
			return nil, err
		}
		if err != nil {
			unread[id] = fmt.Errorf("future %s: %w", id, err)
		}
	}
	return unread, nil
}

// forget ends the holdings up to a number that are not needed. What was needed is held no longer than that.
func (k *keeper) forget(part []heldObject, until int64, now time.Time, needed func(heldObject) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range part {
		held, found := k.held[key]
		switch {
		case !found || held.number > until:
		case needed(key):
			k.held[key] = holding{number: held.number}
		case !now.Before(held.until):
			delete(k.held, key)
			k.uses[key.hash]--
		}
	}
}
