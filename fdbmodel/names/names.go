// Package names has the names of unique futures: it tells which future has one, frees those whose
// period has passed, and releases those that are kept.
package names

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/internal/unique"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/clock"
)

// freedAtOnce is how many names one transaction frees at most.
const freedAtOnce = 64

// Names are the names of unique futures of one cluster. Its methods may be called from many
// goroutines.
type Names struct {
	cluster *fdbmodel.Cluster
	keys    layout.Keyspace
}

// Of returns the names of a cluster.
func Of(c *fdbmodel.Cluster) *Names { return &Names{cluster: c, keys: c.Keys()} }

// Of returns the name of a submission as Submit takes it. It returns the errors
// of Submit for what the name is made from; a future that is unique by its key alone
// needs nothing else.
func (n *Names) Of(ctx context.Context, s fdbmodel.Submission) (layout.UniqueName, error) {
	if s.Unique == nil {
		return "", fmt.Errorf("%w: it does not say by what it is unique", layout.ErrBadSpec)
	}
	if err := s.Unique.Check(); err != nil {
		return "", err
	}
	s.Spec.Queue = cmp.Or(s.Spec.Queue, layout.DefaultQueue)
	s.Spec.Codec = cmp.Or(s.Spec.Codec, layout.CodecRaw)
	if s.Unique.IsBy(fdbmodel.UniqueFunction) {
		function, err := n.cluster.ResolveFunction(ctx, s.Spec.Function)
		if err != nil {
			return "", err
		}
		s.Spec.Function = function
	}
	return fdbmodel.UniqueNameOf(&s), nil
}

// Free frees the unique names of futures that are over and whose period has
// passed, at most a batch, those of all shards in turn. It returns how many, and when
// to call it again: at once if there may be more, else when the next one is due; the
// zero time if there is none. A submit needs no janitor: it takes such a name as
// free. A wrong clock frees early or late. An unknown commit is retried and harmless.
func (n *Names) Free(ctx context.Context) (freed int, next time.Time, err error) {
	now := n.cluster.Now()
	_, err = n.cluster.Transact(ctx, kv.Options{Tag: "futura-unique", NoSync: true}, func(tx kv.Attempt) error {
		freed, next = 0, time.Time{}
		scan := shards.Read(tx.Snapshot(), n.keys.Shards, n.keys.UniqueDueOf, freedAtOnce+1)
		for freed < freedAtOnce {
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
				tx.Clear(n.keys.Unique(name, id))
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

// Holder returns the future that has a name, as the error that a submit would
// get now. It returns ErrNotFound if no future has it.
func (n *Names) Holder(ctx context.Context, name layout.UniqueName) (holder *fdbmodel.NotUniqueError, err error) {
	err = n.cluster.View(ctx, func(tx kv.Attempt) error {
		holder, err = n.holder(ctx, tx, name)
		return err
	})
	return holder, err
}

func (n *Names) holder(ctx context.Context, tx kv.Tx, name layout.UniqueName) (*fdbmodel.NotUniqueError, error) {
	now := layout.Millis(n.cluster.Now())
	h, _, err := unique.Find(ctx, tx, n.keys, unique.Ask(tx, n.keys, name), layout.ID{}, now, nil)
	if err == nil && h == nil {
		err = fmt.Errorf("unique name %s: %w: no future has it", name, fdbmodel.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return h.Refusal(name, fdbmodel.ConflictRefuse, now), nil
}

// Release has the future that has a name give it up, and returns which one had it.
// It returns ErrTransition if that future is not over: cancel it first. It returns
// ErrNotFound if no future has the name; after an unknown commit that may be because
// the release committed.
func (n *Names) Release(ctx context.Context, name layout.UniqueName) (holder *fdbmodel.NotUniqueError, err error) {
	_, err = n.cluster.Transact(ctx, kv.Options{Tag: "futura-unique"}, func(tx kv.Attempt) error {
		holder, err = n.holder(ctx, tx, name)
		if err != nil {
			return err
		}
		if holder.State != 0 && !holder.State.Terminal() {
			return fmt.Errorf("future %s is %s: release of its unique name is %w; cancel it first", holder.ID, holder.State,
				fdbmodel.ErrTransition)
		}
		freeAt := int64(0)
		if !holder.FreeAt.IsZero() {
			freeAt = layout.Millis(holder.FreeAt)
		}
		index.Names{Set: &index.Set{Keys: n.keys, Tx: tx}}.Clear(name, freeAt, holder.ID)
		return nil
	})
	return holder, err
}
