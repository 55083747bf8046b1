package embedded

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// epochClosed is what the count of readers falls below when none may begin
// to read at an epoch any more.
const epochClosed = math.MinInt64 / 2

// maxEpochs is how many epochs without readers are kept at most.
const maxEpochs = 4096

// epoch is a version that was published, and how many transactions read at it
// or between it and the next.
type epoch struct {
	version kv.Version
	readers atomic.Int64
	// superseded is when the next one was published.
	superseded time.Time
}

// enter counts a reader in, unless the epoch is closed.
func (e *epoch) enter() bool {
	for {
		n := e.readers.Load()
		if n < 0 {
			return false
		}
		if e.readers.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (e *epoch) leave() { e.readers.Add(-1) }

func (e *epoch) close() bool { return e.readers.CompareAndSwap(0, epochClosed) }

// timeline is the published versions that can be read.
type timeline struct {
	lifetime time.Duration

	current atomic.Pointer[epoch]
	// floor is the lowest version that can be read.
	floor atomic.Int64

	mu     sync.Mutex
	epochs queue[*epoch]
}

func (t *timeline) init(v kv.Version, lifetime time.Duration) {
	t.lifetime = lifetime
	e := &epoch{version: v}
	t.epochs.push(e)
	t.current.Store(e)
	t.floor.Store(int64(v))
}

func (t *timeline) published() kv.Version { return t.current.Load().version }
func (t *timeline) lowest() kv.Version    { return kv.Version(t.floor.Load()) }

// publish makes v the version that new transactions read at.
func (t *timeline) publish(v kv.Version, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	previous := *t.epochs.back()
	if previous.version >= v {
		return
	}
	previous.superseded = now
	e := &epoch{version: v}
	t.epochs.push(e)
	t.current.Store(e)
}

// readable returns how many versions can be read.
func (t *timeline) readable() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epochs.len()
}

// enter begins to read at the version that was published last.
func (t *timeline) enter() *epoch {
	for {
		if e := t.current.Load(); e.enter() {
			return e
		}
	}
}

// enterAt begins to read at v, which has been reached. What was superseded for
// longer than a lifetime is too old, also while it has not been dropped.
func (t *timeline) enterAt(v kv.Version, now time.Time) (*epoch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.epochs.items[t.epochs.head:]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].version > v {
			continue
		}
		old := i < len(all)-1 && now.Sub(all[i].superseded) > t.lifetime
		if !old && all[i].enter() {
			return all[i], nil
		}
		break
	}
	return nil, kv.ErrTooOld
}

// advance raises the floor by one epoch if it has no readers and was
// superseded for keep, or if it is so old that its readers have outlived their
// lifetime. It returns false if the floor stays.
func (t *timeline) advance(now time.Time, keep time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epochs.len() < 2 {
		return false
	}
	oldest := *t.epochs.front()
	age := now.Sub(oldest.superseded)
	if age <= t.lifetime && !((age >= keep || t.epochs.len() > maxEpochs) && oldest.close()) {
		return false
	}
	t.epochs.pop()
	t.floor.Store(int64((*t.epochs.front()).version))
	return true
}
