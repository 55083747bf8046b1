package maintenance_test

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

func ExampleJanitor_PromoteDue() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	later := cluster.Now().Truncate(time.Millisecond).Add(time.Hour)
	_, err = cluster.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:pack"}, NotBefore: later}})
	if err != nil {
		panic(err)
	}
	promoted, next, err := maintenance.Of(cluster).PromoteDue(ctx)
	fmt.Println(promoted, next.Equal(later), err)
	// Output:
	// 0 true <nil>
}
