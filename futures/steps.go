package futures

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/steps"
)

// StepView is a recorded step of a future.
type StepView struct {
	Name string `json:"name"`
	// Number counts the steps of a future in the order in which they were recorded, from 1.
	Number int `json:"number"`
	// Attempt is the number of the attempt in which it ran, from 1.
	Attempt   int       `json:"attempt"`
	Worker    WorkerID  `json:"worker"`
	StartedAt time.Time `json:"started_at"`
	At        time.Time `json:"recorded_at"`
	// Size is that of the value, in bytes as they are stored.
	Size int64 `json:"size"`
	// Wake is when a sleep ends, the zero time for other steps.
	Wake time.Time `json:"wakes_at,omitzero"`
	// Origin is copied for a step that a fork took over from its source, and set for one that was given a value; empty
	// for one that the future has recorded itself.
	Origin string `json:"origin,omitempty"`
	// Unused is set if the last attempt that returned a result did not ask for it.
	Unused bool `json:"unused,omitempty"`
}

// Steps returns the steps that a future has recorded, in the order in which they were. It returns
// ErrNotFound.
func (c *Client) Steps(ctx context.Context, id ID) ([]StepView, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	all, err := steps.Of(c.cluster).List(ctx, id)
	if err != nil {
		return nil, err
	}
	views := make([]StepView, len(all))
	for i := range all {
		s := &all[i]
		views[i] = StepView{Name: s.Name, Number: s.Number, Attempt: s.Attempt, Worker: s.Worker,
			StartedAt: time.UnixMilli(s.StartedAt).UTC(), At: time.UnixMilli(s.At).UTC(), Size: s.Size,
			Origin: s.Origin, Unused: s.Unused}
		if s.Wake != 0 {
			views[i].Wake = time.UnixMilli(min(s.Wake, lastMillis)).UTC()
		}
	}
	return views, nil
}

// StartOver is Retry for a future that has failed, without its steps: all of it runs again. Retry
// keeps them, so that the future goes on from the step that failed, on today's code. It returns
// ErrNotFound, and ErrTransition unless the future has failed. An unknown commit is retried.
func (c *Client) StartOver(ctx context.Context, id ID) error {
	if err := c.usable(); err != nil {
		return err
	}
	return steps.Of(c.cluster).StartOver(ctx, id)
}
