package schedule_test

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/schedule"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	schedules := schedule.Of(cluster)
	report := schedule.Record{Name: "report", Every: time.Hour, Spec: layout.Spec{Function: "go:report"}}
	_, created, err := schedules.Put(ctx, report, true)
	fmt.Println(created, err)
	fired, _, err := schedules.Fire(ctx, &schedule.Walk{}) // a worker's janitor does this
	fmt.Println(fired, err)
	// Output:
	// true <nil>
	// 1 <nil>
}
