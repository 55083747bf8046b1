package futures_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// cluster opens a cluster in memory, with a client and a worker. An application
// opens the store that it shares with its workers.
func cluster(register func(*workers.Worker) error) (client *futures.Client, db kv.Database, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	db = embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, db, futures.Options{})
	if err != nil {
		panic(err)
	}
	worker, err := workers.New(client, workers.Options{})
	if err == nil {
		err = register(worker)
	}
	if err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	<-worker.Ready()
	return client, db, func() {
		cancel()
		if err := errors.Join(<-ended, client.Close(context.Background()), db.Close()); err != nil {
			panic(err)
		}
	}
}

func ExampleNew() {
	ctx := context.Background()
	store := embedded.OpenMemory(embedded.Options{})
	defer store.Close()
	client, err := futures.New(ctx, store, futures.Options{Cluster: "shop"})
	if err != nil {
		panic(err)
	}
	defer client.Close(ctx)
	worker, err := workers.New(client, workers.Options{Slots: 4})
	if err != nil {
		panic(err)
	}
	double := futures.Define[int, int]("double")
	err = worker.Register(double.Bind(func(_ context.Context, n int) (int, error) { return 2 * n, nil }))
	if err != nil {
		panic(err)
	}
	working, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- worker.Run(working) }()

	n, err := double.Call(ctx, client, 21)
	fmt.Println(n, err)

	stop()
	fmt.Println(<-ended)
	// Output:
	// 42 <nil>
	// <nil>
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

	future, err := price.Submit(ctx, client, Order{"tea", 3}, futures.Timeout(time.Minute))
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

	// The order and the future that ships it exist together or not at all. Thanks
	// to the key, a retry after an unknown result submits the same future.
	var submission *futures.TxFutures
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

func ExampleDefinition_Map() {
	length := futures.Define[string, int]("length")
	client, _, stop := cluster(func(w *workers.Worker) error {
		return w.Register(length.Bind(func(_ context.Context, s string) (int, error) { return len(s), nil }))
	})
	defer stop()
	ctx := context.Background()

	all, err := length.Map(ctx, client, []string{"one", "three", "fifteen"}, futures.Priority(9))
	if err != nil {
		panic(err)
	}
	fmt.Println(futures.AwaitAll(ctx, all))
	// Output: [3 5 7] <nil>
}

func ExampleAwaitAny() {
	echo := futures.Define[string, string]("echo")
	client, _, stop := cluster(func(w *workers.Worker) error {
		return w.Register(echo.Bind(func(_ context.Context, s string) (string, error) { return s, nil }))
	})
	defer stop()
	ctx := context.Background()

	later, err := echo.Submit(ctx, client, "later", futures.Delay(time.Hour))
	if err != nil {
		panic(err)
	}
	now, err := echo.Submit(ctx, client, "now")
	if err != nil {
		panic(err)
	}
	first, err := futures.AwaitAny(ctx, []*futures.Typed[string]{later, now})
	if err != nil {
		panic(err)
	}
	fmt.Println(first.Await(ctx))
	// Output: now <nil>
}

func ExampleWaitError() {
	client, _, stop := cluster(func(*workers.Worker) error { return nil })
	defer stop()

	future, err := client.Submit(context.Background(), futures.Task{Function: "go:nobody"})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = future.Await(ctx)
	var wait *futures.WaitError
	if errors.As(err, &wait) {
		fmt.Println(wait.State, errors.Is(err, context.DeadlineExceeded))
	}
	// Output: ready true
}

func ExampleClient_Cancel() {
	client, _, stop := cluster(func(*workers.Worker) error { return nil })
	defer stop()
	ctx := context.Background()

	future, err := client.Submit(ctx, futures.Task{Function: "go:nobody", Delay: time.Hour})
	if err != nil {
		panic(err)
	}
	fmt.Println(future.Cancel(ctx, "not needed"))
	view, err := client.Get(ctx, future.ID())
	fmt.Println(view.State, view.Failure.Kind, err)
	// Output:
	// done <nil>
	// failed cancelled <nil>
}

func ExampleDefinition_InLane() {
	type mail struct{ Customer, Text string }
	send := futures.Define[mail, string]("send").InLane("mail", func(m mail) string { return m.Customer })
	client, _, stop := cluster(func(w *workers.Worker) error {
		return w.Register(send.Bind(func(_ context.Context, m mail) (string, error) { return m.Text, nil }))
	})
	defer stop()
	ctx := context.Background()
	// One mail of a customer at a time, and at most 10 in a second, whichever worker sends it.
	err := client.SetLaneKind(ctx, "mail", futures.LaneSettings{Width: 1, Rate: 10, Every: time.Second})
	if err != nil {
		panic(err)
	}
	sent, err := send.Map(ctx, client, []mail{{"acme", "first"}, {"acme", "second"}, {"ajax", "third"}})
	if err != nil {
		panic(err)
	}
	texts, err := futures.AwaitAll(ctx, sent)
	if err != nil {
		panic(err)
	}
	fmt.Println(texts)
	// Output: [first second third]
}
