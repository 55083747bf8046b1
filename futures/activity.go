package futures

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/activity"
)

// Activity is what happened in a cluster from one time to another.
type Activity = activity.Series

// Spans of Activity: the longest one by minute, and by hour.
const (
	MaxActivityMinutes = activity.MinutesFor
	MaxActivityHours   = activity.HoursFor
)

// Activity returns what happened in the cluster from one time to another, by time.Minute or by
// time.Hour; see activity.Read.
func (c *Client) Activity(ctx context.Context, from, to time.Time, step time.Duration) (*Activity, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	return activity.Read(ctx, c.cluster, from, to, step)
}
