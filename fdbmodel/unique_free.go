package fdbmodel

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/clock"
)

// FreeNames frees the unique names of futures that are over and whose period has
// passed, at most a batch, those of all shards in turn. It returns how many, and when
// to call it again: at once if there may be more, else when the next one is due; the
// zero time if there is none. A submit needs no janitor: it takes such a name as
// free. A wrong clock frees early or late. An unknown commit is retried and harmless.
func (c *Cluster) FreeNames(ctx context.Context) (freed int, next time.Time, err error) {
	now := c.clock.Now()
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-unique", NoSync: true}, func(tx kv.Attempt) error {
		freed, next = 0, time.Time{}
		scan := shards.Read(tx.Snapshot(), c.config.Shards, c.keys.UniqueDueOf, janitorBatch+1)
		for freed < janitorBatch {
			item, skip, err := scan.Next(ctx)
			if err != nil || item.Key == nil {
				return err
			}
			rest := tuple.NewReader(item.Key[skip:])
			at, name, id := rest.Int(), layout.UniqueName(rest.Text()), layout.ID(rest.UUID())
			switch {
			case rest.Err() != nil: // an audit reports it
			case at > layout.Millis(now):
				next = clock.Earlier(next, time.UnixMilli(at))
				scan.Leave()
			default:
				// A retry of the future takes the name again, and clears the key.
				tx.AddReadConflictKey(item.Key)
				tx.Clear(item.Key)
				tx.Clear(c.keys.Unique(name, id))
				freed++
			}
		}
		next = now
		return nil
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	return freed, next, nil
}

// UniqueHolder returns the future that has a name, as the error that a submit would
// get now. It returns ErrNotFound if no future has it.
func (c *Cluster) UniqueHolder(ctx context.Context, name layout.UniqueName) (holder *NotUniqueError, err error) {
	err = c.View(ctx, func(tx kv.Attempt) error {
		holder, err = c.uniqueHolder(ctx, tx, name)
		return err
	})
	return holder, err
}

func (c *Cluster) uniqueHolder(ctx context.Context, tx kv.Tx, name layout.UniqueName) (*NotUniqueError, error) {
	now := layout.Millis(c.clock.Now())
	h, _, err := findHolder(ctx, tx, c.keys, askNamed(tx, c.keys, name), layout.ID{}, now)
	if err == nil && h == nil {
		err = fmt.Errorf("unique name %s: %w: no future has it", name, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return h.refusal(name), nil
}

// ReleaseName has the future that has a name give it up, and returns which one had it.
// It returns ErrTransition if that future is not over: cancel it first. It returns
// ErrNotFound if no future has the name; after an unknown commit that may be because
// the release landed.
func (c *Cluster) ReleaseName(ctx context.Context, name layout.UniqueName) (holder *NotUniqueError, err error) {
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-unique"}, func(tx kv.Attempt) error {
		holder, err = c.uniqueHolder(ctx, tx, name)
		if err != nil {
			return err
		}
		if holder.State != 0 && !holder.State.Terminal() {
			return fmt.Errorf("future %s is %s: release of its unique name is %w; cancel it first", holder.ID, holder.State,
				ErrTransition)
		}
		w := c.write(tx)
		if holder.FreeAt.IsZero() {
			w.names.Clear(name, 0, holder.ID)
		} else {
			w.names.Clear(name, layout.Millis(holder.FreeAt), holder.ID)
		}
		return nil
	})
	return holder, err
}
