package inspect

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Sweep calls change with those futures of a page of List that want accepts, without items of
// batches, unless there are none. It returns how many items it left out, and the cursor of the
// next page, empty at the end. It returns the errors of List and of change: what was changed
// before stays so, and a sweep that is repeated from its cursor changes the rest. The order is
// its own: Newest and LeftOut are ignored.
func Sweep(ctx context.Context, c *fdbmodel.Cluster, f Filter, cursor []byte, want func(*layout.Row) bool,
	change func([]layout.ID) error,
) (items int, next []byte, err error) {
	// A state or a tag leads to the futures.
	if f.Newest, f.LeftOut = f.Tag != "" || f.State != 0, nil; f.State != 0 {
		f.LeftOut = &items
	}
	rows, next, err := List(ctx, c, f, cursor, MaxList)
	if err != nil {
		return 0, nil, err
	}
	var ids []layout.ID
	for i := range rows {
		switch {
		case !want(&rows[i]):
		case rows[i].Spec.Held():
			items++
		default:
			ids = append(ids, rows[i].ID)
		}
	}
	if len(ids) > 0 {
		err = change(ids)
	}
	return items, next, err
}
