package hints_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/workers/objects/hints"
)

// A process that submits offers the cluster a sender of hints. Clients do so by
// themselves.
func ExampleSender() {
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	cluster, err := fdbmodel.Open(context.Background(), db, "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	sender := hints.New(cluster, hints.Options{})
	defer sender.Close()
	cluster.Notifier().OfferHinter(sender)
	defer cluster.Notifier().WithdrawHinter(sender)
	fmt.Println("workers that the store woke once are hinted at")
	// Output: workers that the store woke once are hinted at
}
