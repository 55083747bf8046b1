package transfer_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/transfer"
)

// A cluster moves to another store, here between two in memory.
func ExampleMigrate() {
	ctx := context.Background()
	from, to := embedded.OpenMemory(embedded.Options{}), embedded.OpenMemory(embedded.Options{})
	defer from.Close()
	defer to.Close()
	cluster, err := fdbmodel.Open(ctx, from, "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	submitted, err := cluster.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:price"}}})
	if err != nil {
		panic(err)
	}

	if _, err := transfer.Migrate(ctx, from, to, "shop", transfer.Options{}); err != nil {
		panic(err)
	}
	moved, err := fdbmodel.Open(ctx, to, "shop", fdbmodel.Options{Existing: true})
	if err != nil {
		panic(err)
	}
	row, err := moved.Get(ctx, submitted[0].ID)
	fmt.Println(row.Spec.Function, row.State(), err)
	// Output: go:price ready <nil>
}
