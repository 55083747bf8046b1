package workers

import (
	"context"
	"sync"
)

// freeze holds up what a worker tells the store, from begin to end.
type freeze struct {
	mu   sync.Mutex
	over chan struct{} // closed at the end; nil while nothing is frozen
}

func (f *freeze) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over == nil {
		f.over = make(chan struct{})
	}
}

func (f *freeze) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over != nil {
		close(f.over)
		f.over = nil
	}
}

// wait waits until the freeze is over. It returns ctx's error if that ends first.
func (f *freeze) wait(ctx context.Context) error {
	f.mu.Lock()
	over := f.over
	f.mu.Unlock()
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
