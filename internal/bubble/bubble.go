// Package bubble runs tests whose time passes at once.
package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Test runs f in a bubble, as [synctest.Test] does. Under the race detector the process has one processor until f has
// returned. For a timer that is due is run by whoever receives from it, and all goroutines of a bubble run theirs in
// one context of the detector. Two threads that do so at once damage it: the process dies of SIGSEGV or of a failed
// CHECK, or hangs (https://go.dev/issue/78156).
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if raced {
		open.one()
		defer open.all()
	}
	synctest.Test(t, f)
}

// open are the bubbles of the process, whose processors they share.
var open processors

// processors are those of the process.
type processors struct {
	mu      sync.Mutex
	bubbles int
	before  int // how many processors there were without bubbles
}

// one leaves the process one processor.
func (p *processors) one() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bubbles++; p.bubbles == 1 {
		p.before = runtime.GOMAXPROCS(1)
	}
}

// all gives the process all its processors once no bubble needs one alone.
func (p *processors) all() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bubbles--; p.bubbles == 0 {
		runtime.GOMAXPROCS(p.before)
	}
}
