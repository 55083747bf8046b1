package metering_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/metering"
)

func ExampleRead() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	worker, err := cluster.Register(ctx, layout.WorkerInfo{Name: "packer", Capacity: layout.Resources{Slots: 1}})
	if err != nil {
		panic(err)
	}
	worker.Meter(meter.Metered{Items: 3})
	if err := worker.Leave(ctx); err != nil {
		panic(err)
	}
	today := cluster.Now()
	err = metering.Read(ctx, cluster, today, today, func(u *metering.Use) error {
		fmt.Println(u.Kind, u.Name, u.Items)
		return nil
	})
	fmt.Println(err)
	// Output:
	// worker packer 3
	// <nil>
}
