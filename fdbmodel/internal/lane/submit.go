package lane

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Check checks the lane of a future that is submitted. One without a lane has none of the
// marks that lanes set. It returns ErrBadSpec and ErrBadName.
func Check(spec *layout.Spec, assigned bool) error {
	if spec.Lane.IsZero() {
		spec.Aside, spec.Member, spec.Bundle = false, false, false
		return nil
	}
	if err := spec.Lane.Check(); err != nil {
		return err
	}
	switch {
	case spec.Held():
		return fmt.Errorf("%w: lane %s: a future of a batch can't be in a lane", layout.ErrBadSpec, spec.Lane)
	case assigned:
		return fmt.Errorf("%w: lane %s: an assigned future can't be in a lane", layout.ErrBadSpec, spec.Lane)
	case spec.Bundle:
		return fmt.Errorf("%w: lane %s: bundles are made by lanes", layout.ErrBadSpec, spec.Lane)
	case spec.MustBeNear:
		return fmt.Errorf("%w: lane %s: a future that must be near an object can't be in a lane", layout.ErrBadSpec,
			spec.Lane)
	}
	return nil
}

// Obey reads the kinds of lanes of n futures that are submitted, and has each obey the
// settings that are its own from now on. It returns ErrNotFound for a kind that was not
// set, and the index of that future.
func (x *Index) Obey(ctx context.Context, n int, specOf func(i int) *layout.Spec) (at int, err error) {
	asked := map[string]kv.Pending[[]byte]{}
	for i := range n {
		kind := specOf(i).Lane.Kind
		if _, known := asked[kind]; kind != "" && !known {
			asked[kind] = x.Tx.Get(x.Keys.LaneKind(kind))
		}
	}
	for i := range n {
		spec := specOf(i)
		if spec.Lane.IsZero() {
			continue
		}
		k, err := x.Kind(ctx, spec.Lane.Kind, asked[spec.Lane.Kind])
		if err != nil {
			return i, err
		}
		if !k.Set {
			return i, fmt.Errorf("lane %s: kind %q: %w: set it first, as with futura lane set %s --width 1", spec.Lane,
				spec.Lane.Kind, layout.ErrNotFound, spec.Lane.Kind)
		}
		spec.Aside, spec.Member = k.Settings.Aside, k.Settings.Bundle != ""
		if spec.Member && (spec.Function != k.Settings.Bundle || spec.HasInputs()) {
			return i, fmt.Errorf("%w: lane %s: its futures run in bundles of the function %s: submit them with that "+
				"function, and without inputs", layout.ErrBadSpec, spec.Lane, k.Settings.Bundle)
		}
	}
	return 0, nil
}
