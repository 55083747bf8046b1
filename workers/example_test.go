package workers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// run runs a worker with one function beside a client, until stop is called.
func run(name string, fn workers.Function) (client *futures.Client, worker *workers.Worker, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, db, futures.Options{})
	if err != nil {
		panic(err)
	}
	worker, err = workers.New(client, workers.Options{Slots: 2})
	if err == nil {
		err = worker.Register(name, fn)
	}
	if err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	<-worker.Ready()
	return client, worker, func() {
		cancel()
		if err := errors.Join(<-ended, client.Close(context.Background()), db.Close()); err != nil {
			panic(err)
		}
	}
}

func ExampleNew() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	client, err := futures.New(ctx, db, futures.Options{})
	if err != nil {
		panic(err)
	}
	defer client.Close(ctx)

	worker, err := workers.New(client, workers.Options{Slots: 2, Queues: []string{"default", "mail"}})
	if err != nil {
		panic(err)
	}
	err = worker.Register("greet", func(_ context.Context, args []byte) ([]byte, error) {
		return append([]byte("hello "), args...), nil
	})
	if err != nil {
		panic(err)
	}
	working, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- worker.Run(working) }()

	future, err := client.Submit(ctx, futures.Task{Function: "go:greet", Args: []byte("world"), Queue: "mail"})
	if err != nil {
		panic(err)
	}
	result, err := future.Await(ctx)
	fmt.Printf("%s %v\n", result.Value, err)

	stop()
	fmt.Println(<-ended)
	// Output:
	// hello world <nil>
	// <nil>
}

func ExamplePermanent() {
	client, _, stop := run("charge", func(context.Context, []byte) ([]byte, error) {
		return nil, workers.Permanent(errors.New("the card was declined"))
	})
	defer stop()

	future, err := client.Submit(context.Background(), futures.Task{Function: "go:charge"})
	if err != nil {
		panic(err)
	}
	_, err = future.Await(context.Background())
	var failed *futures.FailedError
	if errors.As(err, &failed) {
		fmt.Println(failed.Function, failed.Kind, failed.Attempt, failed.Message)
	}
	// Output: go:charge error 1 the card was declined
}

// timed measures every call of a function, whatever its name.
func timed(log *slog.Logger) workers.Middleware {
	return func(next workers.Call) workers.Call {
		return func(ctx context.Context, args []byte) ([]byte, error) {
			began := time.Now()
			result, err := next(ctx, args)
			info, _ := workers.InfoFrom(ctx)
			log.InfoContext(ctx, "called", "function", info.Function, "attempt", info.Attempt, "took", time.Since(began),
				"error", err)
			return result, err
		}
	}
}

// declined fails a future for good where its function says that a card was declined.
func declined(next workers.Call) workers.Call {
	return func(ctx context.Context, args []byte) ([]byte, error) {
		result, err := next(ctx, args)
		if errors.Is(err, errDeclined) {
			err = workers.Permanent(err)
		}
		return result, err
	}
}

var errDeclined = errors.New("the card was declined")

func ExampleMiddleware() {
	ctx, stop := context.WithCancel(context.Background())
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTimes}))
	node, err := futura.Open(ctx, "memory:", futura.WorkerOptions(workers.Options{
		Slots:              1,
		Middleware:         []workers.Middleware{timed(logger)},
		FunctionMiddleware: map[string][]workers.Middleware{"go:charge": {declined}},
		OnFailed:           func(f workers.Failure) { fmt.Println("failed for good:", f.Function, f.Message); stop() },
	}), futura.Function("charge", func(context.Context, []byte) ([]byte, error) { return nil, errDeclined }))
	if err != nil {
		panic(err)
	}
	defer node.Close()
	if _, err := node.Client.Submit(ctx, futures.Task{Function: "go:charge"}); err != nil {
		panic(err)
	}
	<-ctx.Done()
	// Output:
	// level=INFO msg=called function=go:charge attempt=1 error="the card was declined"
	// failed for good: go:charge the card was declined
}

// withoutTimes leaves out what differs from run to run.
func withoutTimes(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "took" {
		return slog.Attr{}
	}
	return a
}

func ExampleProgress() {
	client, _, stop := run("import", func(ctx context.Context, _ []byte) ([]byte, error) {
		for row := range int64(1000) {
			if err := workers.Progress(ctx, row+1, 1000, "rows"); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	defer stop()
	ctx := context.Background()

	_, err := client.Submit(ctx, futures.Task{Function: "go:import", Tags: []string{"customer:acme"}})
	if err != nil {
		panic(err)
	}
	listed, _, err := client.List(ctx, futures.Filter{Tag: "customer:acme", Newest: true}, nil, 10)
	if err != nil {
		panic(err)
	}
	err = client.Follow(ctx, listed[0].ID, func(v futures.View) error {
		if v.State == futures.Realized {
			fmt.Println(v.Progress.Done, "of", v.Progress.Total, v.Progress.Text, v.Tags)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1000 of 1000 rows [customer:acme]
	// <nil>
}

func ExampleRetryAfter() {
	client, _, stop := run("poll", func(ctx context.Context, _ []byte) ([]byte, error) {
		if info, _ := workers.InfoFrom(ctx); info.Attempt < 3 {
			return nil, workers.RetryAfter(time.Millisecond, nil)
		}
		return []byte("ready"), nil
	})
	defer stop()

	future, err := client.Submit(context.Background(), futures.Task{Function: "go:poll"})
	if err != nil {
		panic(err)
	}
	result, err := future.Await(context.Background())
	fmt.Printf("%s in attempt %d %v\n", result.Value, result.Attempt, err)
	// Output: ready in attempt 3 <nil>
}

func ExampleWorker_Pause() {
	client, worker, stop := run("noop", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	defer stop()
	ctx := context.Background()

	worker.Pause()
	future, err := client.Submit(ctx, futures.Task{Function: "go:noop"})
	if err != nil {
		panic(err)
	}
	worker.Resume()
	_, err = future.Await(ctx)
	fmt.Println(err)
	// Output: <nil>
}

// A function is tested with what a worker tells it of its run.
func ExampleWithInfo() {
	describe := func(ctx context.Context) string {
		info, _ := workers.InfoFrom(ctx)
		return fmt.Sprintf("%s, attempt %d", info.Function, info.Attempt)
	}
	fmt.Println(describe(workers.WithInfo(context.Background(), workers.Info{Function: "go:resize", Attempt: 2})))
	// Output: go:resize, attempt 2
}
