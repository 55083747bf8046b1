package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// maxToldAtOnce is how many users of a result are told by the transaction that
// realizes it. Of more, settlements tell all.
const maxToldAtOnce = 8

// telling tells futures that inputs of theirs are realized, within the
// transaction that realizes those or in one that settles edges. Futures that wait
// for no other input are unblocked.
//
// Two inputs that end at once don't see the other's end. So who sees that another
// input is left either relies on its key, and repeats if that is cleared, or leaves
// a mark, so that somebody looks again after the commit. The one that commits last
// leaves its mark behind all ends, and who looks there sees them. Settlements need
// neither where inputs are not listed: they tell of what has ended before, so who ends
// another input sees it, or leaves a mark.
type telling struct {
	cluster *Cluster
	tx      kv.Attempt
	// looks says to leave a mark at a future that still waits, and not to rely on the
	// key of the input that it waits for.
	looks bool
	// waiting are the futures to tell, with those of their inputs that are realized.
	waiting map[layout.ID][]layout.ID
	order   []layout.ID
	told    []toldUser
}

// toldUser is a blocked future that is told of inputs.
type toldUser struct {
	row    layout.Row
	inputs []layout.ID
	// free is set if it waits for no other input, look if somebody is to look again.
	// What it waits for decides if asks is set.
	free, look, asks bool
	waits            wait
}

func (t *telling) add(user, input layout.ID) {
	if t.waiting == nil {
		t.waiting = map[layout.ID][]layout.ID{}
	}
	if t.waiting[user] == nil {
		t.order = append(t.order, user)
	}
	t.waiting[user] = append(t.waiting[user], input)
}

// addUsers adds the users of futures that the transaction realizes, and returns
// those all of whose users it tells. It conflicts with one that links another user
// to these.
func (t *telling) addUsers(ctx context.Context, realized []layout.ID) (told map[layout.ID]bool, err error) {
	if len(realized) == 0 {
		return nil, nil
	}
	keys := t.cluster.keys
	pages := read.Users(t.tx.Snapshot(), keys, realized, maxToldAtOnce+1)
	told = make(map[layout.ID]bool, len(realized))
	for i, id := range realized {
		page, err := pages[i].Wait(ctx)
		if err != nil {
			return nil, err
		}
		if len(page.Items) > maxToldAtOnce {
			continue
		}
		told[id] = true
		t.tx.AddReadConflictRange(kv.Prefix(keys.DependantsOf(id)))
		for _, item := range page.Items {
			if user, ok := layout.OtherEnd(item.Key); ok {
				t.add(user, id)
			}
		}
	}
	return told, nil
}

// read reads the futures to tell, and decides which of them wait for no other
// input.
func (t *telling) read(ctx context.Context) error {
	if len(t.order) == 0 {
		return nil
	}
	keys := t.cluster.keys
	others := waits{tx: t.tx.Snapshot(), keys: keys}
	t.told = make([]toldUser, 0, len(t.order))
	for _, p := range read.Rows(others.tx, keys, t.order, keys.Spec) {
		row, _, err := p.Wait(ctx)
		if err != nil && !layout.IsUnreadable(err) {
			return err
		}
		u := toldUser{row: row, inputs: t.waiting[p.ID]}
		switch {
		case err != nil:
			u.row, u.look = layout.Row{ID: p.ID}, true // a version that can read it looks
		case row.Spec == nil || row.State() != layout.Blocked:
			continue
		case row.Blocked.Linked < row.Spec.CountInputs():
			u.look = true // in case the last one is linked meanwhile
		case row.Spec.CountInputs() == len(u.inputs):
			u.free = true
		default:
			u.asks, u.waits = true, others.ask(&row, u.inputs)
		}
		t.told = append(t.told, u)
	}
	if err := others.read(ctx); err != nil {
		return err
	}
	for i := range t.told {
		u := &t.told[i]
		if u.asks {
			input, waits, err := others.last(ctx, u.waits)
			if err != nil && !layout.IsUnreadable(err) {
				return err
			}
			t.decide(u, input, waits, err == nil)
		}
		if u.free {
			t.tx.AddReadConflictRange(keys.RecordRange(u.row.ID))
		}
	}
	return nil
}

// decide decides on a future that may wait for another input, which may be one that
// only a newer version can read.
func (t *telling) decide(u *toldUser, other layout.ID, waits, readable bool) {
	switch {
	case !waits:
		u.free = true
	case t.looks || !readable:
		u.look = true
	case u.waits.listed:
		t.tx.AddReadConflictKey(t.cluster.keys.Input(u.row.ID, other))
	}
}

// write tells the futures that read found. apply applies an event to one of them.
func (t *telling) write(w *WriteSet, apply func(*layout.Row, Event)) {
	for i := range t.told {
		u := &t.told[i]
		if u.row.Spec == nil || u.row.Spec.ListsInputs() {
			for _, input := range u.inputs {
				t.tx.Clear(w.Keys.Input(u.row.ID, input))
			}
		}
		switch {
		case u.free && u.row.Blocked.Objects:
			w.edges.MarkLook(u.row.ID, u.inputs[0]) // for the worker that has them, once they are committed
		case u.free:
			apply(&u.row, Event{Kind: EventUnblock, Now: t.cluster.clock.Now()})
		case u.look:
			w.edges.MarkLook(u.row.ID, u.inputs[0])
		}
	}
}
