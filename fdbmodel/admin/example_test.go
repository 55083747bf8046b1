package admin_test

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	now, err := admin.Configure(ctx, cluster, func(c *layout.Config) { c.Retention = time.Hour })
	fmt.Println(now.Retention, err)
	fmt.Println(admin.Clusters(ctx, cluster.Database()))
	// Output:
	// 1h0m0s <nil>
	// [shop] <nil>
}
