package workers_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/workers"
)

func ExampleRunJanitor() {
	ctx, stop := context.WithCancel(context.Background())
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	cluster, err := fdbmodel.Open(ctx, db, "default", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- workers.RunJanitor(ctx, cluster, workers.JanitorOptions{}) }()
	stop()
	fmt.Println(<-ended)
	// Output: <nil>
}
