//go:build fdb

package fdbkv

import (
	"errors"
	"sync"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// watch is a future of FoundationDB's that one goroutine waits for.
type watch struct {
	future fdb.FutureNil // nil if the watch failed from the start
	done   chan struct{}

	mu    sync.Mutex
	ended bool
	err   error
}

// Watch implements kv.Tx.
func (t *tx) Watch(key []byte) kv.Watch {
	w := &watch{done: make(chan struct{})}
	err := t.usable()
	if err == nil && t.db == nil {
		err = ErrNotOwner
	}
	if err == nil {
		err = kv.CheckLegal(key)
	}
	if err != nil {
		w.settle(err)
		return w
	}
	t.reading = true
	w.future = t.native.Watch(fdb.Key(key))
	if err := t.db.addWatch(w); err != nil {
		w.end(err)
		return w
	}
	t.watches = append(t.watches, w)
	go func() {
		defer t.db.removeWatch(w)
		w.await()
	}()
	return w
}

// await settles the watch when the store does. Whoever cancelled the
// transaction says why.
func (w *watch) await() {
	err := w.future.Get()
	var cause fdb.Error
	if errors.As(err, &cause) && cause.Code == codeCancelled {
		<-w.done
		return
	}
	w.settle(translate(err))
}

// Done implements kv.Watch.
func (w *watch) Done() <-chan struct{} { return w.done }

// Err implements kv.Watch.
func (w *watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Cancel implements kv.Watch.
func (w *watch) Cancel() { w.end(kv.ErrCancelled) }

// end settles the watch and frees what it holds in the store.
func (w *watch) end(reason error) {
	w.settle(reason)
	if w.future != nil {
		w.future.Cancel()
	}
}

// settle gives the watch its result, unless it has one.
func (w *watch) settle(result error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended, w.err = true, result
	close(w.done)
}
