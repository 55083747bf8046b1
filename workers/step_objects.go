package workers

import (
	"bytes"
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/held"
	"github.com/futura-run/futura/workers/objects/peer"
)

// dropObjects closes the object store of a membership, if it has one.
func (m *membership) dropObjects() error {
	if m.kept == nil {
		return nil
	}
	return m.kept.close()
}

// keeping returns the present membership, nil if it has no object store.
func (w *Worker) keeping() *membership {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.membership == nil || w.membership.kept == nil {
		return nil
	}
	return w.membership
}

// readObject reads an object; see seam.Worker.
func (w *Worker) readObject(object string, size int64) (value []byte, found bool) {
	m := w.keeping()
	if m == nil {
		return nil, false
	}
	return m.kept.read(object, size)
}

// dropObject loses an object; see seam.Worker.
func (w *Worker) dropObject(object string) bool {
	m := w.keeping()
	hash, err := objects.ParseHash(object)
	if m == nil || err != nil {
		return false
	}
	had, err := m.kept.store.Delete(hash)
	return had && err == nil
}

// objectRoom returns what an object store has left, and what it holds; see seam.Worker.
func (w *Worker) objectRoom() (free, used int64) {
	m := w.keeping()
	if m == nil {
		return -1, 0
	}
	stats := m.kept.store.Stats()
	return stats.Free, stats.MemoryUsed + stats.DiskUsed
}

// errNoStore is returned for objects that a worker is to hold and can't.
var errNoStore = errors.New("workers: the worker has no object store")

// keepValue holds a value that is to be put; see seam.Worker.
func (w *Worker) keepValue(ctx context.Context, id [16]byte, value []byte) (object, worker string, err error) {
	m := w.keeping()
	if m == nil {
		return "", "", errNoStore
	}
	object, _, holder, err := m.kept.Keep(ctx, id, bytes.NewReader(value), int64(len(value)))
	return object, string(holder), err
}

// takeCopy takes a copy of a result from those that have it; see seam.Worker.
func (w *Worker) takeCopy(ctx context.Context, id [16]byte, alone bool) error {
	m := w.keeping()
	if m == nil {
		return errNoStore
	}
	var owner peer.Owner
	copy(owner[:], id[:])
	return held.Refused(m.kept.take(ctx, owner, peer.TakeOptions{Alone: alone, Arrived: func(int64) {}}))
}

// stepPeers are the peers of a manual worker.
type stepPeers struct{ seam *seam.Worker }

// Holders implements peers.
func (p stepPeers) Holders(_ context.Context, workers []layout.WorkerInfo) ([]held.Holder, error) {
	var holders []held.Holder
	if p.seam.RoomOf != nil {
		for i := range workers {
			if room := p.seam.RoomOf(string(workers[i].ID)); room >= 0 {
				holders = append(holders, held.Holder{Worker: workers[i].ID, Room: room})
			}
		}
	}
	if len(holders) == 0 {
		return nil, held.ErrNoHolder
	}
	return holders, nil
}

// Take implements peers.
func (p stepPeers) Take(ctx context.Context, to *held.Holder, id layout.ID, o held.TakeOptions) error {
	return p.seam.Give(ctx, string(to.Worker), id, o.Alone)
}
