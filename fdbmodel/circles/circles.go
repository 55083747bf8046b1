// Package circles finds running functions that wait for each other.
package circles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/edges"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// ErrCircle is returned by the await of a function that waits for a future which waits for the function:
// none of the waits in such a circle would end.
var ErrCircle = errors.New("the function awaits a future that waits for it")

// maxSteps is how many futures the search for one circle reads at most, and how many inputs of a blocked one
// it follows. A circle beyond them is not found.
const maxSteps = 256

// Wait is a running function that waits for one future, as the heartbeat of its worker says.
type Wait struct {
	layout.Await
	Worker layout.WorkerID
	// Beat is the count of that heartbeat.
	Beat     int64
	Function string
	Lane     layout.Lane
}

// Circle is a circle of waits, each of which is for the next one, or for what waits for that. The
// last one waits for the first.
type Circle []Wait

// Waits are the waits of the running functions of a cluster, as the heartbeats of its workers name them: at
// most layout.MaxAwaits of each worker. A function that awaits several futures at once is not one of them,
// since it may go on with the first. Its methods are not safe for concurrent use, and only read.
type Waits struct {
	cluster *fdbmodel.Cluster
	of      map[layout.ID]*Wait
	holders map[layout.Lane]*Wait // of lanes of width 1; nil until one is asked for
}

// Read returns the waits of a cluster.
func Read(ctx context.Context, c *fdbmodel.Cluster) (*Waits, error) {
	members, err := c.Workers(ctx)
	if err != nil {
		return nil, err
	}
	return New(c, members), nil
}

// New returns the waits of the workers of a cluster.
func New(c *fdbmodel.Cluster, members []fdbmodel.Member) *Waits {
	w := &Waits{cluster: c, of: map[layout.ID]*Wait{}}
	for i := range members {
		beat := &members[i].Heartbeat
		for _, a := range beat.Awaits {
			if a.Count == 1 && !a.For.IsZero() {
				w.of[a.ID] = &Wait{Await: a, Worker: members[i].ID, Beat: beat.Count}
			}
		}
	}
	return w
}

// Through returns the circle that a running future is in, from its own wait on, nil if none is found. What
// it follows is: a running function to what it awaits, a future in line of a lane of width 1 to the function
// that has its slot, and a blocked future to its inputs. A heartbeat may be older than the
// end of a wait that it names: what is seen twice, of newer heartbeats, is a circle.
func (w *Waits) Through(ctx context.Context, id layout.ID) (Circle, error) {
	first := w.of[id]
	if first == nil {
		return nil, nil
	}
	row, found, err := w.row(ctx, id)
	if err != nil || !found || !first.holds(&row) {
		return nil, err
	}
	first.note(&row)
	s := search{waits: w, back: id, seen: map[layout.ID]bool{}}
	return s.follow(ctx, Circle{*first}, first.For)
}

// holds reports whether the future is still claimed by the worker that has told of the wait.
func (w *Wait) holds(row *layout.Row) bool { return row.Claim != nil && row.Claim.Worker == w.Worker }

func (w *Wait) note(row *layout.Row) { w.Function, w.Lane = row.Spec.Function, row.Spec.Lane }

// search is a search for a way back to a future.
type search struct {
	waits *Waits
	back  layout.ID
	seen  map[layout.ID]bool
}

