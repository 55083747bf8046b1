package fdbmodel

import (
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// waits finds out which inputs some blocked futures wait for, without conflicts. Of
// those that have no list the inputs are read, each once for all that ask. Ask for
// all, then read, then look.
type waits struct {
	tx     kv.Reader
	keys   layout.Keyspace
	inputs []layout.ID
	states map[layout.ID]inputState
}

// inputState is what is known of an input.
type inputState struct {
	realized bool
	err      error // it can't be read
}

// wait is what one blocked future may wait for.
type wait struct {
	realized []layout.ID // inputs that whoever asks knows to be realized
	inputs   []layout.ID // the others, of a future that has no list
	list     kv.Pending[kv.Page]
	listed   bool
}

// ask requests what a blocked future waits for other than some inputs that are
// realized.
func (w *waits) ask(row *layout.Row, realized []layout.ID) wait {
	if row.Spec.ListsInputs() {
		// Inputs mostly end in the order of their keys, so the last one seldom ends now.
		return wait{realized: realized, listed: true, list: w.tx.GetRange(kv.Prefix(w.keys.InputsOf(row.ID)),
			kv.RangeOptions{Limit: len(realized) + 1, Reverse: true})}
	}
	others := slices.DeleteFunc(layout.UnpackIDs(row.Spec.Inputs), func(id layout.ID) bool {
		return slices.Contains(realized, id)
	})
	for _, id := range others {
		if _, asked := w.states[id]; !asked {
			if w.states == nil {
				w.states = map[layout.ID]inputState{}
			}
			w.states[id], w.inputs = inputState{}, append(w.inputs, id)
		}
	}
	return wait{realized: realized, inputs: others}
}

// read reads the inputs that were asked for.
func (w *waits) read(ctx context.Context) error {
	for _, p := range read.Rows(w.tx, w.keys, w.inputs, w.keys.StateOf) {
		row, _, err := p.Wait(ctx)
		if err != nil && !layout.IsUnreadable(err) {
			return err
		}
		w.states[p.ID] = inputState{err == nil && row.State() == layout.Realized, err}
	}
	return nil
}

// last returns the last input that a future waits for, if it waits for one. It returns
// ErrNewerRecord or ErrBadRecord for an input that can't be read.
func (w *waits) last(ctx context.Context, a wait) (input layout.ID, waits bool, err error) {
	for _, id := range slices.Backward(a.inputs) {
		if s := w.states[id]; s.err != nil || !s.realized {
			return id, true, s.err
		}
	}
	if !a.listed {
		return input, false, nil
	}
	page, err := a.list.Wait(ctx)
	if err != nil {
		return input, false, err
	}
	for _, item := range page.Items {
		if id, ok := layout.OtherEnd(item.Key); !ok || !slices.Contains(a.realized, id) {
			return id, true, nil
		}
	}
	return input, false, nil
}

// WaitsFor returns up to limit of the inputs that a blocked future waits for, and
// whether there are more. An input that has failed is one of them until the future has
// failed with it.
func (c *Cluster) WaitsFor(ctx context.Context, id layout.ID, limit int) (ids []layout.ID, more bool, err error) {
	listed := false
	err = c.View(ctx, func(tx kv.Attempt) error {
		ids = nil
		w := waits{tx: tx.Snapshot(), keys: c.keys}
		row, _, err := read.Record(w.tx, c.keys, id).Wait(ctx)
		if listed = layout.IsUnreadable(err) || row.Spec != nil && row.Spec.ListsInputs(); listed {
			return nil
		}
		if err != nil || row.Spec == nil || row.State() != layout.Blocked {
			return err
		}
		asked := w.ask(&row, nil)
		if err := w.read(ctx); err != nil {
			return err
		}
		for _, input := range asked.inputs {
			if !w.states[input].realized {
				ids = append(ids, input)
			}
		}
		return nil
	})
	if listed {
		return c.edges(ctx, kv.Prefix(c.keys.InputsOf(id)), limit, func(key *layout.Key) layout.ID {
			return key.Future("input")
		})
	}
	return ids[:min(len(ids), limit)], len(ids) > limit, err
}
