package edge

import (
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// check finds out which inputs some blocked futures wait for, without conflicts. Of
// those that have no list the inputs are read, each once for all that ask. Ask for
// all, then read, then see what is left.
type check struct {
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
	realized []layout.ID // inputs that are known to be realized
	inputs   []layout.ID // the others, of a future that has no list
	list     kv.Pending[kv.Page]
	listed   bool
}

// ask requests what a blocked future waits for other than some inputs that are
// realized.
func (c *check) ask(row *layout.Row, realized []layout.ID) wait {
	if row.Spec.ListsInputs() {
		// Inputs mostly end in the order of their keys, so the last one seldom ends now.
		return wait{realized: realized, listed: true, list: c.tx.GetRange(kv.Prefix(c.keys.InputsOf(row.ID)),
			kv.RangeOptions{Limit: len(realized) + 1, Reverse: true})}
	}
	others := slices.DeleteFunc(layout.UnpackIDs(row.Spec.Inputs), func(id layout.ID) bool {
		return slices.Contains(realized, id)
	})
	for _, id := range others {
		if _, asked := c.states[id]; !asked {
			if c.states == nil {
				c.states = map[layout.ID]inputState{}
			}
			c.states[id], c.inputs = inputState{}, append(c.inputs, id)
		}
	}
	return wait{realized: realized, inputs: others}
}

// read reads the inputs that were asked for.
func (c *check) read(ctx context.Context) error {
	for _, p := range read.Rows(c.tx, c.keys, c.inputs, c.keys.StateOf) {
		row, _, err := p.Wait(ctx)
		if err != nil && !layout.IsUnreadable(err) {
			return err
		}
		c.states[p.ID] = inputState{err == nil && row.State() == layout.Realized, err}
	}
	return nil
}

// last returns the last input that a future waits for, if it waits for one. It returns
// ErrNewerRecord or ErrBadRecord for an input that can't be read.
func (c *check) last(ctx context.Context, a wait) (input layout.ID, waits bool, err error) {
	for _, id := range slices.Backward(a.inputs) {
		if s := c.states[id]; s.err != nil || !s.realized {
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

// WaitsFor returns the inputs that a blocked future waits for. listed says that they are
// listed below Keyspace.InputsOf instead. An input that has failed is one of them until the
// future has failed with it.
func WaitsFor(ctx context.Context, tx kv.Reader, keys layout.Keyspace, id layout.ID,
) (ids []layout.ID, listed bool, err error) {
	row, _, err := read.Record(tx, keys, id).Wait(ctx)
	if layout.IsUnreadable(err) || row.Spec != nil && row.Spec.ListsInputs() {
		return nil, true, nil
	}
	if err != nil || row.Spec == nil || row.State() != layout.Blocked {
		return nil, false, err
	}
	c := check{tx: tx, keys: keys}
	asked := c.ask(&row, nil)
	if err := c.read(ctx); err != nil {
		return nil, false, err
	}
	for _, input := range asked.inputs {
		if !c.states[input].realized {
			ids = append(ids, input)
		}
	}
	return ids, false, nil
}
