package lanes_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	if err := lanes.Of(cluster).SetKind(ctx, "customer", layout.LaneKind{Width: 1}); err != nil {
		panic(err)
	}
	acme := layout.Lane{Kind: "customer", Key: "acme"}
	for range 3 {
		spec := layout.Spec{Function: "go:bill", Lane: acme}
		if _, err := cluster.Submit(ctx, []fdbmodel.Submission{{Spec: spec}}); err != nil {
			panic(err)
		}
	}
	view, err := lanes.Of(cluster).View(ctx, acme, 10)
	fmt.Println(view.Open, "admitted,", len(view.Line), "in line", err)
	// Output:
	// 1 admitted, 2 in line <nil>
}
