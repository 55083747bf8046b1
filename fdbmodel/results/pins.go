package results

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// namedPins is how many of too many pins an error names.
const namedPins = 5

// Pin keeps a future from being removed, by its retention as by Discard, until Unpin
// is called with the same holder: pins are a set of names, and pinning again changes
// nothing. A pin with a session ends with that. It does not keep an object from being
// lost. A future has at most MaxPins pins. Pin returns ErrBadName, ErrNotFound, and
// ErrTransition for a future of a batch or one with too many pins. An unknown commit
// is retried and harmless.
func (r *Results) Pin(ctx context.Context, id layout.ID, holder string, session layout.SessionID) error {
	if err := layout.CheckHolder(holder); err != nil {
		return err
	}
	return r.changePins(ctx, id, func(tx kv.Tx, row *layout.Row) (*layout.PinsRecord, error) {
		if row.Spec.Held() {
			return nil, fmt.Errorf("future %s belongs to batch %s: pin is %w; change the batch instead", row.ID, row.Spec.Owner,
				fdbmodel.ErrTransition)
		}
		pins, err := read.Pins(ctx, tx, r.keys, row)
		if err != nil {
			return nil, err
		}
		if at, found := slices.BinarySearch(pins.Holders, holder); found {
			pins.Sessions[at] = string(session)
		} else {
			pins.Holders = slices.Insert(pins.Holders, at, holder)
			pins.Sessions = slices.Insert(pins.Sessions, at, string(session))
		}
		if len(pins.Holders) > layout.MaxPins {
			others := slices.DeleteFunc(slices.Clone(pins.Holders), func(h string) bool { return h == holder })
			return nil, fmt.Errorf("future %s has %d pins, of %s and %d more: pin is %w; unpin one first", id, len(others),
				strings.Join(others[:namedPins], ", "), len(others)-namedPins, fdbmodel.ErrTransition)
		}
		return pins, r.openSession(ctx, tx, session)
	})
}

// Unpin ends the pin of a holder, and changes nothing if there is none. A future whose
// retention has passed is removed within another one. It returns ErrBadName and
// ErrNotFound. An unknown commit is retried and harmless.
func (r *Results) Unpin(ctx context.Context, id layout.ID, holder string) error {
	if err := layout.CheckHolder(holder); err != nil {
		return err
	}
	return r.changePins(ctx, id, func(tx kv.Tx, row *layout.Row) (*layout.PinsRecord, error) {
		pins, err := read.Pins(ctx, tx, r.keys, row)
		if err != nil {
			return nil, err
		}
		if at, found := slices.BinarySearch(pins.Holders, holder); found {
			pins.Holders, pins.Sessions = slices.Delete(pins.Holders, at, at+1), slices.Delete(pins.Sessions, at, at+1)
		}
		return pins, nil
	})
}

// Pins returns who keeps a future from being removed. It returns ErrNotFound.
func (r *Results) Pins(ctx context.Context, id layout.ID) (holders []string, err error) {
	err = r.cluster.View(ctx, func(tx kv.Attempt) error {
		holders = nil
		row, err := read.Existing(ctx, tx.Snapshot(), r.keys, id)
		if err != nil {
			return err
		}
		pins, err := read.Pins(ctx, tx.Snapshot(), r.keys, &row)
		if err == nil {
			holders = pins.Holders
		}
		return err
	})
	return holders, err
}

func (r *Results) changePins(ctx context.Context, id layout.ID,
	change func(kv.Tx, *layout.Row) (*layout.PinsRecord, error),
) error {
	_, err := r.cluster.Transact(ctx, kv.Options{Tag: "futura-pin"}, func(tx kv.Attempt) error {
		row, err := read.Existing(ctx, tx, r.keys, id)
		if err != nil {
			return err
		}
		pins, err := change(tx, &row)
		if err != nil {
			return err
		}
		if len(pins.Holders) == 0 && row.Pins == nil {
			return nil
		}
		key := r.keys.State(id, layout.StatePins)
		if len(pins.Holders) == 0 {
			tx.Clear(key)
			return nil
		}
		tx.Set(key, layout.Encode(pins))
		return nil
	})
	return err
}

// openSession makes the record of a session, if it is not there yet: the session has
// to refresh it.
func (r *Results) openSession(ctx context.Context, tx kv.Tx, session layout.SessionID) error {
	if session == "" {
		return nil
	}
	key := r.keys.Session(session)
	value, err := tx.Get(key).Wait(ctx)
	if err == nil && value == nil {
		opening := kv.TraitsOf(r.cluster.Database()).Opening
		tx.Set(key, layout.Encode(&layout.SessionRecord{At: layout.Millis(r.cluster.Now()), Opening: opening}))
	}
	return err
}
