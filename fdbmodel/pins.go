package fdbmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// namedPins is how many of too many pins an error names.
const namedPins = 5

// Pin keeps a future from being removed, by its retention as by Discard, until Unpin
// is called with the same holder: pins are a set of names, and pinning again changes
// nothing. A pin with a session ends with that. It does not keep an object from being
// lost. A future has at most MaxPins pins. Pin returns ErrBadName, ErrNotFound, and
// ErrTransition for a future of a batch or one with too many pins. An unknown commit
// is retried and harmless.
func (c *Cluster) Pin(ctx context.Context, id layout.ID, holder string, session layout.SessionID) error {
	if err := layout.CheckHolder(holder); err != nil {
		return err
	}
	return c.changePins(ctx, id, func(tx kv.Tx, row *layout.Row) (*layout.PinsRecord, error) {
		if row.Spec.Held() {
			return nil, driven("pin", row)
		}
		pins, err := c.livePins(ctx, tx, row)
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
				strings.Join(others[:namedPins], ", "), len(others)-namedPins, ErrTransition)
		}
		return pins, c.openSession(ctx, tx, session)
	})
}

// Unpin ends the pin of a holder, and changes nothing if there is none. A future whose
// retention has passed is removed within another one. It returns ErrBadName and
// ErrNotFound. An unknown commit is retried and harmless.
func (c *Cluster) Unpin(ctx context.Context, id layout.ID, holder string) error {
	if err := layout.CheckHolder(holder); err != nil {
		return err
	}
	return c.changePins(ctx, id, func(tx kv.Tx, row *layout.Row) (*layout.PinsRecord, error) {
		pins, err := c.livePins(ctx, tx, row)
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
func (c *Cluster) Pins(ctx context.Context, id layout.ID) (holders []string, err error) {
	err = c.View(ctx, func(tx kv.Attempt) error {
		holders = nil
		row, err := c.requireRow(ctx, tx.Snapshot(), id)
		if err != nil {
			return err
		}
		pins, err := c.livePins(ctx, tx.Snapshot(), &row)
		if err == nil {
			holders = pins.Holders
		}
		return err
	})
	return holders, err
}

func (c *Cluster) changePins(ctx context.Context, id layout.ID,
	change func(kv.Tx, *layout.Row) (*layout.PinsRecord, error),
) error {
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-pin"}, func(tx kv.Attempt) error {
		row, err := c.requireRow(ctx, tx, id)
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
		c.write(tx).set(id, layout.StatePins, pins, len(pins.Holders) == 0)
		return nil
	})
	return err
}

// livePins returns the pins of a future without those whose session has ended. They
// are the caller's.
func (c *Cluster) livePins(ctx context.Context, tx kv.Reader, row *layout.Row) (*layout.PinsRecord, error) {
	live := &layout.PinsRecord{}
	if row.Pins == nil {
		return live, nil
	}
	for i, holder := range row.Pins.Holders {
		session := layout.SessionID(row.Pins.Sessions[i])
		if session != "" {
			value, err := tx.Get(c.keys.Session(session)).Wait(ctx)
			if err != nil {
				return nil, err
			}
			if value == nil {
				continue
			}
		}
		live.Holders, live.Sessions = append(live.Holders, holder), append(live.Sessions, string(session))
	}
	return live, nil
}

// openSession makes the record of a session, if it is not there yet: the session has
// to refresh it.
func (c *Cluster) openSession(ctx context.Context, tx kv.Tx, session layout.SessionID) error {
	if session == "" {
		return nil
	}
	key := c.keys.Session(session)
	value, err := tx.Get(key).Wait(ctx)
	if err == nil && value == nil {
		tx.Set(key, layout.Encode(&layout.SessionRecord{At: layout.Millis(c.clock.Now()), Opening: c.opening()}))
	}
	return err
}

// requireUnpinned returns ErrTransition for a future that is pinned.
func (c *Cluster) requireUnpinned(ctx context.Context, tx kv.Reader, row *layout.Row) error {
	if row.Pins == nil {
		return nil
	}
	pins, err := c.livePins(ctx, tx, row)
	if err == nil && len(pins.Holders) > 0 {
		err = fmt.Errorf("future %s is pinned by %s: discard is %w; unpin it first", row.ID, pins.Holders[0], ErrTransition)
	}
	return err
}
