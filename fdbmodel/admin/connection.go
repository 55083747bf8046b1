package admin

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel"
)

// ReapConnection reaps the workers that reached the store through a lost
// connection: their futures go back to the pool, or fail, as after any death of
// a worker. The process that serves the store calls it. It returns how many
// workers there were, and how many futures they held. A worker that returns
// finds that it was reaped, and can change nothing. A failure with one worker
// does not stop the reaping of the others. An unknown commit is retried and
// harmless.
func ReapConnection(ctx context.Context, c *fdbmodel.Cluster, connection string) (workers, futures int, err error) {
	if connection == "" {
		return 0, 0, nil
	}
	members, err := c.Workers(ctx)
	if err != nil {
		return 0, 0, err
	}
	var errs []error
	for _, m := range members {
		if m.Connection != connection {
			continue
		}
		workers++
		n, err := c.ForceReap(ctx, m.ID)
		futures += n
		errs = append(errs, err)
	}
	return workers, futures, errors.Join(errs...)
}
