package activity_test

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/activity"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
)

func ExampleRead() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	worker, err := cluster.Register(ctx, layout.WorkerInfo{Capacity: layout.Resources{Slots: 1}})
	if err != nil {
		panic(err)
	}
	worker.Count(meter.Ended{Function: "go:pack", Queue: "default", Succeeded: true, Run: 3 * time.Second})
	if err := worker.Leave(ctx); err != nil {
		panic(err)
	}
	now := cluster.Now()
	series, err := activity.Read(ctx, cluster, now.Add(-time.Hour), now, time.Minute)
	if err != nil {
		panic(err)
	}
	for _, p := range series.Pairs {
		fmt.Println(p.Function, p.Succeeded, activity.Quantile(p.Runs, 0.5))
	}
	// Output:
	// go:pack 1 3.072s
}
