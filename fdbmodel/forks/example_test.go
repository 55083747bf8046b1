package forks_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	worker, _ := cluster.Register(ctx, layout.WorkerInfo{Functions: []string{"go:order"},
		Capacity: layout.Resources{Slots: 1}})
	_, _ = cluster.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:order"}}})
	answer, _ := worker.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
	future := &answer.Futures[0]
	_, _, _ = steps.Of(cluster).Write(ctx, worker, []steps.Entry{{Future: future, Name: "charge", First: true,
		Record: steps.Record{Token: future.Token, Number: 1, Attempt: 1, Value: []byte("paid"), Size: 4}}})
	_, _ = worker.Finish(ctx, []fdbmodel.Completion{{Future: future,
		Exception: &layout.Exception{Kind: layout.KindError, Message: "no parcel"}}})

	made, err := forks.Of(cluster).Make(ctx, []forks.Request{{Source: future.ID}})
	fmt.Println(forks.Text(&made[0].Fork), made[0].State, made[0].Err, err)
	copied, _ := steps.Of(cluster).List(ctx, made[0].ID)
	fmt.Println(copied[0].Name, string(copied[0].Value), copied[0].Origin)
	// Output:
	// after step charge ready <nil> <nil>
	// charge paid copied
}
