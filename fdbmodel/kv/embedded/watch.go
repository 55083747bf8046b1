package embedded

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// watch implements kv.Watch. Its table's lock guards everything that changes.
type watch struct {
	table *watchTable
	key   []byte
	// seen is the value, nil for none.
	seen []byte
	done chan struct{}

	// since is the version from which on the value counts.
	since kv.Version
	armed bool
	ended bool
	waits bool // it is pending
	err   error
}

// Done implements kv.Watch.
func (w *watch) Done() <-chan struct{} { return w.done }

// Err implements kv.Watch.
func (w *watch) Err() error {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	return w.err
}

// Cancel implements kv.Watch.
func (w *watch) Cancel() { w.table.end(w, kv.ErrCancelled) }

// failedWatch is a watch that never was.
func failedWatch(table *watchTable, err error) *watch {
	w := &watch{table: table, done: make(chan struct{}), ended: true, err: err}
	close(w.done)
	return w
}

// watchTable is the watches of a store.
type watchTable struct {
	index *index
	line  *timeline
	// live is how many are armed, so that commits need not look when none is.
	live atomic.Int64

	mu    sync.Mutex
	all   map[*watch]struct{}
	byKey map[string][]*watch
	// keys are those of byKey.
	keys btree.Set[string]
	// pending are those whose row has a revision that is not published yet.
	pending []*watch
}

func (t *watchTable) init(x *index, line *timeline) {
	t.index, t.line = x, line
	t.all, t.byKey = map[*watch]struct{}{}, map[string][]*watch{}
}

// open makes a watch that arm starts, and reports whether there is room for it.
func (t *watchTable) open(key, seen []byte) (w *watch, opened bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= kv.MaxWatches {
		return failedWatch(t, kv.ErrTooManyWatches), false
	}
	w = &watch{table: t, key: bytes.Clone(key), seen: bytes.Clone(seen), done: make(chan struct{})}
	t.all[w] = struct{}{}
	return w, true
}

func (t *watchTable) end(w *watch, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(w, err)
}

func (t *watchTable) endLocked(w *watch, err error) {
	if w.ended {
		return
	}
	w.ended, w.err = true, err
	delete(t.all, w)
	if w.armed {
		t.live.Add(-1)
		peers := t.byKey[string(w.key)]
		for i, peer := range peers {
			if peer == w {
				peers[i] = peers[len(peers)-1]
				peers[len(peers)-1] = nil
				peers = peers[:len(peers)-1]
				break
			}
		}
		if len(peers) == 0 {
			delete(t.byKey, string(w.key))
			t.keys.Delete(string(w.key))
		} else {
			t.byKey[string(w.key)] = peers
		}
	}
	close(w.done)
}

// endAll ends every watch, armed or not.
func (t *watchTable) endAll(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.all {
		t.endLocked(w, err)
	}
	t.pending = nil
}

func (t *watchTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// arm starts a watch whose transaction committed at since, or read there. It counts
// as live before its row is read, and commits ask for live watches under the lock
// that this takes: so either a commit collects the row, or the row is seen here with
// the commit's revision.
func (t *watchTable) arm(w *watch, since kv.Version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.ended {
		return
	}
	w.armed, w.since = true, since
	if len(t.byKey[string(w.key)]) == 0 {
		t.keys.Insert(string(w.key))
	}
	t.byKey[string(w.key)] = append(t.byKey[string(w.key)], w)
	t.live.Add(1)
	t.look(w)
}

// look reviews a watch now, and when more is published if it has to look again.
func (t *watchTable) look(w *watch) {
	if t.review(w) && !w.waits {
		w.waits = true
		t.pending = append(t.pending, w)
	}
}

// touched appends to watches those on the keys.
func (t *watchTable) touched(watches []*watch, keys [][]byte) []*watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		watches = append(watches, t.byKey[string(key)]...)
	}
	return watches
}

// within appends to watches those on keys of a range.
func (t *watchTable) within(watches []*watch, begin, end []byte) []*watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys.Ascend(string(begin), func(key string) bool {
		if key >= string(end) {
			return false
		}
		watches = append(watches, t.byKey[key]...)
		return true
	})
	return watches
}

// published looks at the watches that the published commits touched.
func (t *watchTable) published(touched []*watch) {
	if len(touched) == 0 && t.live.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	again := t.pending
	t.pending = nil
	for _, w := range again {
		w.waits = false
	}
	for _, w := range append(again, touched...) {
		if !w.ended {
			t.look(w)
		}
	}
}

// review fires the watch if its row differs, and reports whether it has to look
// again because the row has a revision that is not published.
func (t *watchTable) review(w *watch) bool {
	at := max(t.line.published(), w.since)
	differs, newest := t.index.differs(w.key, at, w.seen)
	if differs {
		t.endLocked(w, nil)
		return false
	}
	return newest > at
}
