package joblog_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

func Example() {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, embedded.OpenMemory(embedded.Options{}), "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	defer cluster.Database().Close()
	logs := joblog.Of(cluster)
	for range 2 { // the second append is a repeat
		_, appended, err := logs.Append(ctx, joblog.Append{Queue: "orders", Producer: "web", Sequence: 1,
			Jobs: [][]byte{[]byte("a"), []byte("b")}})
		fmt.Println(appended, err)
	}
	consumer := joblog.Consumer{Queue: "orders", Name: "price"}
	lease, _, err := logs.Take(ctx, consumer, joblog.Take{About: "here"})
	if err != nil {
		panic(err)
	}
	fmt.Println(lease.Commit(ctx, 0, 2, nil, joblog.Effects{}))
	log, err := logs.Get(ctx, "orders")
	fmt.Println(log.Last, log.Consumers[0].Progress.Index, err)
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
	// 2 2 <nil>
}
