package owners_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/owners"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	_, err = cluster.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:price", Owner: "batch"}}})
	if err != nil {
		panic(err)
	}
	held, _, err := owners.Of(cluster).Held(ctx, "batch", nil, 10)
	fmt.Println(len(held), err)
	fmt.Println(owners.Of(cluster).Counts(ctx, layout.DefaultQueue, "batch"))
	// Output:
	// 1 <nil>
	// map[ready:1] <nil>
}
