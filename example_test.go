package futura_test

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

var greet = futures.Define[string, string]("greet", futures.Retries(5))

func hello(_ context.Context, name string) (string, error) { return "hello " + name, nil }

func ExampleOpen() {
	ctx := context.Background()
	node, err := futura.Open(ctx, "memory:", futura.Function(greet.Bind(hello)))
	if err != nil {
		panic(err)
	}
	text, err := greet.Call(ctx, node.Client, "world", futures.Delay(time.Millisecond))
	fmt.Println(text, err)
	fmt.Println(node.Close())
	// Output:
	// hello world <nil>
	// <nil>
}

func ExampleWorkerOptions() {
	ctx := context.Background()
	node, err := futura.Open(ctx, "memory:",
		futura.Function(greet.Bind(hello)),
		futura.WorkerOptions(workers.Options{Slots: 2, Queues: []string{"greetings"}}))
	if err != nil {
		panic(err)
	}
	defer node.Close()
	fmt.Println(greet.Call(ctx, node.Client, "Ada", futures.Queue("greetings")))
	// Output: hello Ada <nil>
}
