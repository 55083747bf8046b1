package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// Get returns a future as it is at one version. It returns ErrNotFound for an
// unknown future.
func (c *Cluster) Get(ctx context.Context, id layout.ID) (layout.Row, error) {
	var row layout.Row
	err := c.View(ctx, func(tx kv.Attempt) error {
		var err error
		row, err = read.Existing(ctx, tx.Snapshot(), c.keys, id)
		return err
	})
	return row, err
}

// GetMany returns futures as they are at one version, in the order of ids and
// without those that do not exist. Pass at most a few hundred ids.
func (c *Cluster) GetMany(ctx context.Context, ids []layout.ID) ([]layout.Row, error) {
	var rows []layout.Row
	err := c.View(ctx, func(tx kv.Attempt) error {
		rows = make([]layout.Row, 0, len(ids))
		for _, p := range read.Rows(tx.Snapshot(), c.keys, ids, c.keys.Spec) {
			row, found, err := p.Wait(ctx)
			if err != nil {
				return err
			}
			if found && row.Spec != nil {
				rows = append(rows, row)
			}
		}
		return nil
	})
	return rows, err
}
