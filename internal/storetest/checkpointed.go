package storetest

import (
	"context"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// Checkpointed returns a store that writes a checkpoint as every third transaction begins.
// What is beyond its memory lies in tables then, and versions that no transaction
// reads at are gone.
func Checkpointed(db *embedded.Store) kv.Database { return &checkpointed{Store: db} }

type checkpointed struct {
	*embedded.Store
	begun atomic.Int64
}

// Begin implements kv.Database.
func (c *checkpointed) Begin(o kv.Options) kv.Tx {
	if c.begun.Add(1)%3 == 0 {
		_ = c.Checkpoint(context.Background()) // a store that has failed tells its transactions
	}
	return c.Store.Begin(o)
}
