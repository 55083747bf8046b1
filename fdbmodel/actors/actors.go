// Package actors keeps states under keys, and applies each turn on them exactly once: an attempt
// of a future reads the states of actors, and its end writes the changed ones together with its
// result and all that it submits, in one transaction that no other turn came before.
package actors

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Actors are the actors of one cluster. Its methods may be called from many goroutines.
type Actors struct {
	cluster *fdbmodel.Cluster
	keys    Keys
}

// Of returns the actors of a cluster.
func Of(c *fdbmodel.Cluster) *Actors { return &Actors{cluster: c, keys: Keys(c.Keys())} }

// State is the state of an actor at one time.
type State struct {
	Ref
	// Head is the zero Head for an actor without a state.
	Head  Head
	Value []byte

	stored []byte // the head as it is stored, nil for none
}

// Exists reports whether the actor has a state.
func (s *State) Exists() bool { return s.Head.Version > 0 }

// Size is about how many bytes of memory it takes.
func (s *State) Size() int {
	return len(s.Type) + len(s.Key) + len(s.Value) + 2*len(s.stored) + stateOverhead
}

const stateOverhead = 300

// Read returns the state of an actor, at one version. It returns ErrBadName, and ErrBadRecord for a
// damaged one.
func (a *Actors) Read(ctx context.Context, r Ref) (State, error) {
	return a.read(ctx, r, a.cluster.View)
}

// ReadFor is Read for an attempt of a future: it sees all that was written before the claim.
func (a *Actors) ReadFor(ctx context.Context, reg *fdbmodel.Registration, f *fdbmodel.ClaimedFuture, r Ref,
) (State, error) {
	return a.read(ctx, r, func(ctx context.Context, fn func(kv.Attempt) error) error { return reg.View(ctx, f, fn) })
}

func (a *Actors) read(ctx context.Context, r Ref, view func(context.Context, func(kv.Attempt) error) error,
) (s State, err error) {
	if err := r.Check(); err != nil {
		return s, err
	}
	head, state := a.keys.Head(r), a.keys.State(r)
	err = view(ctx, func(tx kv.Attempt) (err error) {
		s = State{Ref: r}
		at := tx.Snapshot()
		askedHead, askedState := at.Get(head), at.Get(state)
		if s.stored, err = askedHead.Wait(ctx); err != nil {
			return err
		}
		if s.Value, err = askedState.Wait(ctx); err != nil || s.stored == nil {
			s.Value = nil
			return err
		}
		if err := layout.Decode(head, s.stored, &s.Head); err != nil {
			return err
		}
		if !s.Head.fits(s.Value) {
			return badState(r, &s.Head, s.Value)
		}
		return nil
	})
	return s, err
}

// Types returns the types of which there are actors, up to limit of them, in order. Its cost grows
// with shards and types, not with actors.
func (a *Actors) Types(ctx context.Context, limit int) ([]string, error) {
	var types []string
	err := a.cluster.View(ctx, func(tx kv.Attempt) error {
		types = nil
		for name, found := "", true; found && len(types) < limit; {
			var err error
			if name, found, err = a.nextType(ctx, tx.Snapshot(), name); err != nil {
				return err
			}
			if found {
				types = append(types, name)
			}
		}
		return nil
	})
	return types, err
}

// nextType returns the first type after a name, over all shards.
func (a *Actors) nextType(ctx context.Context, tx kv.Reader, after string) (next string, found bool, err error) {
	asked := make([]kv.Pending[kv.Page], a.keys.Shards)
	prefixes := make([][]byte, a.keys.Shards)
	for shard := range asked {
		prefixes[shard] = tuple.AppendString(layout.Keyspace(a.keys).Shard(shard, Subspace), headPart)
		within := kv.Prefix(prefixes[shard])
		if after != "" {
			within.Begin = kv.AfterPrefix(a.keys.shard(shard, headPart, after))
		}
		asked[shard] = tx.GetRange(within, kv.RangeOptions{Limit: 1})
	}
	for shard := range asked {
		page, err := asked[shard].Wait(ctx)
		if err != nil {
			return "", false, err
		}
		if len(page.Items) == 0 {
			continue
		}
		rest := tuple.NewReader(page.Items[0].Key[len(prefixes[shard]):])
		if name := rest.Text(); name != "" && (!found || name < next) {
			next, found = name, true
		}
	}
	return next, found, nil
}

// Delete removes the state of an actor. A turn that has read it and not ended yet runs again, and
// later calls find none. It returns ErrBadName, and ErrNotFound for an actor without a state. An
// unknown commit is retried; if the state is gone then, it was removed.
func (a *Actors) Delete(ctx context.Context, r Ref) error {
	if err := r.Check(); err != nil {
		return err
	}
	head := a.keys.Head(r)
	_, err := a.cluster.Transact(ctx, kv.Options{Tag: "futura-actor"}, func(tx kv.Attempt) error {
		value, err := tx.Get(head).Wait(ctx)
		if err != nil {
			return err
		}
		if value == nil && !tx.MaybeCommitted {
			return fmt.Errorf("actor %s: %w", r, fdbmodel.ErrNotFound)
		}
		tx.Clear(head)
		tx.Clear(a.keys.State(r))
		return nil
	})
	return err
}
