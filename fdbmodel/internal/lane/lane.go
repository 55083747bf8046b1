// Package lane admits the futures of lanes: up to a width, at a rate, in order, and in turn
// where the lanes of a kind share a total width. It is the index of those in line.
package lane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Model is what admissions need of the model.
type Model interface {
	// Now returns the time.
	Now() time.Time
	// Incarnation is that of the cluster's config.
	Incarnation() int64
	// DrawID returns the id of a new future.
	DrawID() (layout.ID, error)
	// Admit makes the row of a future in line that of an admitted one, and returns false if it can't be
	// admitted.
	Admit(row *layout.Row, now time.Time) bool
	// Apply writes the difference between two rows.
	Apply(before, after *layout.Row)
	// Insert writes a new future that has no arguments.
	Insert(row *layout.Row)
	// Place puts an admitted future where it waits.
	Place(row *layout.Row)
	// Offer has a worker woken for an admitted future, after the commit.
	Offer(row *layout.Row)
}

// Index is the lanes whose slots or lines a transaction changes.
type Index struct {
	*index.Set
	Model Model
	Known *Known
	// Lined are futures whose rows have the versionstamp of the transaction, so that it can't read them: those that
	// one which is Shared has put in line, and those that it has realized before it submits others. None of them is
	// taken out of a line, nor are those that get in line with it, which are among them then.
	Lined map[layout.ID]*layout.Row
	// Due is when the first lane is to be looked at again that the transaction holds
	// back, 0 for none.
	Due int64
	// Skip are lanes that the transaction must leave alone, because they can't be read.
	Skip []layout.Lane

	shared  bool
	changes []*Change // in the order in which they were met
	known   map[layout.Lane]*Change
	kinds   map[string]*Kind
}

// Change is what a transaction changes of one lane.
type Change struct {
	// Pause pauses or resumes the lane. Defaults to nil: it stays as it is.
	Pause *bool
	// Sweep says that the settings of the lane's kind have changed.
	Sweep bool
	// Due is the key that says that the lane is to be looked at, if that is why.
	Due []byte

	lane    layout.Lane
	slots   int // taken less freed
	called  int // bundles that have yet to take their members, more less fewer
	joining []joining
}

// joining is a future that gets in line.
type joining struct {
	row *layout.Row
	// submitted says that it is new: the submitter wakes a worker for it, and a full lane refuses it.
	submitted bool
}

// Skips reports whether the transaction must leave a lane alone.
func (x *Index) Skips(l layout.Lane) bool { return slices.Contains(x.Skip, l) }

// Len returns how many lanes the transaction changes.
func (x *Index) Len() int { return len(x.changes) }

// Of returns the changes of a lane, which the transaction then looks at.
func (x *Index) Of(l layout.Lane) *Change {
	c := x.known[l]
	if c == nil {
		if x.known == nil {
			x.known = map[layout.Lane]*Change{}
		}
		c = &Change{lane: l}
		x.known[l], x.changes = c, append(x.changes, c)
	}
	return c
}

// Joining returns the futures that get in line with the transaction, in a map of the caller's.
func (x *Index) Joining() map[layout.ID]*layout.Row {
	rows := map[layout.ID]*layout.Row{}
	for _, c := range x.changes {
		for _, j := range c.joining {
			rows[j.row.ID] = j.row
		}
	}
	return rows
}

// Update implements index.Index. It notes what a transition means for the lane of a future.
func (x *Index) Update(before, after *layout.Row) {
	if after == nil || after.Spec.Lane.IsZero() {
		return
	}
	if after.Line != nil && (before == nil || before.Line == nil) {
		c := x.Of(after.Spec.Lane)
		c.joining = append(c.joining, joining{after, before == nil})
	}
	if before == nil {
		return // a bundle that a lane calls is counted by its admission
	}
	if had, has := before.IsCalled(), after.IsCalled(); had != has {
		change := x.Of(after.Spec.Lane)
		if change.called++; had {
			change.called -= 2
		}
	}
	if had, has := before.HasSlot(), after.HasSlot(); had != has {
		change := x.Of(after.Spec.Lane)
		if change.slots++; had {
			change.slots -= 2
		}
	}
}

// Kind is a kind of lanes, with its turns if it has a total width.
type Kind struct {
	// Set is false for a kind without settings: it has the strictest ones.
	Set      bool
	Settings layout.LaneKind

	name  string
	total layout.LaneTotal
	was   layout.LaneTotal
	// front are the lanes whose turn is next, as read, back those that get in behind
	// them, and unread says that there are others between.
	front, back []*state
	unread      bool
	passed      bool   // some lanes were left out, as they can't be read
	next        []byte // where the others begin
}

// Kind returns the settings of a kind, which were asked for unless the transaction knows
// them. One that was removed while futures of it were still to get in line has the
// strictest ones.
func (x *Index) Kind(ctx context.Context, name string, asked kv.Pending[[]byte]) (*Kind, error) {
	if k := x.kinds[name]; k != nil {
		return k, nil
	}
	k := &Kind{name: name, Settings: layout.LaneKind{Width: 1}}
	value, err := asked.Wait(ctx)
	if err == nil && value != nil {
		k.Set, err = true, layout.DecodeLaneKind(x.Keys.LaneKind(name), value, &k.Settings)
	}
	if err != nil {
		return nil, err
	}
	if x.kinds == nil {
		x.kinds = map[string]*Kind{}
	}
	x.kinds[name] = k
	return k, nil
}

// DamagedError is the error of a transaction that changes lanes of which a record can't be
// read: their own, or that of their kind. It is one of those for which layout.IsUnreadable
// holds.
type DamagedError struct {
	Lanes []layout.Lane
	Err   error // of the first one
}

// Error implements error.
func (d *DamagedError) Error() string { return fmt.Sprintf("lane %s: %v", d.Lanes[0], d.Err) }

// Unwrap returns the error of the first lane.
func (d *DamagedError) Unwrap() error { return d.Err }
