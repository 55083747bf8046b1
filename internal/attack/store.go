package attack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
)

// Strangers connect to the door of the store and say nothing.
func Strangers(ctx context.Context, t *Target, size int) (func(), error) {
	return t.hold(ctx, t.Door, size, nil)
}

// Frames sends frames to the door of the store: random ones, some that claim to
// be long, and some that begin as a client does, with a wrong token.
func Frames(ctx context.Context, t *Target, size int) (func(), error) {
	return nothing, flood(size, func(i int) error {
		r := rand.New(rand.NewPCG(uint64(i), 2))
		body := noise(i)
		switch i % 4 {
		case 0:
			return t.shout(ctx, t.Door, body)
		case 1:
			return t.shout(ctx, t.Door, binary.BigEndian.AppendUint32(nil, r.Uint32()))
		case 2:
			return t.shout(ctx, t.Door, append(binary.BigEndian.AppendUint32(nil, uint32(1+len(body))), body...))
		default:
			hello := append([]byte("FFUTURAKV\x00\x01\x10"), body[:min(len(body), 64)]...)
			return t.shout(ctx, t.Door, append(binary.BigEndian.AppendUint32(nil, uint32(len(hello))), hello...))
		}
	})
}

// Transactions opens transactions of one client of the store and fills each
// with 9 MB, and reads large ranges in each.
func Transactions(ctx context.Context, t *Target, size int) (func(), error) {
	db, err := kvopen.Open(ctx, t.Store, kvopen.Options{})
	if err != nil {
		return nothing, err
	}
	const values, valueBytes = 90, 100_000
	var open []kv.Tx
	undo := func() {
		for _, tx := range open {
			tx.Cancel()
		}
		_ = db.Close() // nothing depends on it
	}
	value := make([]byte, valueBytes)
	for i := range size {
		tx := db.Begin(kv.Options{})
		open = append(open, tx)
		for n := range values {
			tx.Set(fmt.Appendf(nil, "attack/%d/%d", i, n), value)
		}
		// What does not fit is refused.
		if _, err := tx.Get([]byte("attack")).Wait(ctx); err != nil && !errors.Is(err, kv.ErrUnavailable) {
			return undo, err
		}
	}
	return undo, nil
}

// Watches has one client of the store arm watches of keys that never change, and end none.
func Watches(ctx context.Context, t *Target, size int) (func(), error) {
	db, err := kvopen.Open(ctx, t.Store, kvopen.Options{})
	if err != nil {
		return nothing, err
	}
	undo := func() { _ = db.Close() } // nothing depends on it
	const together = 50
	for first := 0; first < size; first += together {
		tx := db.Begin(kv.Options{})
		for i := range together {
			tx.Watch(fmt.Appendf(nil, "attack/watch/%d", first+i))
		}
		if _, err := tx.Commit(ctx); err != nil && !errors.Is(err, kv.ErrTooManyWatches) {
			return undo, err
		}
	}
	return undo, nil
}
