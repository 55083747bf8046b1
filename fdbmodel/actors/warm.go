package actors

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const (
	// maxWarm is how many states of actors a process keeps in memory, and maxWarmState how many
	// bytes the largest of them has.
	maxWarm      = 4096
	maxWarmState = 4 << 10
	// mostMisled is the share of turns on a state from memory that may run twice, because another process had
	// changed it. Above that one turn in misledAgain finds out whether it still is so, and the others read.
	mostMisled  = 0.25
	misledAgain = 8
	misledOver  = 16 // turns that the share is an average of
)

// Warm are states of actors as turns in this process have left them. One may have changed since in
// another process: the end of a turn finds out.
type Warm struct {
	mu     sync.Mutex
	states *lru.Cache[Ref, State]
	misled float64
	asked  int
}

// Warm returns the warm states of the cluster.
func (a *Actors) Warm() *Warm {
	type key struct{}
	return a.cluster.Room(key{}, func() any {
		states, _ := lru.New[Ref, State](maxWarm) // the size alone could be wrong
		return &Warm{states: states}
	}).(*Warm)
}

// Get returns the state that was kept of an actor, and false for none, and if too many of them were old ones of
// late. known says that this process has made the turn before: then it is no old one.
func (w *Warm) Get(r Ref, known bool) (State, bool) {
	s, kept := w.states.Get(r)
	if !kept || known {
		return s, kept
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.misled > mostMisled {
		w.asked++
		kept = w.asked%misledAgain == 0
	}
	return s, kept
}

// Learn is told whether a turn on a state from Get, which was not known, came to count.
func (w *Warm) Learn(counts bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.misled -= w.misled / misledOver
	if !counts {
		w.misled += 1. / misledOver
	}
}

// Keep keeps the states that a turn has left with a commit. With kv.NoVersion, as after a conflict,
// a lost claim and an unknown commit, it forgets what is known of them.
func (w *Warm) Keep(states []State, version kv.Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range states {
		switch known, is := w.states.Peek(s.Ref); {
		case version == kv.NoVersion || !s.Exists() || len(s.Value) > maxWarmState:
			w.states.Remove(s.Ref)
		case !is || known.seen < version:
			w.states.Add(s.Ref, s.At(version))
		}
	}
}
