package embedded

import (
	"maps"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

const (
	// turnsFor is how long transactions with one tag take turns after a conflict.
	turnsFor = time.Second
	// turnWait bounds the wait for a turn. A transaction that has waited so long takes it from the one
	// that has it, which may belong to a process that was stopped.
	turnWait = 250 * time.Millisecond
	// maxTurns bounds the tags that take turns at a time. Others do without.
	maxTurns = 100
)

// turns has transactions with kv.Options.Turns run one after the other, by tag, for a while after two of
// them have met in a conflict. Turns only save time: the sequencer decides what conflicts.
type turns struct {
	clock clock.Clock
	mu    sync.Mutex
	byTag map[string]*turnOf
}

// turnOf is what the transactions with one tag share.
type turnOf struct {
	until time.Time     // they take turns
	taken chan struct{} // has a value while a transaction has the turn
	last  kv.Version    // the highest one that such a transaction committed at
}

// isOver reports whether they take no turns any more. A clock may have been set back.
func (of *turnOf) isOver(now time.Time) bool {
	left := of.until.Sub(now)
	return left <= 0 || left > turnsFor
}

// turn is what a transaction has until it ends.
type turn struct {
	tag   string
	taken chan struct{}
}

// meet says that two transactions with a tag have met in a conflict.
func (k *turns) meet(tag string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	maps.DeleteFunc(k.byTag, func(_ string, of *turnOf) bool { return of.isOver(now) })
	of := k.byTag[tag]
	if of == nil && len(k.byTag) >= maxTurns {
		return
	}
	if of == nil {
		of = &turnOf{taken: make(chan struct{}, 1), last: kv.NoVersion}
		if k.byTag == nil {
			k.byTag = map[string]*turnOf{}
		}
		k.byTag[tag] = of
	}
	of.until = now.Add(turnsFor)
}

// take waits for the turn of a tag, and returns the version of the last transaction that had it. It
// returns nil at once if transactions with the tag don't take turns.
func (k *turns) take(tag string) (*turn, kv.Version) {
	taken := k.find(tag)
	if taken == nil {
		return nil, kv.NoVersion
	}
	select {
	case taken <- struct{}{}:
	default:
		timer := k.clock.At(k.clock.Now().Add(turnWait))
		defer timer.Stop()
		select {
		case taken <- struct{}{}:
		case <-timer.C():
			taken = k.replace(tag, taken)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if of := k.byTag[tag]; of != nil {
		return &turn{tag, taken}, of.last
	}
	return &turn{tag, taken}, kv.NoVersion
}

func (k *turns) find(tag string) (taken chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.byTag[tag]
	if of == nil {
		return nil
	}
	if of.isOver(k.clock.Now()) {
		delete(k.byTag, tag)
		return nil
	}
	return of.taken
}

// replace takes the turn from the transaction that has it. If another one was faster, it returns a turn
// that keeps none waiting.
func (k *turns) replace(tag string, from chan struct{}) chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	taken := make(chan struct{}, 1)
	taken <- struct{}{}
	if of := k.byTag[tag]; of != nil && of.taken == from {
		of.taken = taken
	}
	return taken
}

// end passes a turn on that a transaction had, which committed at a version, or has kv.NoVersion.
func (k *turns) end(t *turn, at kv.Version) {
	k.mu.Lock()
	if of := k.byTag[t.tag]; of != nil {
		of.last = max(of.last, at)
	}
	k.mu.Unlock()
	<-t.taken
}
