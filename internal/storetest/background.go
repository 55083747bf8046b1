package storetest

import (
	"context"
	"sync"
	"testing"
)

// Background runs something, such as a worker, until stop is called or the test
// ends. An error that it returns fails the test.
func Background(t testing.TB, run func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
