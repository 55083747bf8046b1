package steps_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
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
	charge := steps.Entry{Future: future, Name: "charge", First: !future.Steps, Record: steps.Record{
		Token: future.Token, Number: 1, Attempt: future.Attempt(), Value: []byte("paid"), Size: 4,
	}}
	recorded, _, err := steps.Of(cluster).Write(ctx, worker, []steps.Entry{charge})
	fmt.Println(recorded, err)
	all, err := steps.Of(cluster).List(ctx, future.ID)
	fmt.Println(all[0].Name, string(all[0].Value), err)
	// Output:
	// [true] <nil>
	// charge paid <nil>
}
