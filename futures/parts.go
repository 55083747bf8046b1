package futures

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// Limits of the parts of actors.
const (
	// MaxActorPart is the largest part of an actor, encoded, in bytes.
	MaxActorPart = actors.MaxPart
	// MaxTurnParts is how many parts of actors one attempt sets and removes.
	MaxTurnParts = actors.MaxTurnParts
	// MaxPartList is how many parts Parts.List returns at a time.
	MaxPartList = actors.MaxPartList
)

// Parts are named parts of type P that actors of a type have beside their states, so that an actor may hold far
// more than MaxActorState: a call reads and writes those that it touches. They are called NAME/PART, where NAME
// is that of DefineParts. Its methods may be called from many goroutines.
//
// The methods that take the context of a function have the actor of a key take part in its attempt, as
// Actor.State does, whose errors they return: what they set and remove is written with the result and the states,
// or not at all, and is a new version of the actor. What they read, also by their own changes, is what the actor
// has in the end if the result counts. Before, it may be newer than the state that the function has seen.
type Parts[P any] struct {
	actor, name string
	// join has an actor take part in the turn of a function, which it returns.
	join    func(ctx context.Context, key string) (taskcontext.Turn, error)
	schema  int
	migrate func(from int, part []byte) (P, error)
}

// NamedPart is a part of an actor in a list.
type NamedPart[P any] struct {
	// Name is that after the slash.
	Name  string
	Value P
}

// DefineParts names parts of the actors of a type: as a type is named, and each kind of parts once. P is encoded
// as msgpack, so that fields may be added and left out. The name of a part has up to 256 bytes of UTF-8 with that
// of its kind.
func DefineParts[P, S any](a *Actor[S], name string) *Parts[P] {
	return &Parts[P]{actor: a.name, name: name, join: func(ctx context.Context, key string) (taskcontext.Turn, error) {
		turn, err := turnOf(ctx)
		if err == nil {
			_, err = a.joinTurn(ctx, turn, []string{key})
		}
		return turn, err
	}}
}

// Migrate returns the parts with the number of their schema, from 1, which each is stored with; those of
// DefineParts have number 0. Reading a part of a lower number returns what migrate makes of its msgpack, and leaves
// it until it is set; one of a higher number is an error. It has nothing to do with the schema of the state.
func (p *Parts[P]) Migrate(schema int, migrate func(from int, part []byte) (P, error)) *Parts[P] {
	migrated := *p
	migrated.schema, migrated.migrate = schema, migrate
	return &migrated
}

// Get returns a part of an actor, and false if it has none of the name. It costs one read. In a reader, the part of the
// actor that is read is as it was with the state; see DefineReader.
func (p *Parts[P]) Get(ctx context.Context, key, name string) (value P, exists bool, err error) {
	part, err := p.part(key, name)
	if err != nil {
		return value, false, err
	}
	found, _, err := p.read(ctx, key, actors.PartRange{Name: part.Name})
	return p.only(key, found, err)
}

// List returns up to limit parts after the one with a name, empty for the first ones, in the order of the bytes of
// their names, and the name after which the others come, empty at the end. A limit of 0, or above MaxPartList,
// is MaxPartList; those of about 1 MB together are a page, and one may have none. See Get.
func (p *Parts[P]) List(ctx context.Context, key, after string, limit int,
) (list []NamedPart[P], next string, err error) {
	prefix := p.name + "/"
	found, next, err := p.read(ctx, key, actors.PartRange{Prefix: prefix, After: prefix + after, Limit: limit})
	if err != nil {
		return nil, "", err
	}
	list = make([]NamedPart[P], len(found))
	for i := range found {
		list[i].Name = found[i].Name[len(prefix):]
		if err := p.decode(key, &found[i], &list[i].Value); err != nil {
			return nil, "", err
		}
	}
	if next != "" {
		next = next[len(prefix):]
	}
	return list, next, nil
}

// Set has the end of the attempt write a part of an actor, which has a state from then on. It returns
// a permanent error for a part above MaxActorPart, for more than MaxTurnParts, and in a reader. The attempt
// fails if it writes more than 1 MB in all.
func (p *Parts[P]) Set(ctx context.Context, key, name string, value P) error {
	part, err := p.part(key, name)
	if err == nil {
		part.Schema, part.Codec = p.schema, CodecMsgpack
		part.Value, err = encode(CodecMsgpack, &value)
	}
	if err != nil {
		return err
	}
	return p.write(ctx, key, part)
}

