package edge

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// RequireReleased returns state.ErrTransition if a finished future may not be removed: it is
// pinned, another one uses its result, or its own edges are not resolved.
func RequireReleased(ctx context.Context, tx kv.Reader, keys layout.Keyspace, row *layout.Row) error {
	pins, err := read.Pins(ctx, tx, keys, row)
	if err != nil {
		return err
	}
	if len(pins.Holders) > 0 {
		return fmt.Errorf("future %s is pinned by %s: discard is %w; unpin it first", row.ID, pins.Holders[0],
			state.ErrTransition)
	}
	if !row.Dependants && row.Spec.InputsRef == nil {
		return nil
	}
	asked := tx.Get(keys.Resolve(row.ID))
	prefix := keys.DependantsOf(row.ID)
	page, err := tx.GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: 1}).Wait(ctx)
	if err != nil {
		return err
	}
	mark, err := asked.Wait(ctx)
	switch {
	case err != nil:
		return err
	case len(page.Items) > 0:
		key := layout.ParseKey(page.Items[0].Key)
		return fmt.Errorf("future %s is an input of future %s, which may still need it: discard is %w; cancel or discard "+
			"that one first", row.ID, key.ID, state.ErrTransition)
	case mark != nil:
		return fmt.Errorf("future %s has just ended, and its dependencies are not resolved: discard is %w; try again", row.ID,
			state.ErrTransition)
	}
	return nil
}

// IsReleased is RequireReleased for callers that leave such a future alone.
func IsReleased(ctx context.Context, tx kv.Reader, keys layout.Keyspace, row *layout.Row) (bool, error) {
	err := RequireReleased(ctx, tx, keys, row)
	if errors.Is(err, state.ErrTransition) {
		return false, nil
	}
	return err == nil, err
}
