package inspect

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// WorkerInfos returns what workers said of themselves when they registered, by their
// ids. Those that are not registered, and those whose records can't be read, are left
// out. One transaction reads a key for each.
func WorkerInfos(ctx context.Context, c *fdbmodel.Cluster, ids []layout.WorkerID,
) (map[layout.WorkerID]layout.WorkerInfo, error) {
	infos := make(map[layout.WorkerID]layout.WorkerInfo, len(ids))
	err := c.View(ctx, func(tx kv.Attempt) error {
		clear(infos)
		pending := make([]kv.Pending[[]byte], len(ids))
		for i, id := range ids {
			pending[i] = tx.Snapshot().Get(c.Keys().Worker(id, layout.WorkerAlive))
		}
		for i, id := range ids {
			value, err := pending[i].Wait(ctx)
			if err != nil {
				return err
			}
			info := layout.WorkerInfo{ID: id}
			if value == nil || layout.Decode(c.Keys().Worker(id, layout.WorkerAlive), value, &info) != nil {
				continue
			}
			infos[id] = info
		}
		return nil
	})
	return infos, err
}
