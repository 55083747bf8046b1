package p2p

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/internal/budget"
)

// turnTime is how long a transfer goes on while others wait for its place. Then it waits
// too, at the end of the line, and goes on where it was: those that are slow, or slow on
// purpose, hold up no others for long.
const turnTime = 10 * time.Second

// errTurn ends the turn of a transfer.
var errTurn = errors.New("p2p: others wait for their turn")

// turns are places for transfers.
type turns struct {
	places  *budget.Bytes
	waiting atomic.Int64
}

func newTurns(n int) *turns { return &turns{places: budget.New(int64(n))} }

func (t *turns) acquire(ctx context.Context) error {
	if t.places.TryAcquire(1) {
		return nil
	}
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	return t.places.Acquire(ctx, 1)
}

func (t *turns) release() { t.places.Release(1) }

// turn is a place of a peer's own and of all.
type turn struct {
	own, all *turns
	host     *Host
	since    time.Time
}

// takeTurn waits for a place of the peer's own first, so that a peer that wants too many waits
// for itself.
func (h *Host) takeTurn(ctx context.Context, own, all *turns) (*turn, error) {
	if err := own.acquire(ctx); err != nil {
		return nil, err
	}
	if err := all.acquire(ctx); err != nil {
		own.release()
		return nil, err
	}
	return &turn{own, all, h, h.clock.Now()}, nil
}

// isOver reports whether the place is another one's now.
func (t *turn) isOver() bool {
	return t.own.waiting.Load()+t.all.waiting.Load() > 0 && t.host.clock.Now().Sub(t.since) >= turnTime
}

func (t *turn) giveBack() {
	t.all.release()
	t.own.release()
}
