package actors_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
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
	worker, _ := cluster.Register(ctx, layout.WorkerInfo{Functions: []string{"go:deposit"},
		Capacity: layout.Resources{Slots: 1}})
	_, _ = cluster.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:deposit"}}})
	answer, _ := worker.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
	future, all := &answer.Futures[0], actors.Of(cluster)

	account, _ := all.Read(ctx, actors.Ref{Type: "account", Key: "alice"})
	beside, _, err := all.Turn(future, []actors.Change{{Read: account, Write: true, Value: []byte("5")}})
	if err != nil {
		panic(err)
	}
	outcomes, err := worker.Finish(ctx, []fdbmodel.Completion{
		{Future: future, Result: &layout.Result{Value: []byte("5")}, Beside: beside},
	})
	fmt.Println(outcomes, err)
	account, err = all.Read(ctx, account.Ref)
	fmt.Println(account.Head.Version, string(account.Value), err)
	// Output:
	// [applied] <nil>
	// 1 5 <nil>
}
