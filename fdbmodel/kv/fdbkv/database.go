//go:build fdb

package fdbkv

import (
	"fmt"
	"sync"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Database is an open cluster. It implements kv.Database.
type Database struct {
	native fdb.Database

	mu      sync.Mutex
	closed  bool
	waits   map[*tx]int         // transactions that someone waits for, and how often
	watches map[*watch]struct{} // watches that have not ended
	running sync.WaitGroup      // one for each wait and each watch
}

func newDatabase(native fdb.Database) *Database {
	return &Database{native: native, waits: map[*tx]int{}, watches: map[*watch]struct{}{}}
}

// Begin implements kv.Database.
func (d *Database) Begin(o kv.Options) kv.Tx {
	native, err := d.native.CreateTransaction()
	if err != nil {
		return &tx{db: d, unusable: translate(err)}
	}
	t := &tx{db: d, native: native}
	if len(o.Tag) > kv.MaxTag {
		t.fail(fmt.Errorf("fdbkv: tag %q is longer than %d bytes", o.Tag, kv.MaxTag))
	} else if o.Tag != "" {
		t.fail(translate(native.Options().SetTag(o.Tag)))
	}
	return t
}

// Close implements kv.Database. It returns once everything that waited in the
// store has returned.
func (d *Database) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	for t := range d.waits {
		t.abort()
	}
	watches := make([]*watch, 0, len(d.watches))
	for w := range d.watches {
		watches = append(watches, w)
	}
	d.mu.Unlock()
	for _, w := range watches {
		w.end(kv.ErrClosed)
	}
	d.running.Wait()
	return nil
}

func (d *Database) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// enter says that someone waits for t, which a Close then cancels.
func (d *Database) enter(t *tx) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return kv.ErrClosed
	}
	d.waits[t]++
	d.running.Add(1)
	return nil
}

func (d *Database) leave(t *tx) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits[t]--
	if d.waits[t] == 0 {
		delete(d.waits, t)
	}
	d.running.Done()
}

func (d *Database) addWatch(w *watch) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return kv.ErrClosed
	}
	d.watches[w] = struct{}{}
	d.running.Add(1)
	return nil
}

func (d *Database) removeWatch(w *watch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.watches, w)
	d.running.Done()
}
