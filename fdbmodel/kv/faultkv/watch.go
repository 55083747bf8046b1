package faultkv

import (
	"errors"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// watch is a watch that can be ended from outside of the wrapped store.
type watch struct {
	db    *Database
	inner kv.Watch
	cause atomic.Pointer[error]
}

// Done implements kv.Watch.
func (w *watch) Done() <-chan struct{} { return w.inner.Done() }

// Err implements kv.Watch.
func (w *watch) Err() error {
	select {
	case <-w.inner.Done():
	default:
		return nil
	}
	if cause := w.cause.Load(); cause != nil && errors.Is(w.inner.Err(), kv.ErrCancelled) {
		return *cause
	}
	return w.inner.Err()
}

// Cancel implements kv.Watch.
func (w *watch) Cancel() {
	w.end(kv.ErrCancelled)
}

// end cancels the wrapped watch and answers cause in its place.
func (w *watch) end(cause error) {
	w.db.forget(w)
	w.cause.CompareAndSwap(nil, &cause)
	w.inner.Cancel()
}

// addWatch keeps w for Recover, and from time to time drops what has ended.
func (d *Database) addWatch(w *watch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.watches) >= d.sweepAt {
		for old := range d.watches {
			select {
			case <-old.inner.Done():
				delete(d.watches, old)
			default:
			}
		}
		d.sweepAt = 2*len(d.watches) + 64
	}
	d.watches[w] = struct{}{}
}

func (d *Database) forget(w *watch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.watches, w)
}
