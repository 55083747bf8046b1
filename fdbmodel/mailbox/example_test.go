package mailbox_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	box := mailbox.Open(cluster, "session")
	_, watch, err := box.Listen(ctx)
	if err != nil {
		panic(err)
	}
	submitted, err := cluster.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Session: "session"}}})
	if err != nil {
		panic(err)
	}
	if _, _, err := cluster.Cancel(ctx, submitted[0].ID, ""); err != nil {
		panic(err)
	}
	<-watch.Done()
	notices, _, err := box.Listen(ctx)
	fmt.Println(len(notices), notices[0].State, err)
	// Output: 1 failed <nil>
}
