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
)

// Warm are states of actors as turns in this process have left them. One may have changed since in
// another process: the end of a turn finds out.
type Warm struct {
	mu     sync.Mutex
	states *lru.Cache[Ref, State]
}

// Warm returns the warm states of the cluster.
func (a *Actors) Warm() *Warm {
	type key struct{}
	return a.cluster.Room(key{}, func() any {
		states, _ := lru.New[Ref, State](maxWarm) // the size alone could be wrong
		return &Warm{states: states}
	}).(*Warm)
}

// Get returns the state that was kept of an actor, and false for none.
func (w *Warm) Get(r Ref) (State, bool) { return w.states.Get(r) }

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
