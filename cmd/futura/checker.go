package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/futura-run/futura/workers/wasm"
)

// checker reports whether modules can run, in a process without a worker. What it
// needs for that starts with the first module.
type checker struct {
	log *slog.Logger

	mu       sync.Mutex
	executor *wasm.Executor
}

// check loads a module as a worker would.
func (c *checker) check(ctx context.Context, cid string, module []byte) error {
	executor, err := c.start(ctx)
	if err != nil {
		return err
	}
	return executor.Check(ctx, cid, module)
}

func (c *checker) start(ctx context.Context) (*wasm.Executor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.executor == nil {
		// One module is loaded at a time, which bounds the memory that it takes.
		config := wasm.Config{PoolSize: 1, Logger: c.log}
		cacheModules(&config.CacheDir, c.log)
		executor, err := wasm.New(ctx, config)
		if err != nil {
			return nil, err
		}
		c.executor = executor
	}
	return c.executor, nil
}

// close ends what was started.
func (c *checker) close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.executor == nil {
		return nil
	}
	return c.executor.Close(ctx)
}
