// Package edges reads the dependencies between futures.
package edges

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Edges are the dependencies between the futures of a cluster. Their methods are safe for
// concurrent use, and only read.
type Edges struct{ c *fdbmodel.Cluster }

// Of returns the edges of a cluster.
func Of(c *fdbmodel.Cluster) Edges { return Edges{c} }

// Inputs returns the futures that one takes as inputs, in their order.
func (e Edges) Inputs(ctx context.Context, id layout.ID, spec *layout.Spec) ([]layout.ID, error) {
	if spec.InputsRef == nil {
		return layout.UnpackIDs(spec.Inputs), nil
	}
	packed, err := pieces.ReadValue(ctx, e.c, e.c.Keys(), id, *spec.InputsRef)
	return layout.UnpackIDs(packed), err
}

// FirstInputs returns the first ones of Inputs: at most limit, and of futures with very many
// at most 5,000. It returns layout.ErrNotFound if the future is gone.
func (e Edges) FirstInputs(ctx context.Context, id layout.ID, spec *layout.Spec, limit int) ([]layout.ID, error) {
	if spec.InputsRef == nil {
		ids := layout.UnpackIDs(spec.Inputs)
		return ids[:min(len(ids), limit)], nil
	}
	var ids []layout.ID
	err := e.c.View(ctx, func(tx kv.Attempt) (err error) {
		ids, err = edge.Some(ctx, tx.Snapshot(), e.c.Keys(), &layout.Row{ID: id, Spec: spec}, 0, limit)
		return err
	})
	if errors.Is(err, layout.ErrBadRecord) {
		err = fmt.Errorf("inputs of future %s: %w", id, layout.ErrNotFound)
	}
	return ids, err
}

// Dependants returns up to limit of the futures that use the result of one and
// are not over, from the one behind after on, and whether there are more. A zero
// after begins at the first.
func (e Edges) Dependants(ctx context.Context, id, after layout.ID, limit int) ([]layout.ID, bool, error) {
	r := kv.Prefix(e.c.Keys().DependantsOf(id))
	if !after.IsZero() {
		r.Begin = kv.After(e.c.Keys().Dependant(id, after))
	}
	return e.list(ctx, r, limit, func(key *layout.Key) layout.ID { return key.ID })
}

// WaitsFor returns up to limit of the inputs that a blocked future waits for, and
// whether there are more. An input that has failed is one of them until the future has
// failed with it.
func (e Edges) WaitsFor(ctx context.Context, id layout.ID, limit int) (ids []layout.ID, more bool, err error) {
	listed := false
	err = e.c.View(ctx, func(tx kv.Attempt) (err error) {
		ids, listed, err = edge.WaitsFor(ctx, tx.Snapshot(), e.c.Keys(), id)
		return err
	})
	if listed {
		return e.list(ctx, kv.Prefix(e.c.Keys().InputsOf(id)), limit, func(key *layout.Key) layout.ID {
			return key.Future("input")
		})
	}
	return ids[:min(len(ids), limit)], len(ids) > limit, err
}

func (e Edges) list(ctx context.Context, r kv.Range, limit int, other func(*layout.Key) layout.ID,
) (ids []layout.ID, more bool, err error) {
	err = e.c.View(ctx, func(tx kv.Attempt) error {
		page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: limit + 1}).Wait(ctx)
		if err != nil {
			return err
		}
		ids, more = nil, len(page.Items) > limit
		for _, item := range page.Items[:min(limit, len(page.Items))] {
			if key := layout.ParseKey(item.Key); key.Kind != nil {
				ids = append(ids, other(&key))
			}
		}
		return nil
	})
	return ids, more, err
}
