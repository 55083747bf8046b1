package admin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/internal/clock"
)

// reapTime bounds the reaping of a lost connection's workers. A janitor goes on where it ends.
const reapTime = 10 * time.Second

// promoteWithin is how long what it held is looked after.
const promoteWithin = 2 * time.Second

// Reaper returns a function that calls ReapConnection, has what was taken back go to other workers
// without a wait for a janitor, and logs what came of it. It is what
// OnDisconnect of a server and OnLost of a shared store are given.
func Reaper(c *fdbmodel.Cluster, logger *slog.Logger) func(connection string) {
	return func(connection string) {
		ctx, cancel := context.WithTimeout(context.Background(), reapTime)
		defer cancel()
		workers, futures, err := ReapConnection(ctx, c, connection)
		if err != nil {
			logger.Warn("a lost connection's workers are left to the janitor", "connection", connection, "error", err)
		} else if workers > 0 {
			logger.Info("a connection was lost", "workers", workers, "futures taken back", futures)
		}
		if futures > 0 {
			promote(ctx, c)
		}
	}
}

// promote makes ready what was taken back: it waits for a moment, and the dead worker may have
// been the janitor.
func promote(ctx context.Context, c *fdbmodel.Cluster) {
	until := c.Now().Add(promoteWithin)
	for {
		_, next, err := maintenance.Of(c).PromoteDue(ctx)
		if err != nil || next.IsZero() || next.After(until) || clock.Wait(ctx, c.Clock(), next) != nil {
			return // a janitor goes on
		}
	}
}

// ReapConnection reaps the workers that reached the store through a lost
// connection: their futures go back to the pool, or fail, as after any death of
// a worker. A janitor that belongs to no worker and reached it so loses its role.
// The process that serves the store calls it. It returns how many workers there
// were, and how many futures they held. A worker that returns finds that it was
// reaped, and can change nothing. A failure with one worker does not stop the
// reaping of the others. An unknown commit is retried and harmless.
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
	errs = append(errs, maintenance.Of(c).ReleaseConnection(ctx, connection))
	return workers, futures, errors.Join(errs...)
}
