package batches_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/batches"
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
	worker, err := cluster.Register(ctx, layout.WorkerInfo{Functions: []string{"go:price"},
		Capacity: layout.Resources{Slots: 4}})
	if err != nil {
		panic(err)
	}
	records := batches.Of(cluster)
	fmt.Println(records.Create(ctx, &layout.BatchRecord{ID: "b", Template: []byte("{}"), Maker: "here"}))
	var ids []layout.ID
	for i := range 3 {
		ids = append(ids, layout.BatchItemID("b", i))
		_, err := cluster.Submit(ctx, []fdbmodel.Submission{{ID: ids[i],
			Spec: layout.Spec{Function: "go:price", Owner: "b"}}})
		if err != nil {
			panic(err)
		}
	}
	fmt.Println(records.Finish(ctx, "b", "here"))
	chunk := layout.BatchChunk{ID: "first", Worker: worker.ID(), Items: 2}
	isMade := func(b *layout.BatchRecord) bool { return b.Made }
	there, added, err := records.AssignChunk(ctx, "b", chunk, ids[:2], isMade)
	fmt.Println(there, added, err)
	// Output:
	// <nil>
	// <nil>
	// [true true] 2 <nil>
}
