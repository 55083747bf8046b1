package memstore_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/memstore"
)

func ExampleNew() {
	ctx := context.Background()
	store := memstore.New()
	err := store.Create(ctx, &batch.Batch{
		ID: "prices", Template: batch.Template{FunctionID: "go:price", Method: "price"}, MaxAttempts: 3,
	}, [][]string{{"tea"}, {"cake"}})
	if err != nil {
		panic(err)
	}
	progress, err := store.Progress(ctx, "prices")
	fmt.Println(progress[batch.Created], err)
	// Output: 2 <nil>
}
