package admin

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Clusters returns the names of the clusters in a store, sorted, also of those that
// are being copied into it. It reads one key of each.
func Clusters(ctx context.Context, db kv.Database) ([]string, error) {
	var names []string
	for r := layout.AllClusters(); ; {
		var page kv.Page
		_, err := kv.Transact(ctx, db, kv.Retry{Options: kv.Options{Tag: "futura-read"}}, func(tx kv.Attempt) (err error) {
			page, err = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
			return err
		})
		if err != nil || len(page.Items) == 0 {
			return names, err
		}
		name := layout.ParseKey(page.Items[0].Key).Cluster
		if name == "" {
			return names, fmt.Errorf("%s: %w: no cluster has such a key", tuple.String(page.Items[0].Key), layout.ErrBadRecord)
		}
		names = append(names, name)
		r.Begin = kv.AfterPrefix(layout.NewKeyspace(name).Prefix)
	}
}
