package futurestore_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// The items of a batch are futures that its head holds until it assigns them.
func ExampleNew() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	cluster, err := fdbmodel.Open(ctx, db, "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	store := futurestore.New(cluster, futurestore.Options{})
	err = store.Create(ctx, &batch.Batch{
		ID: "prices", Template: batch.Template{FunctionID: "go:price", Method: "price"}, MaxAttempts: 3,
	}, [][]string{{"tea"}, {"cake"}})
	if err != nil {
		panic(err)
	}
	counts, err := cluster.Counts(ctx)
	for key, n := range counts {
		fmt.Println(key.Owner, key.State == layout.Ready, n, err)
	}
	// Output: prices true 2 <nil>
}
