package index

import (
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Calls wake the workers that futures are newly assigned to, and mark them as workers with
// assignments until they are forgotten.
type Calls struct {
	*Set
	// Workers are those that are called, each once.
	Workers []layout.WorkerID
}

// Update implements Index. A future that comes back to the worker that it was assigned to
// before does not call it: that worker gave it back.
func (c *Calls) Update(before, after *layout.Row) {
	if after == nil || after.Attempts.Assigned == "" {
		return
	}
	worker := after.Attempts.Assigned
	if before != nil && before.Attempts.Assigned == worker || slices.Contains(c.Workers, worker) {
		return
	}
	c.Workers = append(c.Workers, worker)
}

// Flush implements Index.
func (c *Calls) Flush(context.Context) error {
	for _, worker := range c.Workers {
		c.Tx.Set(c.Keys.Worker(worker, layout.WorkerAssigned), layout.Mark())
		c.Tx.SetVersionstampedValue(c.Keys.Worker(worker, layout.WorkerWake), layout.EncodeWake(), layout.StampOffset)
	}
	return nil
}
