package pauses_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/pauses"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	if _, err := pauses.Of(cluster).Pause(ctx, pause.Queue, "mail", "the server is down"); err != nil {
		panic(err)
	}
	list, err := pauses.Of(cluster).List(ctx)
	fmt.Println(list[0].Name, list[0].Reason, err)
	was, err := pauses.Of(cluster).Resume(ctx, pause.Queue, "mail")
	fmt.Println(was, err)
	// Output:
	// mail the server is down <nil>
	// true <nil>
}
