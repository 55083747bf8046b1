package inspect_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// shop returns a cluster with one future.
func shop(ctx context.Context) (*fdbmodel.Cluster, layout.ID) {
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	submitted, err := cluster.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:price"}}})
	if err != nil {
		panic(err)
	}
	return cluster, submitted[0].ID
}

func ExampleExplain() {
	ctx := context.Background()
	cluster, id := shop(ctx)
	defer cluster.Database().Close()
	explanation, err := inspect.Explain(ctx, cluster, id)
	fmt.Println(explanation.State, explanation.Reason, err)
	// Output: ready no_worker <nil>
}

func ExampleFuture() {
	ctx := context.Background()
	cluster, id := shop(ctx)
	defer cluster.Database().Close()
	state, items, err := inspect.Future(ctx, cluster, id)
	fmt.Println(state, err)
	for _, item := range items {
		fmt.Println(item.Kind)
	}
	// Output:
	// ready <nil>
	// spec
	// ready
}

func ExampleList() {
	ctx := context.Background()
	cluster, id := shop(ctx)
	defer cluster.Database().Close()
	rows, next, err := inspect.List(ctx, cluster, inspect.Filter{Queue: "default"}, nil, 100)
	fmt.Println(len(rows), rows[0].ID == id, next == nil, err)
	// Output: 1 true true <nil>
}
