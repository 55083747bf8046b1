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

	stored []byte     // the head as it is stored, nil for none
	beside bool       // the state has a key of its own
	seen   kv.Version // at which it was so
}

// At returns the state as one that is so at a version.
func (s State) At(version kv.Version) State {
	s.seen = version
	return s
}

// Exists reports whether the actor has a state.
func (s *State) Exists() bool { return s.Head.Version > 0 }

// Read returns the state of an actor. It returns ErrBadName, and ErrBadRecord for a damaged one.
func (a *Actors) Read(ctx context.Context, r Ref) (State, error) {
	states, err := a.read(ctx, []Ref{r}, a.cluster.View)
	if err != nil {
		return State{}, err
	}
	return states[0], nil
}

// ReadFor returns the states of actors at one version, in their order, for an attempt of a future: it
// sees all that was written before the claim. Its errors are those of Read.
func (a *Actors) ReadFor(ctx context.Context, reg *fdbmodel.Registration, f *fdbmodel.ClaimedFuture, refs ...Ref,
) ([]State, error) {
	return a.read(ctx, refs, func(ctx context.Context, fn func(kv.Attempt) error) error {
		return reg.View(ctx, f, kv.NoVersion, fn)
	})
}

func (a *Actors) read(ctx context.Context, refs []Ref, view func(context.Context, func(kv.Attempt) error) error,
) ([]State, error) {
	for _, r := range refs {
		if err := r.Check(); err != nil {
			return nil, err
		}
	}
	states := make([]State, len(refs))
	err := view(ctx, func(tx kv.Attempt) error {
		version, err := tx.ReadVersion(ctx)
		if err != nil {
			return err
		}
		at := tx.Snapshot()
		asked := make([]kv.Pending[[]byte], len(refs))
		for i, r := range refs {
			asked[i] = at.Get(a.keys.Head(r))
		}
		for i, r := range refs {
			head, err := asked[i].Wait(ctx)
			if err != nil {
				return err
			}
			states[i] = State{Ref: r, stored: head, seen: version}
			asked[i], err = a.decode(at, &states[i])
			if err != nil {
				return err
			}
		}
		for i := range states {
			s := &states[i]
			if s.Value, err = asked[i].Wait(ctx); err != nil {
				return err
			}
			if s.stored != nil && !s.Head.fits(s.Value) {
				return badState(s.Ref, &s.Head, s.Value)
			}
		}
		return nil
	})
	return states, err
}

// decode decodes the head of a state as it is stored, and reads what lies beside it.
func (a *Actors) decode(tx kv.Reader, s *State) (value kv.Pending[[]byte], err error) {
	var record HeadRecord
	if s.stored != nil {
		err = layout.Decode(a.keys.Head(s.Ref), s.stored, &record)
	}
	s.Head, s.beside = record.Head, record.Beside()
	return a.valueOf(tx, s.Ref, &record), err
}

// valueOf returns the state of an actor: what its head has, or what lies beside it.
func (a *Actors) valueOf(tx kv.Reader, r Ref, record *HeadRecord) kv.Pending[[]byte] {
	switch {
	case record.Beside():
		return tx.Get(a.keys.State(r))
	case record.State == nil && record.Version > 0:
		return kv.Ready([]byte{}, nil) // an empty state, not an absent one
	}
	return kv.Ready(record.State, nil)
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

// Delete removes the state and the parts of an actor. A turn that has read it and not ended yet runs again, and
// later calls find none. It returns ErrBadName, and ErrNotFound for an actor of which there is nothing. An
// unknown commit is retried; if all is gone then, it was removed.
func (a *Actors) Delete(ctx context.Context, r Ref) error {
	if err := r.Check(); err != nil {
		return err
	}
	head, state, parts := a.keys.Head(r), a.keys.State(r), a.keys.parts(r, PartRange{})
	_, err := a.cluster.Transact(ctx, kv.Options{Tag: "futura-actor"}, func(tx kv.Attempt) error {
		asked := []kv.Pending[kv.Page]{}
		for _, of := range []kv.Range{kv.Single(head), kv.Single(state), parts} { // damage may have left one of them
			asked = append(asked, tx.GetRange(of, kv.RangeOptions{Limit: 1}))
		}
		found := 0
		for _, of := range asked {
			page, err := of.Wait(ctx)
			if err != nil {
				return err
			}
			found += len(page.Items)
		}
		if found == 0 && !tx.MaybeCommitted {
			return fmt.Errorf("actor %s: %w", r, fdbmodel.ErrNotFound)
		}
		tx.Clear(head)
		tx.Clear(state)
		tx.ClearRange(parts)
		return nil
	})
	return err
}
