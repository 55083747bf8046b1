package fdbmodel

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// serializedFor is how long transactions take turns after a conflict.
const serializedFor = time.Second

// serializer runs transactions of this process one after the other for a while once two of
// them have met in a conflict. It is for transactions that change the same lanes: those that
// hand over slots of full lanes want the same futures in line, and those that submit to
// lanes with room count into the same record. The store decides among processes.
type serializer struct {
	turn chan struct{}

	mu    sync.Mutex
	last  kv.Version // of the last one
	at    time.Time  // of it
	until time.Time  // they take turns
}

func newSerializer() *serializer {
	return &serializer{turn: make(chan struct{}, 1), last: kv.NoVersion}
}

// isOn reports whether transactions take turns. One that runs again says so.
func (k *serializer) isOn(now time.Time, attempt int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if attempt > 1 {
		k.until = now.Add(serializedFor)
	}
	left := k.until.Sub(now)
	return left > 0 && left <= serializedFor // no longer, if the clock was set back
}

// seen returns the version of the last transaction if that was a short while ago, and
// otherwise kv.NoVersion.
func (k *serializer) seen(now time.Time) kv.Version {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.at).Abs() >= recentClaim {
		return kv.NoVersion
	}
	return k.last
}

func (k *serializer) note(version kv.Version, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if version > k.last {
		k.last, k.at = version, now
	}
}

// transactIn is Transact within a serializer, which may be nil. fn gets the version of the
// serializer's last transaction if that was a short while ago, and otherwise kv.NoVersion:
// a read at that version does not conflict with it. Turns only save time: the store decides
// what conflicts, also after an unknown result.
func (c *Cluster) transactIn(ctx context.Context, k *serializer, o kv.Options,
	fn func(ctx context.Context, tx kv.Attempt, last kv.Version) error,
) (kv.Result, error) {
	if k == nil {
		return c.Transact(ctx, o, func(tx kv.Attempt) error { return fn(ctx, tx, kv.NoVersion) })
	}
	hasTurn, again := false, 0 // how often it read again without a conflict
	defer func() {
		if hasTurn {
			<-k.turn
		}
	}()
	result, err := c.Transact(ctx, o, func(tx kv.Attempt) error {
		if !hasTurn && k.isOn(c.clock.Now(), tx.Number-again) {
			select {
			case k.turn <- struct{}{}:
				hasTurn = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := fn(ctx, tx, k.seen(c.clock.Now()))
		if errors.Is(err, kv.ErrFutureVersion) {
			again++
		}
		return err
	})
	k.note(result.Version, c.clock.Now())
	return result, err
}
