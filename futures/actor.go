package futures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/internal/taskcontext"
)

// Limits of actors.
const (
	// MaxActorState is the largest state of an actor, encoded, in bytes.
	MaxActorState = actors.MaxState
	// MaxTurnActors is how many actors one attempt reads and writes.
	MaxTurnActors = actors.MaxTurn
	// MaxTurnSubmits is how many futures one attempt submits with its result.
	MaxTurnSubmits = taskcontext.MaxTurnSubmits
)

// Actor is a type of actors: states of type S under keys. A call to one is a future in the lane of
// its key, so that calls to it run one after the other in the order of their commits, on any
// worker; its end writes the result, the new state and all that it sends in one transaction under its claim,
// so each call is applied exactly once, whatever dies. An actor exists from the first turn that
// leaves a state, and costs nothing but its record. Its methods may be called from many goroutines.
type Actor[S any] struct {
	name    string
	schema  int
	migrate func(from int, state []byte) (S, error)
	maps    bool // S may have maps, whose order is another one each time that they are encoded
}

// DefineActor names a type of actors, of 1 to 48 characters of A-Z, a-z, 0-9 and . _ -. S is encoded
// as msgpack, so that fields may be added and left out.
func DefineActor[S any](name string) *Actor[S] {
	return &Actor[S]{name: name, maps: mayHaveMaps(reflect.TypeFor[S]())}
}

// isSame reports whether two encoded states are the same, but for the order of maps.
func (a *Actor[S]) isSame(one, other []byte) bool {
	if bytes.Equal(one, other) || !a.maps {
		return bytes.Equal(one, other)
	}
	var x, y S
	return decode(CodecMsgpack, one, &x) == nil && decode(CodecMsgpack, other, &y) == nil &&
		reflect.DeepEqual(x, y)
}

// Migrate returns the type with the number of the schema of its states, from 1; those of DefineActor
// have number 0. A turn that meets a state of a lower number has migrate make a new one of it, from its
// msgpack, and writes that. A state of a higher number is an error: newer code has written it.
func (a *Actor[S]) Migrate(schema int, migrate func(from int, state []byte) (S, error)) *Actor[S] {
	return &Actor[S]{name: a.name, schema: schema, migrate: migrate, maps: a.maps}
}

// Name returns the name of the type.
func (a *Actor[S]) Name() string { return a.name }

// joined is an actor in the turn of an attempt.
type joined[S any] struct {
	state *S
	// deleted says that the end removes the actor, whose state was encoded as last when that was asked.
	deleted bool
	last    []byte
}

// State has the actor of a key take part in the attempt of the function that ctx was given to, and
// returns its state, the zero S if it has none: the same pointer each time. If the function returns
// nil, the end of the attempt writes what it has changed there, together with the result. If
// another attempt has changed one of the states meanwhile, nothing is written, and the function runs
// again without an attempt that counts. So what it reads of several actors, one after the other, is
// consistent once its result counts, and need not be before. Effects outside
// belong into steps, or into what it sends.
//
// It returns ErrOutsideFunction for another context, ErrBadName, and a permanent error for more
// than MaxTurnActors actors, for a state that does not decode as S, in a step, in a function of a bundle, and
// on a peer.
func (a *Actor[S]) State(ctx context.Context, key string) (*S, error) {
	states, err := a.States(ctx, key)
	if err != nil {
		return nil, err
	}
	return states[0], nil
}

// States is State for several keys, whose states are of one time. A function that reads all that it reads so,
// and changes and sends nothing, does not run again for what has changed since.
func (a *Actor[S]) States(ctx context.Context, keys ...string) ([]*S, error) {
	all, err := a.join(ctx, keys)
	if err != nil {
		return nil, err
	}
	states := make([]*S, len(all))
	for i, j := range all {
		states[i] = j.state
	}
	return states, nil
}

// Delete has the end of the attempt remove the state and the parts of an actor; see State. What the attempt changes of
// either after it is a permanent error: the actor can't be both removed and changed. Parts.Get and List find no
// part any more.
func (a *Actor[S]) Delete(ctx context.Context, key string) error {
	turn, err := turnOf(ctx)
	if err != nil {
		return err
	}
	all, err := a.joinTurn(ctx, turn, []string{key})
	if err != nil {
		return err
	}
	last, err := encode(CodecMsgpack, all[0].state)
	if err != nil {
		return err
	}
	all[0].deleted, all[0].last = true, last
	return turn.DeleteParts(actors.Ref{Type: a.name, Key: key})
}

