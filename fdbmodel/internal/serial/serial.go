// Package serial has transactions of one process take turns where they would conflict.
package serial

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const (
	// For is how long transactions take turns after a conflict.
	For = time.Second
	// Recent is how long after a commit its version is certain to be readable.
	Recent = time.Second
)

// Model is what a serializer needs of the model.
type Model interface {
	Transact(context.Context, kv.Options, func(kv.Attempt) error) (kv.Result, error)
	Now() time.Time
}

// Serializer runs transactions of this process one after the other for a while once two of
// them have met in a conflict. It is for transactions that change the same lanes: those that
// hand over slots of full lanes want the same futures in line, and those that submit to
// lanes with room count into the same record. The store decides among processes.
type Serializer struct {
	turn chan struct{}

	mu    sync.Mutex
	last  kv.Version // of the last one
	at    time.Time  // of it
	until time.Time  // they take turns
}

// New returns a serializer.
func New() *Serializer {
	return &Serializer{turn: make(chan struct{}, 1), last: kv.NoVersion}
}

// isOn reports whether transactions take turns. One that runs again says so.
func (k *Serializer) isOn(now time.Time, attempt int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if attempt > 1 {
		k.until = now.Add(For)
	}
	left := k.until.Sub(now)
	return left > 0 && left <= For // no longer, if the clock was set back
}

// seen returns the version of the last transaction if that was a short while ago, and
// otherwise kv.NoVersion.
func (k *Serializer) seen(now time.Time) kv.Version {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.at).Abs() >= Recent {
		return kv.NoVersion
	}
	return k.last
}

func (k *Serializer) note(version kv.Version, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if version > k.last {
		k.last, k.at = version, now
	}
}

// Transact is Transact of the model within a serializer, which may be nil. fn gets the version of the
// serializer's last transaction if that was a short while ago, and otherwise kv.NoVersion:
// a read at that version does not conflict with it. Turns only save time: the store decides
// what conflicts, also after an unknown result.
func (k *Serializer) Transact(ctx context.Context, m Model, o kv.Options,
	fn func(ctx context.Context, tx kv.Attempt, last kv.Version) error,
) (kv.Result, error) {
	if k == nil {
		return m.Transact(ctx, o, func(tx kv.Attempt) error { return fn(ctx, tx, kv.NoVersion) })
	}
	hasTurn, again := false, 0 // how often it read again without a conflict
	defer func() {
		if hasTurn {
			<-k.turn
		}
	}()
	result, err := m.Transact(ctx, o, func(tx kv.Attempt) error {
		if !hasTurn && k.isOn(m.Now(), tx.Number-again) {
			select {
			case k.turn <- struct{}{}:
				hasTurn = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := fn(ctx, tx, k.seen(m.Now()))
		if errors.Is(err, kv.ErrFutureVersion) {
			again++
		}
		return err
	})
	k.note(result.Version, m.Now())
	return result, err
}
