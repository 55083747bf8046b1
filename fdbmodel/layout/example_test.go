package layout_test

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Any key of a cluster can be read without the cluster.
func ExampleDescribeKey() {
	keys := layout.NewKeyspace("shop")
	keys.Shards = 1
	id, err := layout.ParseID("0199a1b2-c3d4-7000-8000-00000000002a")
	if err != nil {
		panic(err)
	}
	key := layout.DescribeKey(keys.Spec(id))
	fmt.Println(key.Kind, "of cluster", key.Cluster, "in shard", *key.Shard)
	fmt.Println(key.Text)
	// Output:
	// spec of cluster shop in shard 0
	// ("futura", "shop", 0, "futures", 0199a1b2-c3d4-7000-8000-00000000002a, "spec")
}

// The place of an unclaimed future follows from its records.
func ExamplePlaceOf() {
	row := layout.Row{Spec: &layout.Spec{Function: "go:price"}}
	fmt.Println(row.State(), layout.PlaceOf(&row).Kind)
	row.Attempts.Due = 1_800_000_000_000
	fmt.Println(row.State(), layout.PlaceOf(&row).Kind)
	row.Spec.Owner = "a batch"
	fmt.Println(row.State(), layout.PlaceOf(&row).Kind)
	// Output:
	// ready ready
	// delayed delayed
	// delayed held
}
