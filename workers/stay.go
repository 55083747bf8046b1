package workers

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
)

// How long a worker that stops writes to its directory what no other worker took, and how
// long readers then wait for the next process with that directory.
const (
	stayTimeout = 30 * time.Second
	stayFor     = 2 * time.Minute
)

// stay writes results that no other worker took to the directory, for the next process with
// it, and tells readers to wait for that. It returns those that are lost instead.
func (m *membership) stay(left []layout.Row) ([]layout.Row, error) {
	k, w := m.kept, m.worker
	if k.dir == "" || len(left) == 0 {
		return left, nil
	}
	ctx, cancel := withTimeout(m.store, w.cluster.Clock(), stayTimeout)
	defer cancel()
	saved, bytes := make([]objects.Saved, len(left)), int64(0)
	for i := range left {
		r := left[i].Result
		saved[i] = objects.Saved{Owner: left[i].ID.String(), Hash: r.Object, Size: r.Size}
	}
	saved, failed := k.store.Save(ctx, w.cluster.Name(), saved)
	if len(saved) == 0 {
		return left, failed
	}
	stays := map[layout.ID]bool{}
	for i := range saved {
		id, _ := layout.ParseID(saved[i].Owner) // it is the text of one
		stays[id], bytes = true, bytes+saved[i].Size
	}
	until := w.cluster.Now().Add(stayFor)
	for ids := range slices.Chunk(slices.Collect(maps.Keys(stays)), sweptTogether) {
		if err := m.lastly(func(ctx context.Context) error {
			return results.Of(w.cluster).LeaveCopies(ctx, m.reg.ID(), ids, until)
		}); err != nil {
			w.options.Logger.Warn("the next worker with the directory has the objects, but readers won't wait for it",
				"directory", k.dir, "error", err)
			break
		}
	}
	w.options.Logger.Info("objects stay in the directory of the worker, for the next one with it", "directory", k.dir,
		"number", len(saved), "bytes", bytes, "readers wait", stayFor)
	return slices.DeleteFunc(left, func(r layout.Row) bool { return stays[r.ID] }), failed
}

// comeBack has the worker hold what an earlier one left in the directory, as far as it is
// still the result of its future.
func (k *keeper) comeBack(ctx context.Context, w *Worker) {
	if k.dir == "" {
		return
	}
	number := 0
	realm := k.cluster.Name()
	err := objects.Restore(k.dir, realm, func(s objects.Saved, open func() (io.ReadCloser, error)) (bool, error) {
		done, held, err := k.holdAgain(ctx, s, open)
		if held {
			number++
		}
		if errors.Is(err, objects.ErrFull) || layout.IsUnreadable(err) || errors.As(err, new(*fs.PathError)) {
			// It costs no other one.
			w.options.Logger.Warn("an object of an earlier worker can't be held again; it stays in the directory", "object",
				s.Hash, "future", s.Owner, "error", err)
			err = nil
		}
		return done, err
	})
	if err != nil && ctx.Err() == nil {
		w.options.Logger.Warn("objects of an earlier worker could not be taken over; the next start tries again",
			"directory", k.dir, "error", err)
	}
	if number > 0 {
		w.options.Logger.Info("objects of an earlier worker are held again", "directory", k.dir, "number", number)
	}
}

// holdAgain holds a saved object, and reports whether its file is of no more use.
func (k *keeper) holdAgain(ctx context.Context, s objects.Saved, open func() (io.ReadCloser, error),
) (done, held bool, err error) {
	id, err := layout.ParseID(s.Owner)
	if err != nil {
		return true, false, nil
	}
	row, err := k.cluster.Get(ctx, id)
	switch {
	case errors.Is(err, fdbmodel.ErrNotFound):
		return false, false, nil // it may be of another store
	case err != nil:
		return false, false, err
	case row.Object() != s.Hash:
		return true, false, nil
	}
	f, err := open()
	if errors.Is(err, os.ErrNotExist) {
		return true, false, nil // another worker with this directory was faster
	}
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	ref, err := k.store.Put(ctx, f, objects.PutOptions{Size: row.Result.Size, Kept: func(ref objects.Ref) {
		k.hold(id, ref.Hash, k.cluster.Now().Add(putGrace))
	}})
	if err != nil {
		return false, false, err
	}
	if ref.Hash.String() != s.Hash {
		k.drop(id, ref.Hash) // torn, or other bytes
		return true, false, k.reportDamaged(ctx, id, row.Result)
	}
	err = results.Of(k.cluster).AddCopy(ctx, k.reg.ID(), id, row.Result.Token, false)
	if errors.Is(err, fdbmodel.ErrTransition) || errors.Is(err, fdbmodel.ErrNotFound) {
		return true, false, nil // the next sweep drops it
	}
	return err == nil, err == nil, err
}

// reportDamaged reports that the file of a result was damaged. If several workers have left
// with a copy, it is not known which of them wrote it: readers find out when the time that
// they wait is over.
func (k *keeper) reportDamaged(ctx context.Context, id layout.ID, result *layout.Result) error {
	copies, err := results.Of(k.cluster).Copies(ctx, id)
	if err != nil {
		return err
	}
	var left []layout.WorkerID
	for i := range copies {
		if held := &copies[i]; !held.Alive && held.Object == result.Object {
			left = append(left, held.Worker)
		}
	}
	if len(left) > 1 {
		return nil
	}
	_, err = results.Of(k.cluster).ReportLost(ctx, id, result.Token, left)
	return err
}

// drop ends the holding of an object for a future; the next sweep drops it.
func (k *keeper) drop(id layout.ID, hash objects.Hash) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := (heldObject{id, hash}); k.held[key] != (holding{}) {
		delete(k.held, key)
		k.uses[hash]--
	}
}
