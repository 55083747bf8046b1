//go:build !fdb

package kvopen

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
)

func openFDB(context.Context, string, Options) (kv.Database, error) {
	return nil, fmt.Errorf("%w: built without FoundationDB; rebuild with -tags fdb", kv.ErrNotBuilt)
}
