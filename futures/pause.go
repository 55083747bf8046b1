package futures

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/pauses"
)

// What can be paused.
const (
	PauseQueue    = pauses.Queue
	PauseFunction = pauses.Function
)

// Pause is a queue, or a function, that no worker takes futures of.
type Pause struct {
	// What is PauseQueue or PauseFunction. An alias was resolved when it was paused.
	What, Name string
	At         time.Time
	Reason     string
}

func pauseOf(p *pauses.Pause) Pause {
	return Pause{What: p.What, Name: p.Name, At: timeOf(p.At), Reason: p.Reason}
}

// Pause keeps workers from taking futures of a queue, or of a function, until Resume is
// called; futures can be submitted, and what workers have taken runs. A module is paused
// with all of its methods. Workers that share this client take no more once Pause returns,
// apart from a claim that is under way. Others take no more after their next heartbeat
// (Config.Heartbeat, 5 s by default); one whose heartbeats fail is declared dead and can
// take nothing. Pausing again changes the reason, which has at most 256 bytes; up to 1,000
// queues and functions can be paused. It returns ErrBadName, ErrBadSpec, ErrTooLarge, and
// ErrNotFound for an unknown alias. An unknown commit is retried and harmless.
func (c *Client) Pause(ctx context.Context, what, name, reason string) (Pause, error) {
	p, err := pauses.Of(c.cluster).Pause(ctx, what, name, reason)
	if err != nil {
		return Pause{}, err
	}
	return pauseOf(&p), nil
}

// Resume ends a Pause, and reports whether there was one. Workers that share this client
// look for work at once, others after their next heartbeat. It returns ErrBadName.
func (c *Client) Resume(ctx context.Context, what, name string) (paused bool, err error) {
	return pauses.Of(c.cluster).Resume(ctx, what, name)
}

// Pauses returns what is paused.
func (c *Client) Pauses(ctx context.Context) ([]Pause, error) {
	list, err := pauses.Of(c.cluster).List(ctx)
	views := make([]Pause, len(list))
	for i := range list {
		views[i] = pauseOf(&list[i])
	}
	return views, err
}
