package keyspace_test

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Any key of a cluster can be read without the cluster.
func ExampleTable() {
	keys := layout.NewKeyspace("shop")
	keys.Shards = 1
	id, err := layout.ParseID("0199a1b2-c3d4-7000-8000-00000000002a")
	if err != nil {
		panic(err)
	}
	key := keyspace.Table().Describe(keys.Spec(id))
	fmt.Println(key.Kind, "of cluster", key.Cluster, "in shard", *key.Shard)
	fmt.Println(key.Text)
	// Output:
	// spec of cluster shop in shard 0
	// ("futura", "shop", 0, "futures", 0199a1b2-c3d4-7000-8000-00000000002a, "spec")
}
