package fdbmodel

import (
	"context"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// contestedFor is how long the transactions of a contest take turns after two of them
// have met.
const contestedFor = time.Second

// contest is among transactions of one process that change the same lanes: those that
// hand over slots of full lanes want the same futures in line, and those that submit to
// lanes with room count into the same record. After a conflict they come one after the
// other for a while, as each would make the next one run again. It says nothing of
// other processes: the store decides among them.
type contest struct {
	turn chan struct{}

	mu    sync.Mutex
	last  kv.Version // of the last one
	at    time.Time  // of it
	until time.Time  // they take turns
}

func newContest() *contest { return &contest{turn: make(chan struct{}, 1), last: kv.NoVersion} }

// isOn reports whether transactions take turns. One that runs again says so.
func (k *contest) isOn(now time.Time, attempt int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if attempt > 1 {
		k.until = now.Add(contestedFor)
	}
	left := k.until.Sub(now)
	return left > 0 && left <= contestedFor // no longer, if the clock was set back
}

// seen returns the version of the last transaction if that was a short while ago, and
// otherwise kv.NoVersion.
func (k *contest) seen(now time.Time) kv.Version {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.at).Abs() >= recentClaim {
		return kv.NoVersion
	}
	return k.last
}

func (k *contest) note(version kv.Version, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if version > k.last {
		k.last, k.at = version, now
	}
}

// transactIn is transact for a transaction of a contest, or of none if that is nil. It
// tells fn the version of the contest's last transaction if that was a short while ago,
// and otherwise kv.NoVersion: who reads at it does not meet that one. The turn is only a
// matter of speed: whoever has it, and whatever becomes of a commit with an unknown
// result, the store decides what conflicts.
func (c *Cluster) transactIn(ctx context.Context, k *contest, o kv.Options,
	fn func(ctx context.Context, tx kv.Attempt, last kv.Version) error,
) (kv.Result, error) {
	if k == nil {
		return c.Transact(ctx, o, func(tx kv.Attempt) error { return fn(ctx, tx, kv.NoVersion) })
	}
	hasTurn := false
	defer func() {
		if hasTurn {
			<-k.turn
		}
	}()
	result, err := c.Transact(ctx, o, func(tx kv.Attempt) error {
		if !hasTurn && k.isOn(c.clock.Now(), tx.Number) {
			select {
			case k.turn <- struct{}{}:
				hasTurn = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return fn(ctx, tx, k.seen(c.clock.Now()))
	})
	k.note(result.Version, c.clock.Now())
	return result, err
}
