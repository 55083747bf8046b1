package workers

import (
	"bytes"
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers/objects"
)

// dropObjects closes the object store of a life, if it has one.
func (l *life) dropObjects() error {
	if l.kept == nil {
		return nil
	}
	return l.kept.close()
}

// keeping returns the present membership, nil if it has no object store.
func (w *Worker) keeping() *life {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life == nil || w.life.kept == nil {
		return nil
	}
	return w.life
}

// readObject reads an object; see seam.Worker.
func (w *Worker) readObject(object string, size int64) (value []byte, found bool) {
	l := w.keeping()
	if l == nil {
		return nil, false
	}
	return l.kept.read(object, size)
}

// dropObject loses an object; see seam.Worker.
func (w *Worker) dropObject(object string) bool {
	l := w.keeping()
	hash, err := objects.ParseHash(object)
	if l == nil || err != nil {
		return false
	}
	had, err := l.kept.store.Delete(hash)
	return had && err == nil
}

// addCopy keeps a copy of a result; see seam.Worker.
func (w *Worker) addCopy(ctx context.Context, id [16]byte, worker string, sequence int64, value []byte) error {
	l := w.keeping()
	if l == nil {
		return errors.New("workers: the worker has no object store")
	}
	if _, _, _, err := l.kept.Keep(ctx, id, bytes.NewReader(value), int64(len(value))); err != nil {
		return err
	}
	return l.reg.AddCopy(ctx, id, layout.Token{Worker: layout.WorkerID(worker), Sequence: sequence}, false)
}
