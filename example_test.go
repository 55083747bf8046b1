package futura_test

import (
	"context"
	"fmt"
	"strings"
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

// words counts the words of a text, and total those of many texts: it submits a
// future for each and awaits them all. Its slot is used by others meanwhile.
var (
	words = futures.Define[string, int]("words")
	total = futures.Define[[]string, int]("total")
)

func totalOf(ctx context.Context, texts []string) (sum int, err error) {
	client, err := futures.FromContext(ctx)
	if err != nil {
		return 0, err
	}
	all, err := words.Map(ctx, client, texts)
	if err != nil {
		return 0, err
	}
	counts, err := futures.AwaitAll(ctx, all)
	for _, n := range counts {
		sum += n
	}
	return sum, err
}

func ExampleFunction() {
	ctx := context.Background()
	node, err := futura.Open(ctx, "memory:",
		futura.WorkerOptions(workers.Options{Slots: 1}),
		futura.Function(total.Bind(totalOf)),
		futura.Function(words.Bind(func(_ context.Context, text string) (int, error) {
			return len(strings.Fields(text)), nil
		})))
	if err != nil {
		panic(err)
	}
	defer node.Close()
	fmt.Println(total.Call(ctx, node.Client, []string{"a rose", "is a rose"}))
	// Output: 5 <nil>
}
