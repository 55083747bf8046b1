package held_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects/held"
)

// A process that reads results offers the cluster a reader of objects. Clients do
// so by themselves.
func ExampleReader() {
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	cluster, err := fdbmodel.Open(context.Background(), db, "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	var reader held.Reader
	defer reader.Close()
	results.Of(cluster).OfferReader(&reader)
	defer results.Of(cluster).WithdrawReader(&reader)
	fmt.Println("results that are objects can be read")
	// Output: results that are objects can be read
}
