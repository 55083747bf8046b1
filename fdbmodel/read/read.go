package read

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Pending is a row that was requested.
type Pending struct {
	ID      layout.ID
	Keys    layout.Keyspace
	Pending kv.Pending[kv.Page]
}

// State requests the mutable records of a future. Wait returns them.
func State(tx kv.Reader, k layout.Keyspace, id layout.ID) Pending {
	return Pending{id, k, tx.GetRange(k.StateRange(id), kv.RangeOptions{Limit: layout.MaxRowKeys})}
}

// Record requests the spec and the mutable records.
func Record(tx kv.Reader, k layout.Keyspace, id layout.ID) Pending {
	return Pending{id, k, tx.GetRange(k.RecordRange(id), kv.RangeOptions{Limit: layout.MaxRowKeys})}
}

// Existing returns the spec and the mutable records of a future, or layout.ErrNotFound.
func Existing(ctx context.Context, tx kv.Reader, k layout.Keyspace, id layout.ID) (layout.Row, error) {
	row, found, err := Record(tx, k, id).Wait(ctx)
	if err == nil && (!found || row.Spec == nil) {
		err = fmt.Errorf("future %s: %w", id, layout.ErrNotFound)
	}
	return row, err
}

// Wait returns the row, or false if it has no keys.
func (p Pending) Wait(ctx context.Context) (layout.Row, bool, error) {
	row := layout.Row{ID: p.ID}
	page, err := p.Pending.Wait(ctx)
	if err != nil {
		return row, false, err
	}
	skip := p.Keys.RowLength(p.ID)
	for _, item := range page.Items {
		if err := row.Add(item, tuple.NewReader(item.Key[skip:])); err != nil {
			return row, false, err
		}
	}
	return row, len(page.Items) > 0, nil
}
