package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Limits of the parts of actors.
const (
	// MaxPart is the largest part of an actor, encoded, in bytes.
	MaxPart = 64 << 10
	// MaxPartName is the maximum length of the name of a part, in bytes.
	MaxPartName = 256
	// MaxTurnParts is how many parts one turn writes and removes.
	MaxTurnParts = 1000
	// MaxPartList is how many parts are read at a time.
	MaxPartList = 100
)

// ErrPartsChanged is returned for parts as they were with a state that an actor no longer has, if the
// store does not keep them.
var ErrPartsChanged = errors.New("the actor has changed since its state was read, longer ago than the store keeps " +
	"what it was: read the parts soon after the state")

// PartRecord is a part of an actor, as it is stored.
type PartRecord struct {
	Schema int    `msgpack:"m,omitempty" json:"schema,omitempty"`
	Codec  string `msgpack:"c,omitempty" json:"codec,omitempty"`
	Value  []byte `msgpack:"v,omitempty" json:"-"`
}

// Part is a named part of an actor: turns read and write it without the others. Those that write one make
// a new version of the actor, so that turns which have read it see that.
type Part struct {
	// Name is 1 to MaxPartName bytes of UTF-8.
	Name string
	PartRecord
	// Removed says that a turn removes the part.
	Removed bool
	// Err is set if a part that was read can't be decoded.
	Err error
}

// Check returns ErrBadName and ErrTooLarge unless the part may be one of an actor.
func (p *Part) Check(r Ref) error {
	if p.Name == "" || len(p.Name) > MaxPartName || !utf8.ValidString(p.Name) {
		return fmt.Errorf("%w: part %.80q of actor %s: a name of %d bytes: use UTF-8 of 1 to %d", layout.ErrBadName, p.Name,
			r, len(p.Name), MaxPartName)
	}
	if n := len(p.Value); n > MaxPart {
		return fmt.Errorf("%w: part %s of actor %s has %d bytes: at most %d; divide it into more parts, or keep what is "+
			"large as objects", fdbmodel.ErrTooLarge, p.Name, r, n, MaxPart)
	}
	return nil
}

// PartRange is the part with a Name, or else up to Limit parts whose names begin with Prefix and come after
// After, in the order of their bytes.
type PartRange struct {
	Name, Prefix, After string
	Limit               int
}

// Bound returns how many parts are read: Limit, or MaxPartList for 0 and more than that.
func (r PartRange) Bound() int {
	if r.Limit <= 0 || r.Limit > MaxPartList {
		return MaxPartList
	}
	return r.Limit
}

// Part returns the key of a part of an actor.
func (k Keys) Part(r Ref, name string) []byte { return tuple.AppendString(k.of(partPart, r), name) }

// parts returns the range of parts of an actor.
func (k Keys) parts(r Ref, which PartRange) kv.Range {
	if which.Name != "" {
		return kv.Single(k.Part(r, which.Name))
	}
	begin := k.Part(r, which.Prefix)
	within := kv.Prefix(begin[:len(begin)-1]) // without the end of the text
	if after := kv.After(k.Part(r, which.After)); bytes.Compare(after, within.Begin) > 0 {
		within.Begin = after
	}
	return within
}

// Parts returns parts of an actor as they are, and the name after which the others come, empty at the end. It
// returns fewer than asked where they have about MaxTurnBytes together, and ErrBadName.
func (a *Actors) Parts(ctx context.Context, r Ref, which PartRange) (parts []Part, next string, err error) {
	if err := r.Check(); err != nil {
		return nil, "", err
	}
	err = a.cluster.View(ctx, func(tx kv.Attempt) error {
		parts, next, err = a.parts(ctx, tx.Snapshot(), r, which)
		return err
	})
	return parts, next, err
}

// PartsOf is Parts of an actor as they were with a state that was read. It returns ErrPartsChanged if the
// store no longer has them.
func (a *Actors) PartsOf(ctx context.Context, s *State, which PartRange) (parts []Part, next string, err error) {
	if !s.Head.Parts {
		return nil, "", nil
	}
	err = a.cluster.View(ctx, func(tx kv.Attempt) error {
		first := tx.Number == 1
		if first {
			tx.SetReadVersion(s.seen)
		}
		head := tx.Snapshot().Get(a.keys.Head(s.Ref))
		if parts, next, err = a.parts(ctx, tx.Snapshot(), s.Ref, which); err != nil {
			return err
		}
		stored, err := head.Wait(ctx)
		if err == nil && !bytes.Equal(stored, s.stored) {
			err = fmt.Errorf("the parts of actor %s: %w", s.Ref, ErrPartsChanged)
		}
		return err
	})
	return parts, next, err
}

// PartsFor is Parts for an attempt of a future whose turn has read a state: as they were with it, or later.
// same reports that they are of the version of the store at which the state was read. Otherwise the end of the
// turn, which finds the actor as the state was, shows that the parts have not changed in between.
func (a *Actors) PartsFor(ctx context.Context, reg *fdbmodel.Registration, f *fdbmodel.ClaimedFuture, s *State,
	which PartRange,
) (parts []Part, next string, same bool, err error) {
	if !s.Head.Parts { // also for an actor without a state: the end would not notice one that came and went
		return nil, "", true, nil
	}
	err = reg.View(ctx, f, s.seen, func(tx kv.Attempt) error {
		version, err := tx.ReadVersion(ctx)
		if err != nil {
			return err
		}
		same = version == s.seen
		parts, next, err = a.parts(ctx, tx.Snapshot(), s.Ref, which)
		return err
	})
	return parts, next, same, err
}

func (a *Actors) parts(ctx context.Context, tx kv.Reader, r Ref, which PartRange,
) (parts []Part, next string, err error) {
	within := a.keys.parts(r, which)
	if within.Empty() {
		return nil, "", nil
	}
	page, err := tx.GetRange(within, kv.RangeOptions{Limit: which.Bound() + 1, Bytes: MaxTurnBytes}).Wait(ctx)
	if err != nil {
		return nil, "", err
	}
	above, more := len(a.keys.of(partPart, r)), page.More || len(page.Items) > which.Bound()
	for _, item := range page.Items[:min(which.Bound(), len(page.Items))] {
		rest := tuple.NewReader(item.Key[above:])
		one := Part{Name: rest.Text()}
		if one.Err = rest.Done(); one.Err == nil {
			one.Err = layout.Decode(item.Key, item.Value, &one.PartRecord)
		}
		parts = append(parts, one)
		if more {
			next = one.Name
		}
	}
	return parts, next, nil
}