// Delete has the end of the attempt remove a part of an actor, if it has it; see Set.
func (p *Parts[P]) Delete(ctx context.Context, key, name string) error {
	part, err := p.part(key, name)
	if err != nil {
		return err
	}
	part.Removed = true
	return p.write(ctx, key, part)
}

// Read returns the present part of an actor, and false if it has none of the name. It waits for no call, and runs
// none. Of several, use a reader to have them of one time. It returns ErrBadName, and an error for a part that
// does not decode as P.
func (p *Parts[P]) Read(ctx context.Context, c *Client, key, name string) (value P, exists bool, err error) {
	part, err := p.part(key, name)
	if err != nil {
		return value, false, err
	}
	found, _, err := actors.Of(c.cluster).Parts(ctx, p.ref(key), actors.PartRange{Name: part.Name})
	return p.only(key, found, err)
}

func (p *Parts[P]) ref(key string) actors.Ref { return actors.Ref{Type: p.actor, Key: key} }

// part returns the part with a name, still without a value.
func (p *Parts[P]) part(key, name string) (part actors.Part, err error) {
	part.Name = p.name + "/" + name
	if err = actors.CheckType(p.name); err == nil && name == "" {
		err = fmt.Errorf("%w: a part %s of actor %s without a name", layout.ErrBadName, part.Name, p.ref(key))
	}
	return part, cmp.Or(err, part.Check(p.ref(key)))
}

// read reads parts for a reader of the actor, or in the turn of a function.
func (p *Parts[P]) read(ctx context.Context, key string, which actors.PartRange) ([]actors.Part, string, error) {
	if r, is := ctx.Value(readingKey{}).(*reading); is && r.state.Ref == p.ref(key) {
		return r.all.PartsOf(ctx, &r.state, which)
	} else if is {
		return r.all.Parts(ctx, p.ref(key), which)
	}
	turn, err := p.join(ctx, key)
	if err != nil {
		return nil, "", err
	}
	return turn.Parts(ctx, p.ref(key), which)
}

func (p *Parts[P]) write(ctx context.Context, key string, part actors.Part) error {
	turn, err := p.join(ctx, key)
	if err != nil {
		return err
	}
	return turn.SetPart(p.ref(key), part)
}

// only returns the one part that was found, if it was.
func (p *Parts[P]) only(key string, found []actors.Part, err error) (value P, exists bool, _ error) {
	if err != nil || len(found) == 0 {
		return value, false, err
	}
	err = p.decode(key, &found[0], &value)
	return value, err == nil, err
}

func (p *Parts[P]) decode(key string, part *actors.Part, into *P) error {
	if part.Err != nil {
		return part.Err
	}
	what := func() string { return fmt.Sprintf("actor %s has a part %s", p.ref(key), part.Name) }
	_, err := decodeKept(what, kept{part.Schema, part.Codec, part.Value}, p.schema, p.migrate, into)
	return err
}

// kept is a state or a part as it is stored.
type kept struct {
	schema int
	codec  string
	value  []byte
}

// decodeKept decodes what an actor has for code that knows a schema, and reports whether it was one of an earlier
// schema.
func decodeKept[T any](what func() string, of kept, known int, migrate func(int, []byte) (T, error), into *T,
) (migrated bool, err error) {
	switch {
	case of.schema > known:
		return false, fmt.Errorf("%s of schema %d, and this code knows %d: run newer code", what(), of.schema, known)
	case of.schema < known:
		if *into, err = migrate(of.schema, of.value); err != nil {
			err = permanentError{fmt.Errorf("%s of schema %d that does not migrate to %d: %w", what(), of.schema, known, err)}
		}
		return true, err
	}
	if err := decode(of.codec, of.value, into); err != nil {
		return false, permanentError{fmt.Errorf("%s of %d bytes that does not decode as %v: %w; change the type so that it "+
			"does, or give the new one a higher schema with Migrate", what(), len(of.value), reflect.TypeFor[T](), err)}
	}
	return false, nil
}
