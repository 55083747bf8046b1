package modules_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/modules"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	stored := modules.Of(cluster)
	module, err := stored.Put(ctx, []byte("\x00asm\x01\x00\x00\x00"), "nothing")
	fmt.Println(module.CID, err)
	function, err := cluster.ResolveFunction(ctx, "wasm:nothing")
	fmt.Println(function == "wasm:"+module.CID, err)
	_, err = stored.Remove(ctx, module.CID, false)
	fmt.Println(err)
	// Output:
	// bafkreieturf3xfwhkeqy4taa2r46jqkdlajcuoe2zsqwebnr4tinyx4uoy <nil>
	// true <nil>
	// <nil>
}
