//go:build fdb

package kvopen

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
)

func openFDB(ctx context.Context, clusterFile string, o Options) (kv.Database, error) {
	db, err := fdbkv.Open(ctx, clusterFile, fdbkv.Options{ConnectTimeout: o.ConnectTimeout})
	if err != nil {
		return nil, err
	}
	return db, nil
}
