package results_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/results"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	all := results.Of(cluster)
	existed, err := all.Put(ctx, results.Value{Key: "prices", Bytes: []byte("tea 3")})
	fmt.Println(existed, err)
	id := cluster.IDOf("prices")
	future, err := cluster.Get(ctx, id)
	if err != nil {
		panic(err)
	}
	value, err := all.Value(ctx, id, future.Result)
	fmt.Println(string(value), err)
	fmt.Println(all.Pin(ctx, id, "report", ""))
	pins, err := all.Pins(ctx, id)
	fmt.Println(pins, err)
	// Output:
	// false <nil>
	// tea 3 <nil>
	// <nil>
	// [report] <nil>
}
