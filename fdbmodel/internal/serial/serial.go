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
	// rivalsFor is how long transactions read at the newest version after a conflict with those of other
	// processes.
	rivalsFor = 10 * time.Second
	// splitAfter is how many times a transaction of several changes meets those of other processes before it
	// is to be split.
	splitAfter = 5
)

// ErrSplit is returned by a transaction of several changes that has written nothing, as those of other processes
// were faster each time: the more it changes, the longer it takes, and the more of theirs it meets. Its changes
// are to be made in several ones.
var ErrSplit = errors.New("the transaction is to be split")

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

	mu     sync.Mutex
	last   kv.Version // of the last one
	at     time.Time  // of it
	until  time.Time  // they take turns
	rivals time.Time  // they read at the newest version
	most   int        // changes of one of them, while there are rivals
}

// Past is what a transaction knows of those before it.
type Past struct {
	// Last is the version of the serializer's last transaction if that was a short while ago, and
	// otherwise kv.NoVersion: a read at that version does not conflict with it.
	Last kv.Version
	// Rivals is set if transactions of other processes met those of the serializer lately. A read at
	// a version that is not the newest is likely to conflict with them.
	Rivals bool
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
	return isWithin(now, k.until, For)
}

// isWithin reports whether it is before until, by no more than the duration: a clock may have been set back.
func isWithin(now, until time.Time, d time.Duration) bool {
	left := until.Sub(now)
	return left > 0 && left <= d
}

// hasRivals reports whether other processes meet the serializer's transactions. One that runs again though it
// has the turn says so.
func (k *Serializer) hasRivals(now time.Time, met bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if met {
		k.rivals = now.Add(rivalsFor)
	}
	return isWithin(now, k.rivals, rivalsFor)
}

// Most returns how many of up to n changes a transaction is to make: fewer while larger ones were to be split.
func (k *Serializer) Most(n int, now time.Time) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.most == 0 || !isWithin(now, k.rivals, rivalsFor) {
		return n
	}
	return min(n, k.most)
}

// resize has transactions make half the changes of one that is to be split, and a quarter more after each one
// that was as large as they may be.
func (k *Serializer) resize(n int, split bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case split:
		k.most = n / 2
	case n == k.most:
		k.most += max(1, k.most/4)
	}
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

// Transact is Transact of the model within a serializer, which may be nil, for n changes that several transactions
// could make as well. It returns ErrSplit if they are to do so. Turns only save time: the store decides what
// conflicts, also after an unknown result.
func (k *Serializer) Transact(ctx context.Context, m Model, o kv.Options, n int,
	fn func(ctx context.Context, tx kv.Attempt, past Past) error,
) (kv.Result, error) {
	if k == nil {
		return m.Transact(ctx, o, func(tx kv.Attempt) error { return fn(ctx, tx, Past{Last: kv.NoVersion}) })
	}
	r := running{Serializer: k}
	defer r.leave()
	result, err := m.Transact(ctx, o, func(tx kv.Attempt) error {
		past, err := r.enter(ctx, tx, m)
		if err == nil && n > 1 && r.loses(tx, past) {
			err = ErrSplit
		}
		if err == nil {
			err = fn(ctx, tx, past)
		}
		if errors.Is(err, kv.ErrFutureVersion) {
			r.again++
		}
		return err
	})
	k.note(result.Version, m.Now())
	if split := errors.Is(err, ErrSplit); split || err == nil {
		k.resize(n, split)
	}
	return result, err
}

// running is one transaction of a serializer.
type running struct {
	*Serializer
	hasTurn bool
	again   int // how often it read again without a conflict
	before  int // the number of the attempt before, without those
}

// enter waits for the turn, if transactions take turns.
func (r *running) enter(ctx context.Context, tx kv.Attempt, m Model) (Past, error) {
	number, now := tx.Number-r.again, m.Now()
	rivals := r.hasRivals(now, r.hasTurn && number > r.before)
	r.before = number
	if !r.hasTurn && r.isOn(now, number) {
		select {
		case r.turn <- struct{}{}:
			r.hasTurn = true
		case <-ctx.Done():
			return Past{}, ctx.Err()
		}
	}
	return Past{r.seen(m.Now()), rivals}, nil
}

func (r *running) leave() {
	if r.hasTurn {
		<-r.turn
	}
}

// loses reports whether the transaction is likely to meet others as long as it is as large.
func (r *running) loses(tx kv.Attempt, past Past) bool {
	return past.Rivals && !tx.MaybeCommitted && tx.Number-r.again > splitAfter
}
