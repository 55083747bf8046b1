// Command fromtemporal greets a user in two steps, as Temporal's first program
// does in a workflow and its activities. docs/start/from-temporal.md goes through
// it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

var (
	greeting = futures.Define[string, string]("greeting", futures.Retries(10))
	welcome  = futures.Define[string, string]("welcome", futures.Queue("welcomes"))
)

func main() {
	if err := run(context.Background(), "embedded:./data", os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	steps, err := futura.Open(ctx, store, futura.Function(greeting.Bind(greet)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, steps.Close()) }()
	stop, err := runWelcomes(ctx, steps.Client)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	text, err := welcome.Call(ctx, steps.Client, "Ada", futures.Timeout(time.Minute), futures.Key("welcome/Ada"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, text)
	return err
}

// greet is one step. It is tried again when it fails or its worker dies.
func greet(_ context.Context, name string) (string, error) { return "Hello " + name + "!", nil }

// welcomeOf returns the function that calls the steps. Where its worker dies it
// starts again, and finds the steps that were done by their keys: they don't run
// again.
func welcomeOf(client *futures.Client) func(context.Context, string) (string, error) {
	return func(ctx context.Context, name string) (string, error) {
		info, _ := workers.InfoFrom(ctx)
		return greeting.Call(ctx, client, name, futures.Key(info.ID.String()+"/greeting"))
	}
}

// runWelcomes runs what awaits steps by a worker of its own queue: a function that
// awaits holds its slot.
func runWelcomes(ctx context.Context, client *futures.Client) (stop func() error, err error) {
	worker, err := workers.New(client, workers.Options{Queues: []string{"welcomes"}, Slots: 100})
	if err != nil {
		return nil, err
	}
	if err := worker.Register(welcome.Bind(welcomeOf(client))); err != nil {
		return nil, err
	}
	working, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- worker.Run(working) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}
