package actors

import (
	"fmt"

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
}

// Turn returns what is written beside the result of the attempt that holds a claim, one Change for
// each actor, and the states that they have then. The attempt runs again if one of the states that
// it read has changed since: a head differs from all that were there before, as it names the claim
// that wrote it. It returns ErrTooLarge for more than MaxTurn actors, a state above MaxState, or
// more than MaxTurnBytes.
func (a *Actors) Turn(f *fdbmodel.ClaimedFuture, changes []Change) (b *fdbmodel.Beside, after []State, err error) {
	if len(changes) > MaxTurn {
		return nil, nil, fmt.Errorf("%w: a turn over %d actors: at most %d", fdbmodel.ErrTooLarge, len(changes), MaxTurn)
	}
	b = &fdbmodel.Beside{}
	now, size := layout.Millis(a.cluster.Now()), 0
	for i := range changes {
		c := &changes[i]
		head, state := a.keys.Head(c.Read.Ref), a.keys.State(c.Read.Ref)
		b.Expect = append(b.Expect, kv.KeyValue{Key: head, Value: c.Read.stored})
		b.Seen = max(b.Seen, c.Read.seen)
		next := c.Read
		switch {
		case c.Delete && c.Read.Exists():
			next = State{Ref: c.Read.Ref}
			b.Write = append(b.Write, kv.KeyValue{Key: head}, kv.KeyValue{Key: state})
		case c.Write && !c.Delete:
			if next, err = c.next(f, now); err != nil {
				return nil, nil, err
			}
			size += next.Size()
			b.Write = append(b.Write, kv.KeyValue{Key: head, Value: next.stored},
				kv.KeyValue{Key: state, Value: next.Value})
		}
		after = append(after, next)
	}
	if size > MaxTurnBytes {
		return nil, nil, fmt.Errorf("%w: a turn that writes %d bytes: at most %d", fdbmodel.ErrTooLarge, size,
			MaxTurnBytes)
	}
	return b, after, nil
}

// next returns the state that a change writes.
func (c *Change) next(f *fdbmodel.ClaimedFuture, now int64) (State, error) {
	if n := len(c.Value); n > MaxState {
		return State{}, fmt.Errorf("%w: the state of actor %s has %d bytes: at most %d; divide it among actors, or keep "+
			"what is large as objects", fdbmodel.ErrTooLarge, c.Read.Ref, n, MaxState)
	}
	was := &c.Read.Head
	at := max(now, was.At)
	next := State{Ref: c.Read.Ref, Value: c.Value, Head: Head{Version: was.Version + 1, Call: f.ID, Token: f.Token,
		Schema: c.Schema, Codec: c.Codec, Size: int64(len(c.Value)), CreatedAt: was.CreatedAt, At: at}}
	if !c.Read.Exists() {
		next.Head.CreatedAt = at
	}
	if next.Value == nil {
		next.Value = []byte{}
	}
	next.stored = layout.Encode(&next.Head)
	return next, nil
}
