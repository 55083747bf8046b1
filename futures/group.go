package futures

import (
	"sync"

	"github.com/futura-run/futura/internal/signal"
)

// waiter is a group's interest in one entry.
type waiter struct {
	next  *waiter
	group *group
	index int
}

// group is one call that awaits several futures.
type group struct {
	signal chan struct{} // sent a value when all have ended, or, with each, some, or a wait was refused
	light  bool          // values are not wanted

	mu      sync.Mutex
	left    int
	each    bool
	ended   []int // not taken yet, in the order of their ends
	refused error // of a wait for those that are left
}

func newGroup(n int, each bool) *group {
	return &group{signal: make(chan struct{}, 1), left: n, each: each}
}

func (g *group) end(index int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left--
	if g.each {
		g.ended = append(g.ended, index)
	}
	if g.each || g.left == 0 {
		signal.Send(g.signal)
	}
}

// refuse ends a wait of the group with an error.
func (g *group) refuse(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = err
	signal.Send(g.signal)
}

// refusal returns the error that a wait was refused with, nil if it was not, or all have ended since.
func (g *group) refusal() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left == 0 {
		return nil
	}
	return g.refused
}

func (g *group) over() bool { return g.open() == 0 }

// open returns how many have not ended.
func (g *group) open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.left
}

func (g *group) take() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	ended := g.ended
	g.ended = nil
	return ended
}
