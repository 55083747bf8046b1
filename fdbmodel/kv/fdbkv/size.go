//go:build fdb

package fdbkv

import (
	"context"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// StoredBytes returns the size of the keys and values of a range, as the servers
// estimate it. A range of less than 3 MB may be far off.
func (d *Database) StoredBytes(ctx context.Context, r kv.Range) (int64, error) {
	t, ok := d.Begin(kv.Options{Tag: "futura-size"}).(*tx)
	if !ok || t.unusable != nil {
		return 0, t.unusable
	}
	defer t.Cancel()
	size := t.native.GetEstimatedRangeSizeBytes(fdb.KeyRange{Begin: fdb.Key(r.Begin), End: fdb.Key(r.End)})
	return wait(ctx, t, size.Get)
}
