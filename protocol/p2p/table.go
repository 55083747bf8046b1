package p2p

import (
	"context"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"

	"github.com/futura-run/futura/internal/budget"
	"github.com/futura-run/futura/internal/clock"
)

// shares are what one peer has, or all have together.
type shares struct {
	room           room
	handlers       *budget.Bytes
	blobs, fetches *turns
}

func newShares(r room, handlers, blobs int) shares {
	return shares{r, budget.New(int64(handlers)), newTurns(blobs), newTurns(blobs)}
}

// share is what a peer may use, and uses.
type share struct {
	shares
	sending  *budget.Bytes // streams to the peer
	messages *rate.Limiter
	relayed  *rate.Limiter // published messages, whoever wrote them
	users    int           // guarded by table.mu
}

// table has the shares of peers. A share stays while it is in use, and after that
// until there are too many, so that a peer that comes back has no new burst.
type table struct {
	limits Limits
	clock  clock.Clock
	all    shares

	mu     sync.Mutex
	shares map[peer.ID]*share
}

func newTable(l Limits, c clock.Clock) *table {
	return &table{
		limits: l, clock: c, shares: map[peer.ID]*share{},
		all: newShares(newRoomOfAll(&l), l.Handlers, l.Blobs),
	}
}

// use returns a peer's share, until release is called.
func (t *table) use(p peer.ID) (s *share, release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s = t.shares[p]
	if s == nil {
		if len(t.shares) >= 2*t.limits.Peers {
			t.sweep()
		}
		s = &share{
			sending:  budget.New(int64(max(1, t.limits.PeerStreams/2))), // the peer's own limit may be no higher
			shares:   newShares(newRoom(t.limits.PeerMemory, 1, t.limits.MaxMessage), t.limits.PeerHandlers, t.limits.PeerBlobs),
			messages: rate.NewLimiter(rate.Limit(t.limits.PeerRate), t.limits.PeerBurst),
			relayed:  rate.NewLimiter(rate.Limit(t.limits.PeerRate), t.limits.PeerBurst),
		}
		t.shares[p] = s
	}
	s.users++
	return s, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		s.users--
	}
}

// sweep drops shares that are not used: those with a full burst, and all if that is
// not enough.
func (t *table) sweep() {
	now := t.clock.Now()
	for _, rested := range []bool{true, false} {
		for p, s := range t.shares {
			if s.users == 0 && (!rested || s.messages.TokensAt(now) >= float64(t.limits.PeerBurst)) {
				delete(t.shares, p)
			}
		}
		if len(t.shares) < t.limits.Peers {
			return
		}
	}
}

// pass waits until the peer's rate admits one message more.
func (t *table) pass(ctx context.Context, s *share, longest time.Duration) error {
	now := t.clock.Now()
	turn := s.messages.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	if wait > longest {
		turn.CancelAt(now)
		return ErrBusy
	}
	return clock.Wait(ctx, t.clock, now.Add(wait))
}

// run takes a handler of the peer's share and of all.
func (t *table) run(ctx context.Context, s *share) (done func(), err error) {
	giveBack, err := take(ctx, s.handlers, t.all.handlers, 1)
	return func() { giveBack(1) }, err
}

// take waits for the peer's own first, so that a peer that wants too much waits for
// itself and not before others.
func take(ctx context.Context, own, all *budget.Bytes, n int64) (giveBack func(n int64), err error) {
	if err := own.Acquire(ctx, n); err != nil {
		return nil, err
	}
	if err := all.Acquire(ctx, n); err != nil {
		own.Release(n)
		return nil, err
	}
	return func(n int64) {
		own.Release(n)
		all.Release(n)
	}, nil
}
