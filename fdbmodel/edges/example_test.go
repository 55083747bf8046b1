package edges_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/edges"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// A future that takes the results of others waits for them.
func Example() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	cluster, err := fdbmodel.Open(ctx, db, "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	ids, err := cluster.DrawIDs(3)
	if err != nil {
		panic(err)
	}
	_, err = cluster.Submit(ctx, []fdbmodel.Submission{
		{ID: ids[0], Spec: layout.Spec{Function: "go:price"}},
		{ID: ids[1], Spec: layout.Spec{Function: "go:price"}},
		{ID: ids[2], Spec: layout.Spec{Function: "go:sum"}, Inputs: ids[:2]},
	})
	if err != nil {
		panic(err)
	}
	waits, more, err := edges.Of(cluster).WaitsFor(ctx, ids[2], 10)
	fmt.Println(len(waits), more, err)
	dependants, more, err := edges.Of(cluster).Dependants(ctx, ids[0], layout.ID{}, 10)
	fmt.Println(dependants[0] == ids[2], more, err)
	// Output:
	// 2 false <nil>
	// true false <nil>
}
