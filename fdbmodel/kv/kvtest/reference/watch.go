package reference

import (
	"bytes"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// watch counts from the commit of its transaction on. Its fields are guarded
// by the store's lock.
type watch struct {
	db    *Database
	key   []byte
	seen  []byte
	armed bool
	ended bool
	err   error
	done  chan struct{}
}

// Done implements kv.Watch.
func (w *watch) Done() <-chan struct{} { return w.done }

// Err implements kv.Watch.
func (w *watch) Err() error {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	return w.err
}

// Cancel implements kv.Watch.
func (w *watch) Cancel() {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	w.end(kv.ErrCancelled)
}

// look ends an armed watch if the value is not the one that was seen.
func (w *watch) look() {
	now := w.db.at(string(w.key), w.db.version())
	if w.armed && ((now == nil) != (w.seen == nil) || !bytes.Equal(now, w.seen)) {
		w.end(nil)
	}
}

func (w *watch) end(err error) {
	if w.ended {
		return
	}
	w.ended, w.err = true, err
	delete(w.db.watches, w)
	close(w.done)
}
