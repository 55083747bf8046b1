package fdbmodel_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Example takes one future through its life by hand, as a client and a worker do.
func Example() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	cluster, err := fdbmodel.Open(ctx, db, "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	submitted, err := cluster.Submit(ctx, []fdbmodel.Submission{
		{Spec: layout.Spec{Function: "go:price"}, Args: []byte("tea")},
	})
	if err != nil {
		panic(err)
	}

	worker, err := cluster.Register(ctx, layout.WorkerInfo{
		Functions: []string{"go:price"}, Capacity: layout.Resources{Slots: 1},
	})
	if err != nil {
		panic(err)
	}
	answer, err := worker.Claim(ctx, fdbmodel.ClaimRequest{Free: worker.Info().Capacity, Max: 1})
	if err != nil {
		panic(err)
	}
	claimed := &answer.Futures[0]
	fmt.Printf("%s of %s, attempt %d\n", claimed.Spec.Function, claimed.Inline, claimed.Attempt())

	outcomes, err := worker.Finish(ctx, []fdbmodel.Completion{
		{Future: claimed, Result: &layout.Result{Value: []byte("4.20")}},
	})
	if err != nil {
		panic(err)
	}
	row, err := cluster.Get(ctx, submitted[0].ID)
	fmt.Println(outcomes[0], row.State(), string(row.Result.Value), err)
	// Output:
	// go:price of tea, attempt 1
	// applied realized 4.20 <nil>
}