func (a *Actor[S]) join(ctx context.Context, keys []string) ([]*joined[S], error) {
	turn, err := turnOf(ctx)
	if err != nil {
		return nil, err
	}
	return a.joinTurn(ctx, turn, keys)
}

func (a *Actor[S]) joinTurn(ctx context.Context, turn taskcontext.Turn, keys []string) ([]*joined[S], error) {
	refs := make([]actors.Ref, len(keys))
	for i, key := range keys {
		refs[i] = actors.Ref{Type: a.name, Key: key}
	}
	seen, err := turn.Actors(ctx, refs, func(s *actors.State) (any, func() (actors.Change, error), error) {
		return a.see(s)
	})
	if err != nil {
		return nil, err
	}
	all := make([]*joined[S], len(seen))
	for i := range seen {
		j, is := seen[i].(*joined[S])
		if !is {
			return nil, permanentError{fmt.Errorf("actor %s is in this turn with another type than %v: define each type of "+
				"actors once", refs[i], reflect.TypeFor[S]())}
		}
		all[i] = j
	}
	return all, nil
}

// see decodes the state of an actor, and returns how it is encoded at the end.
func (a *Actor[S]) see(s *actors.State) (seen any, end func() (actors.Change, error), err error) {
	j := &joined[S]{state: new(S)}
	migrated, err := a.decode(s, j.state)
	if err != nil {
		return nil, nil, err
	}
	before, read := []byte(nil), *s
	if s.Exists() && !migrated {
		before = s.Value
	}
	return j, func() (actors.Change, error) {
		c := actors.Change{Read: read, Delete: j.deleted, Codec: CodecMsgpack, Schema: a.schema}
		c.Value, err = encode(CodecMsgpack, j.state)
		if j.deleted {
			if err == nil && !a.isSame(c.Value, j.last) {
				err = errors.New("it was changed after Delete in the same turn, which removes it: change it before, or leave " +
					"out Delete")
			}
			return c, err
		}
		if before == nil && !migrated && err == nil {
			before, err = encode(CodecMsgpack, new(S)) // an actor without a state that gets none
		}
		c.Write = before == nil || !a.isSame(c.Value, before)
		return c, err
	}, nil
}

// decode reads a state, and reports whether it was one of an earlier schema.
func (a *Actor[S]) decode(s *actors.State, into *S) (migrated bool, err error) {
	if !s.Exists() {
		return false, nil
	}
	what := func() string { return fmt.Sprintf("actor %s has a state", s.Ref) }
	return decodeKept(what, kept{s.Head.Schema, s.Head.Codec, s.Value}, a.schema, a.migrate, into)
}

func turnOf(ctx context.Context) (taskcontext.Turn, error) {
	turn, ok := ctx.Value(taskcontext.TurnKey{}).(taskcontext.Turn)
	if !ok {
		return nil, fmt.Errorf("%w; elsewhere use Read, Call and Submit of actors", ErrOutsideFunction)
	}
	if ctx.Value(readingKey{}) != nil {
		return nil, permanentError{errors.New("futures: a reader only reads: of other actors by Actor.Read and Parts.Get; " +
			"for what changes actors or sends, make it a method, with DefineMethod")}
	}
	if withinStep(ctx) {
		return nil, permanentError{errors.New("futures: actors and sends in a step, whose code does not run again: a later " +
			"attempt would lose them; use them after the step, with what it returns")}
	}
	return turn, nil
}

// withinStep reports whether the code of a step asks, by its own context or by that of its function.
func withinStep(ctx context.Context) bool {
	if ctx.Value(inStep{}) != nil {
		return true
	}
	log, ok := ctx.Value(taskcontext.StepsKey{}).(taskcontext.Steps)
	return ok && log.Runs() && calledByStep()
}

// Read returns the present state of an actor, and false if it has none. It waits for no call, and
// runs none. It returns ErrBadName, and an error for a state that does not decode as S.
func (a *Actor[S]) Read(ctx context.Context, c *Client, key string) (state S, exists bool, err error) {
	s, err := actors.Of(c.cluster).Read(ctx, actors.Ref{Type: a.name, Key: key})
	if err == nil {
		_, err = a.decode(&s, &state)
	}
	return state, s.Exists(), err
}

// DecodeState decodes a state as it is given to the function of Migrate.
func DecodeState(state []byte, into any) error { return decode(CodecMsgpack, state, into) }
