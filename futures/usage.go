package futures

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/metering"
)

// Use is what a worker, by a name that survives its restarts, has used on a day.
type Use = metering.Use

// MaxUsageDays is the most days that Usage reads.
const MaxUsageDays = metering.MaxDays

// Usage calls fn with what the workers of the cluster have used, from one day of UTC to
// another, both included, by day and name; see metering.Read.
func (c *Client) Usage(ctx context.Context, from, to time.Time, fn func(*Use) error) error {
	if err := c.usable(); err != nil {
		return err
	}
	return metering.Read(ctx, c.cluster, from, to, fn)
}
