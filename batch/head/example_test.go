package head_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// A head, a worker and their store in one process.
func Example() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	client, err := futures.New(ctx, db, futures.Options{})
	if err != nil {
		panic(err)
	}
	worker, err := workers.New(client, workers.Options{Slots: 2})
	if err != nil {
		panic(err)
	}
	price := futures.Define[[]string, string]("price")
	err = worker.Register(price.Bind(func(_ context.Context, words []string) (string, error) {
		return words[0] + " costs 4.20", nil
	}))
	if err != nil {
		panic(err)
	}
	store := futurestore.New(client.Cluster(), futurestore.Options{})
	h := head.New(head.Options{Store: store, Dispatcher: head.NewCluster(client.Cluster())})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 2)
	go func() { ended <- worker.Run(running) }()
	go func() { ended <- h.Run(running) }()

	submitted, _, err := h.Submit(ctx, batch.Request{
		Template:  batch.Template{FunctionID: "go:price", Method: "price"},
		Arguments: [][]string{{"tea"}, {"cake"}},
	})
	if err != nil {
		panic(err)
	}
	for b := submitted; !b.Status.Over(); {
		if b, err = store.Get(ctx, submitted.ID); err != nil {
			panic(err)
		}
	}
	items, err := store.Items(ctx, submitted.ID, 0, 10)
	for _, item := range items {
		fmt.Println(item.Status, item.Result.Stdout)
	}
	stop()
	fmt.Println(errors.Join(err, <-ended, <-ended, client.Close(ctx)))
	// Output:
	// done "tea costs 4.20"
	// done "cake costs 4.20"
	// <nil>
}
