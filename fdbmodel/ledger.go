package fdbmodel

import (
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// ledgerLanded is how many futures of claims that landed a ledger remembers.
// Forgetting one too early costs a conflict and nothing else.
const ledgerLanded = 4096

// ledger holds the futures that claims of this process are about to take, and
// those that they took at a version which another claim's snapshot may precede.
// Workers that share a process so never compete for a future, and take futures
// in the order of the index.
type ledger struct {
	mu     sync.Mutex
	taken  map[layout.ID]taking
	flying int                     // futures whose claims are in flight
	landed [ledgerLanded]layout.ID // a ring
	next   int                     // in landed
}

// taking is a claim of a future.
type taking struct {
	at    kv.Version // of the claim, inFlight until it is known
	until time.Time  // snapshots that precede it have ended, unless it is in flight
}

// inFlight is later than every snapshot.
const inFlight = kv.Version(1<<63 - 1)

// hides reports whether a snapshot may show a future that the claim has. A later
// snapshot at a lower version is of a store that was restored from a backup, in
// which the future may be ready again.
func (t taking) hides(snapshot kv.Version, now time.Time) bool {
	return snapshot < t.at && (t.at == inFlight || now.Before(t.until))
}

// gone reports whether another claim has a future, as far as a snapshot at a
// version can tell.
func (l *ledger) gone(id layout.ID, snapshot kv.Version, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken[id].hides(snapshot, now)
}

// hasLanded is gone for claims that took their futures. Who relies on one that is in
// flight waits for what nobody may take.
func (l *ledger) hasLanded(id layout.ID, snapshot kv.Version, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.taken[id]
	return t.at != inFlight && t.hides(snapshot, now)
}

// take enters a future for a claim whose snapshot is at a version. It returns
// false if the future is gone.
func (l *ledger) take(id layout.ID, snapshot kv.Version, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[id].hides(snapshot, now) {
		return false
	}
	if l.taken == nil {
		l.taken = map[layout.ID]taking{}
	}
	l.taken[id] = taking{at: inFlight}
	l.flying++
	return true
}

// release removes futures of a claim that did not take them, or whose commit has
// an unknown result: if that lands, later claims of them conflict.
func (l *ledger) release(entries []layout.ReadyEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range entries {
		delete(l.taken, entries[i].ID)
	}
	l.flying -= len(entries)
}

// land records that a claim took its futures at a version.
func (l *ledger) land(entries []layout.ReadyEntry, at kv.Version, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range entries {
		if old := l.landed[l.next]; l.taken[old].at != inFlight {
			delete(l.taken, old)
		}
		l.landed[l.next] = entries[i].ID
		l.next = (l.next + 1) % ledgerLanded
		l.taken[entries[i].ID] = taking{at, now.Add(kv.TxLifetime)}
	}
	l.flying -= len(entries)
}

// crowd is how many futures a snapshot may show that other claims have.
func (l *ledger) crowd() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flying
}