// readable returns those futures that can be read.
func (w *Waits) readable(ctx context.Context, ids []layout.ID) (rows []layout.Row, err error) {
	for _, id := range ids {
		row, found, err := w.row(ctx, id)
		if err != nil {
			return nil, err
		}
		if found {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (w *Waits) row(ctx context.Context, id layout.ID) (row layout.Row, found bool, err error) {
	row, err = w.cluster.Get(ctx, id)
	if errors.Is(err, fdbmodel.ErrNotFound) || layout.IsUnreadable(err) {
		return row, false, nil
	}
	return row, err == nil && row.Spec != nil, err
}

// follow returns the circle that goes on from the waits so far with what keeps a future from its end.
func (s *search) follow(ctx context.Context, so Circle, id layout.ID) (Circle, error) {
	if s.seen[id] || len(s.seen) == maxSteps {
		return nil, nil
	}
	s.seen[id] = true
	row, found, err := s.waits.row(ctx, id)
	if err != nil || !found {
		return nil, err
	}
	switch {
	case row.State() == layout.Claimed:
		if next := s.waits.of[id]; next != nil && next.holds(&row) {
			next.note(&row)
			return s.goOn(ctx, so, next)
		}
	case row.State() == layout.Blocked && !row.Spec.IsPromise():
		return s.followInputs(ctx, so, id)
	case row.InLine():
		holder, err := s.waits.holder(ctx, row.Spec.Lane)
		if err != nil || holder == nil {
			return nil, err
		}
		return s.goOn(ctx, so, holder)
	}
	return nil, nil
}

func (s *search) goOn(ctx context.Context, so Circle, next *Wait) (Circle, error) {
	if next.ID == s.back {
		return so, nil
	}
	return s.follow(ctx, append(slices.Clip(so), *next), next.For)
}

func (s *search) followInputs(ctx context.Context, so Circle, id layout.ID) (Circle, error) {
	ids, _, err := edges.Of(s.waits.cluster).WaitsFor(ctx, id, maxSteps)
	if err != nil {
		return nil, err
	}
	for _, input := range ids {
		if circle, err := s.follow(ctx, so, input); circle != nil || err != nil {
			return circle, err
		}
	}
	return nil, nil
}

// holder returns the wait of the function that has the slot of a lane of width 1, nil if it doesn't wait.
func (w *Waits) holder(ctx context.Context, of layout.Lane) (*Wait, error) {
	if w.holders == nil {
		if err := w.findHolders(ctx); err != nil {
			return nil, err
		}
	}
	holder := w.holders[of]
	if holder == nil {
		return nil, nil
	}
	kind, err := lanes.Of(w.cluster).Kind(ctx, of.Kind)
	switch {
	case errors.Is(err, fdbmodel.ErrNotFound):
		return holder, nil // a kind that was removed has the strictest settings
	case layout.IsUnreadable(err):
		return nil, nil
	case err != nil || kind.Width != 1 || kind.Bundle != "":
		return nil, err
	}
	return holder, nil
}

// findHolders reads the futures of all waits for their lanes.
func (w *Waits) findHolders(ctx context.Context) error {
	ids := make([]layout.ID, 0, len(w.of))
	for id := range w.of {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b layout.ID) int { return bytes.Compare(a[:], b[:]) })
	holders := map[layout.Lane]*Wait{}
	for part := range slices.Chunk(ids, layout.MaxSubmit) {
		rows, err := w.cluster.GetMany(ctx, part)
		if layout.IsUnreadable(err) { // one that newer code runs keeps no circle of others from being found
			rows, err = w.readable(ctx, part)
		}
		if err != nil {
			return err
		}
		for i := range rows {
			row := &rows[i]
			if wait := w.of[row.ID]; wait != nil && row.Spec != nil && wait.holds(row) && row.HasSlot() {
				wait.note(row)
				holders[row.Spec.Lane] = wait
			}
		}
	}
	w.holders = holders
	return nil
}

// Youngest returns the id of the wait that began last: the one to refuse, if one is. All who see the circle name
// the same one.
func (c Circle) Youngest() layout.ID {
	return slices.MaxFunc(c, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), bytes.Compare(a.ID[:], b.ID[:]))
	}).ID
}

// Lasts reports whether the circle was seen before, and heartbeats since then have named each of its waits.
func (c Circle) Lasts(before Circle) bool {
	return len(c) == len(before) && slices.EqualFunc(c, before, func(now, then Wait) bool {
		return now.Await == then.Await && now.Worker == then.Worker && now.Beat > then.Beat
	})
}

// String says who waits for whom.
func (c Circle) String() string {
	parts := make([]string, 0, len(c))
	for i := range c {
		of := &c[i]
		name := strings.TrimPrefix(of.Function, "go:")
		if ref, is := actors.OfLane(of.Lane); is {
			name += " of actor " + ref.String()
		} else if !of.Lane.IsZero() {
			name += fmt.Sprintf(" in lane %v", of.Lane)
		}
		parts = append(parts, fmt.Sprintf("%s (%s) awaits %s", of.ID, name, of.For))
	}
	return strings.Join(parts, ", for which ") + ", which waits for the first"
}
