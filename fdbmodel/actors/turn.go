package actors

import (
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Change is what a turn makes of an actor.
type Change struct {
	// Read is the state that it read.
	Read State
	// Write says that Value, in Codec and of a Schema, is the state from then on; Delete that there
	// is none. With neither, the turn depends on the state and leaves it.
	Write, Delete bool
	Value         []byte
	Codec         string
	Schema        int
	// Parts are written with the state, or removed. With Delete all parts of the actor are. A turn that
	// writes none but parts leaves the state, or writes Value if the actor has none.
	Parts []Part
}

// Turn returns what is written beside the result of the attempt that holds a claim, one Change for
// each actor, and the states that they have then. The attempt runs again if one of the states that
// it read has changed since: a head differs from all that were there before, as it names the claim
// that wrote it. It returns ErrTooLarge for more than MaxTurn actors, a state above MaxState, a part above
// MaxPart, more than MaxTurnParts of them, or more than MaxTurnBytes, and ErrBadName for a part.
func (a *Actors) Turn(f *fdbmodel.ClaimedFuture, changes []Change) (b *fdbmodel.Beside, after []State, err error) {
	if len(changes) > MaxTurn {
		return nil, nil, fmt.Errorf("%w: a turn over %d actors: at most %d", fdbmodel.ErrTooLarge, len(changes), MaxTurn)
	}
	b = &fdbmodel.Beside{
		Expect: make([]kv.KeyValue, 0, len(changes)), Write: make([]kv.KeyValue, 0, 2*len(changes)),
	}
	after = make([]State, 0, len(changes))
	now, parts, size := layout.Millis(a.cluster.Now()), 0, 0
	for i := range changes {
		c := &changes[i]
		head, state := a.keys.Head(c.Read.Ref), a.keys.State(c.Read.Ref)
		b.Expect = append(b.Expect, kv.KeyValue{Key: head, Value: c.Read.stored})
		b.Seen = max(b.Seen, c.Read.seen)
		if !c.Read.Head.Parts {
			c.Parts = slices.DeleteFunc(slices.Clone(c.Parts), func(p Part) bool { return p.Removed })
		}
		parts += len(c.Parts)
		next := c.Read
		switch {
		case c.Delete && c.Read.Exists():
			next = State{Ref: c.Read.Ref}
			b.Write = append(b.Write, kv.KeyValue{Key: head})
			if c.Read.beside {
				b.Write = append(b.Write, kv.KeyValue{Key: state})
			}
			if c.Read.Head.Parts {
				b.Clear = append(b.Clear, a.keys.parts(c.Read.Ref, PartRange{}))
			}
		case !c.Delete && (c.Write || len(c.Parts) > 0):
			if next, err = c.next(f, now); err != nil {
				return nil, nil, err
			}
			b.Write = append(b.Write, kv.KeyValue{Key: head, Value: next.stored})
			switch {
			case next.beside && c.writesState():
				b.Write = append(b.Write, kv.KeyValue{Key: state, Value: next.Value})
			case c.Read.beside && !next.beside:
				b.Write = append(b.Write, kv.KeyValue{Key: state})
			}
			if b.Write, err = a.writeParts(b.Write, c); err != nil {
				return nil, nil, err
			}
		}
		after = append(after, next)
	}
	for _, item := range b.Write {
		size += len(item.Key) + len(item.Value)
	}
	if size > MaxTurnBytes || parts > MaxTurnParts {
		return nil, nil, fmt.Errorf("%w: a turn that writes %d bytes and %d parts of actors: at most %d, and %d; have it "+
			"send the rest to a call of its own", fdbmodel.ErrTooLarge, size, parts, MaxTurnBytes, MaxTurnParts)
	}
	return b, after, nil
}

// writesState reports whether a change that makes a new version writes the state with it.
func (c *Change) writesState() bool { return c.Write || !c.Read.Exists() }

// writeParts appends what a change writes of parts.
func (a *Actors) writeParts(to []kv.KeyValue, c *Change) ([]kv.KeyValue, error) {
	for i := range c.Parts {
		p := &c.Parts[i]
		if err := p.Check(c.Read.Ref); err != nil {
			return nil, err
		}
		item := kv.KeyValue{Key: a.keys.Part(c.Read.Ref, p.Name)}
		if !p.Removed {
			item.Value = layout.Encode(&p.PartRecord)
		}
		to = append(to, item)
	}
	return to, nil
}

// next returns the state that a change leaves.
func (c *Change) next(f *fdbmodel.ClaimedFuture, now int64) (State, error) {
	if n := len(c.Value); n > MaxState {
		return State{}, fmt.Errorf("%w: the state of actor %s has %d bytes: at most %d; divide it into parts or among "+
			"actors, or keep what is large as objects", fdbmodel.ErrTooLarge, c.Read.Ref, n, MaxState)
	}
	was := &c.Read.Head
	at := max(now, was.At)
	next := State{Ref: c.Read.Ref, Value: c.Value, Head: Head{Version: was.Version + 1, Call: f.ID, Token: f.Token,
		Schema: c.Schema, Codec: c.Codec, Size: int64(len(c.Value)), CreatedAt: was.CreatedAt, At: at,
		Parts: was.Parts || len(c.Parts) > 0}}
	if !c.writesState() {
		next.Value, next.Head.Schema, next.Head.Codec, next.Head.Size = c.Read.Value, was.Schema, was.Codec, was.Size
	}
	if !c.Read.Exists() {
		next.Head.CreatedAt = at
	}
	if next.Value == nil {
		next.Value = []byte{}
	}
	record := HeadRecord{Head: next.Head}
	if next.beside = len(next.Value) > MaxInHead; !next.beside {
		record.State = next.Value
	}
	next.stored = layout.Encode(&record)
	return next, nil
}
