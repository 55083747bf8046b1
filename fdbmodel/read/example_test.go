package read_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// Many futures are requested before the first is waited for.
func ExampleRecords() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	cluster, err := fdbmodel.Open(ctx, db, "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	submitted, err := cluster.Submit(ctx, []fdbmodel.Submission{
		{Spec: layout.Spec{Function: "go:price"}}, {Spec: layout.Spec{Function: "go:ship"}},
	})
	if err != nil {
		panic(err)
	}
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	for _, asked := range read.Records(tx, cluster.Keys(), []layout.ID{submitted[0].ID, submitted[1].ID}) {
		row, found, err := asked.Wait(ctx)
		fmt.Println(row.Spec.Function, row.State(), found, err)
	}
	// Output:
	// go:price ready true <nil>
	// go:ship ready true <nil>
}
