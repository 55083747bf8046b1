package futures

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// Use is what a worker, by a name that survives its restarts, has used on a day.
type Use = fdbmodel.MeteredUse

// MaxUsageDays is the most days that Usage reads.
const MaxUsageDays = fdbmodel.MaxMeteredDays

// Usage calls fn with what the workers of the cluster have used, from one day of UTC to
// another, both included, by day and name; see fdbmodel.Cluster.Metered.
func (c *Client) Usage(ctx context.Context, from, to time.Time, fn func(*Use) error) error {
	if err := c.usable(); err != nil {
		return err
	}
	return c.cluster.Metered(ctx, from, to, fn)
}
