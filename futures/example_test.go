package futures_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/embedded"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// cluster opens one in memory, with a worker beside the client. An application
// opens the store that it shares with its workers.
func cluster(register func(*workers.Worker) error) (client *futures.Client, db kv.Database, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	db = embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, db, futures.Options{})
	if err != nil {
		panic(err)
	}
	worker, err := workers.New(client.Cluster(), workers.Options{})
	if err == nil {
		err = register(worker)
	}
	if err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	return client, db, func() {
		cancel()
		if err := errors.Join(<-ended, client.Close(context.Background()), db.Close()); err != nil {
			panic(err)
		}
	}
}

func Example() {
	client, _, stop := cluster(func(w *workers.Worker) error {
		return w.Register("shout", func(_ context.Context, args []byte) ([]byte, error) {
			return []byte(strings.ToUpper(string(args)) + "!"), nil
		})
	})
	defer stop()
	ctx := context.Background()

	future, err := client.Submit(ctx, futures.Task{Function: "go:shout", Args: []byte("hello")})
	if err != nil {
		panic(err)
	}
	result, err := future.Await(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s (attempt %d)\n", result.Value, result.Attempt)
	// Output: HELLO! (attempt 1)
}

func ExampleDefine() {
	type Order struct {
		Item  string
		Count int
	}
	price := futures.Define[Order, float64]("price")
	client, _, stop := cluster(func(w *workers.Worker) error {
		return w.Register(price.Bind(func(_ context.Context, o Order) (float64, error) {
			return float64(o.Count) * 2.5, nil
		}))
	})
	defer stop()
	ctx := context.Background()

	future, err := price.Submit(ctx, client, Order{"tea", 3}, func(t *futures.Task) { t.Timeout = time.Minute })
	if err != nil {
		panic(err)
	}
	total, err := future.Await(ctx)
	fmt.Println(total, err)
	// Output: 7.5 <nil>
}

func ExampleClient_AwaitAll() {
	length := futures.Define[string, int]("length")
	client, _, stop := cluster(func(w *workers.Worker) error {
		return w.Register(length.Bind(func(_ context.Context, s string) (int, error) { return len(s), nil }))
	})
	defer stop()
	ctx := context.Background()

	var tasks []futures.Task
	for _, word := range []string{"one", "three", "fifteen"} {
		task, err := length.Task(word)
		if err != nil {
			panic(err)
		}
		tasks = append(tasks, task)
	}
	all, err := client.SubmitMany(ctx, tasks)
	if err != nil {
		panic(err)
	}
	if _, err := client.AwaitAll(ctx, all); err != nil {
		panic(err)
	}
	for _, future := range all {
		n, err := length.Of(future).Await(ctx)
		fmt.Println(n, err)
	}
	// Output:
	// 3 <nil>
	// 5 <nil>
	// 7 <nil>
}

func ExampleClient_AwaitEach() {
	client, _, stop := cluster(func(w *workers.Worker) error {
		return w.Register("noop", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	})
	defer stop()
	ctx := context.Background()

	all, err := client.SubmitMany(ctx, []futures.Task{{Function: "go:noop"}, {Function: "go:noop"}})
	if err != nil {
		panic(err)
	}
	over := 0
	for _, outcome := range client.AwaitEach(ctx, all) {
		if outcome.Err == nil {
			over++
		}
	}
	fmt.Println(over, "are over")
	// Output: 2 are over
}

func ExampleFailedError() {
	client, _, stop := cluster(func(w *workers.Worker) error {
		return w.Register("charge", func(context.Context, []byte) ([]byte, error) {
			return nil, workers.Permanent(errors.New("the card was declined"))
		})
	})
	defer stop()
	ctx := context.Background()

	future, err := client.Submit(ctx, futures.Task{Function: "go:charge"})
	if err != nil {
		panic(err)
	}
	_, err = future.Await(ctx)
	var failed *futures.FailedError
	if errors.As(err, &failed) {
		fmt.Printf("%s in attempt %d: %s\n", failed.Kind, failed.Attempt, failed.Message)
	}
	fmt.Println(errors.Is(err, futures.ErrFailed), errors.Is(err, futures.ErrCancelled))
	// Output:
	// error in attempt 1: the card was declined
	// true false
}

func ExampleClient_SubmitTx() {
	client, db, stop := cluster(func(w *workers.Worker) error {
		return w.Register("ship", func(_ context.Context, order []byte) ([]byte, error) {
			return []byte("shipped " + string(order)), nil
		})
	})
	defer stop()
	ctx := context.Background()

	// The order and the future that ships it exist together, or not at all. The
	// key makes a run with an unknown result and its repetition the same future.
	var submission *futures.Submission
	result, err := kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) (err error) {
		tx.Set([]byte("orders/17"), []byte("tea"))
		submission, err = client.SubmitTx(ctx, tx, []futures.Task{{Function: "go:ship", Args: []byte("17"), Key: "ship/17"}})
		return err
	})
	if err != nil {
		panic(err)
	}
	submission.Committed(ctx, result.Version)
	shipped, err := submission.Futures[0].Await(ctx)
	fmt.Printf("%s %v\n", shipped.Value, err)
	// Output: shipped 17 <nil>
}
