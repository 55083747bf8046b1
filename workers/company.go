package workers

import "sync"

// company are goroutines that may be joined by others until a call waits for them.
type company struct {
	mu     sync.Mutex
	closed bool
	all    sync.WaitGroup
}

// start runs fn in a goroutine, unless the company is closed.
func (c *company) start(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.all.Go(fn)
	}
}

// wait closes the company and waits until it has ended.
func (c *company) wait() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.all.Wait()
}
