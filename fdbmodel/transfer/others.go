package transfer

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// hasOthers reports whether a store has keys outside of all clusters.
func hasOthers(ctx context.Context, db kv.Database) (has bool, err error) {
	clusters := layout.AllClusters()
	_, err = kv.Transact(ctx, db, kv.Retry{Options: kv.Options{Tag: "futura-read"}}, func(tx kv.Attempt) error {
		has = false
		for _, r := range []kv.Range{{Begin: []byte{}, End: clusters.Begin}, {Begin: clusters.End, End: []byte{0xff}}} {
			page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
			if err != nil {
				return err
			}
			has = has || len(page.Items) > 0
		}
		return nil
	})
	return has, err
}
