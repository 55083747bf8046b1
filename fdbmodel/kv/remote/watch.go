package remote

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// watch implements kv.Watch. The server says when it has fired.
type watch struct {
	tx   *tx
	link *link // nil if it failed from the start
	id   uint64
	done chan struct{}

	mu    sync.Mutex
	ended bool
	err   error
}

// Watch implements kv.Tx. It is sent at once where it is the first read, because the caller may not wait for
// anything in the transaction before its commit; else with the next question.
func (t *tx) Watch(key []byte) kv.Watch {
	w := &watch{tx: t, done: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.addWatch(w, key); err != nil {
		w.settle(err)
	}
	return w
}

func (t *tx) addWatch(w *watch, key []byte) error {
	if err := t.usable(); err != nil {
		return err
	}
	if t.link == nil {
		l, _, err := t.db.current()
		if err != nil {
			return err
		}
		if l == nil {
			// Without it the transaction would wait for nothing.
			err := t.db.away(fmt.Errorf("%w: no connection to %s", kv.ErrUnavailable, t.db.address))
			t.fail(err)
			return err
		}
		if err := t.bind(l); err != nil {
			t.fail(err)
			return err
		}
	}
	asked := t.reading
	t.reading = true
	id, err := t.link.addWatch(w)
	if err != nil {
		return err
	}
	w.link, w.id = t.link, id
	t.watches = append(t.watches, w)
	t.ops = appendBytes(binary.AppendUvarint(append(t.ops, opWatch), id), cut(key))
	if !asked {
		t.flush()
	}
	return nil
}

// Done implements kv.Watch.
func (w *watch) Done() <-chan struct{} { return w.done }

// Err implements kv.Watch.
func (w *watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *watch) hasEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// Cancel implements kv.Watch.
func (w *watch) Cancel() {
	if !w.settle(kv.ErrCancelled) || w.link == nil {
		return
	}
	w.link.dropWatch(w.id)
	w.tx.cancelWatch(w)
}

// cancelWatch tells the server. A transaction that is open does so in turn with
// its other operations, one that is being committed when that is done, and one
// that is over has done so.
func (t *tx) cancelWatch(w *watch) {
	t.mu.Lock()
	stage := t.stage
	if stage == stageOpen {
		t.ops = binary.AppendUvarint(append(t.ops, opCancelWatch), w.id)
		t.added()
	}
	t.mu.Unlock()
	if stage == stageCommitted {
		w.link.cancelWatch(w.id)
	}
}

// settle gives the watch its result, and reports whether it had none.
func (w *watch) settle(result error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.ended, w.err = true, result
	close(w.done)
	return true
}
