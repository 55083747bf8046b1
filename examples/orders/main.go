// Command orders prices and ships orders by futures: a program of one's own with
// typed functions, a worker, many futures at once, failures, and futures that are
// made together with one's own rows. docs/guide/go.md goes through it.
//
//	go run ./examples/orders                               # in memory
//	go run ./examples/orders --store embedded:./orders     # on disk
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kvopen"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// Order is what is priced and shipped.
type Order struct {
	ID    string
	Item  string
	Count int
}

// Clients and workers share these: names, and the types of arguments and results.
var (
	price = futures.Define[Order, int]("price")
	ship  = futures.Define[Order, string]("ship")
)

func main() {
	store := flag.String("store", "memory:", "where futures and orders are kept")
	flag.Parse()
	if err := run(context.Background(), *store, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	db, err := kvopen.Open(ctx, store, kvopen.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client, err := futures.New(ctx, db, futures.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.WithoutCancel(ctx))) }()
	stop, err := work(ctx, client)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := priceAll(ctx, client, out); err != nil {
		return err
	}
	return shipOne(ctx, db, client, out)
}

// work runs a worker until stop is called. It may as well be another process.
func work(ctx context.Context, client *futures.Client) (stop func() error, err error) {
	worker, err := workers.New(client.Cluster(), workers.Options{Slots: 4})
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		worker.Register(price.Bind(priceOf)),
		worker.Register(ship.Bind(func(_ context.Context, o Order) (string, error) { return "shipped " + o.ID, nil })),
	)
	if err != nil {
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

// priceOf may run more than once for an order: its worker may die.
func priceOf(_ context.Context, o Order) (int, error) {
	switch o.Item {
	case "tea":
		return 3 * o.Count, nil
	case "cake":
		return 5 * o.Count, nil
	}
	return 0, workers.Permanent(fmt.Errorf("nobody sells %s", o.Item))
}

// priceAll prices many orders at once.
func priceAll(ctx context.Context, client *futures.Client, out io.Writer) error {
	orders := []Order{{"17", "tea", 2}, {"18", "cake", 1}, {"19", "coal", 9}}
	var tasks []futures.Task
	for _, o := range orders {
		task, err := price.Task(o)
		if err != nil {
			return err
		}
		task.Timeout = time.Minute
		tasks = append(tasks, task)
	}
	all, err := client.SubmitMany(ctx, tasks)
	if err != nil {
		return err
	}
	for i, future := range all {
		amount, err := price.Of(future).Await(ctx)
		var failed *futures.FailedError
		switch {
		case errors.As(err, &failed):
			fmt.Fprintf(out, "order %s: %s in attempt %d: %s\n", orders[i].ID, failed.Kind, failed.Attempt, failed.Message)
		case err != nil:
			return err
		default:
			fmt.Fprintf(out, "order %s costs %d\n", orders[i].ID, amount)
		}
	}
	return nil
}

// shipOne writes an order and makes the future that ships it in one transaction:
// both are there, or neither.
func shipOne(ctx context.Context, db kv.Database, client *futures.Client, out io.Writer) error {
	order := Order{"17", "tea", 2}
	task, err := ship.Task(order)
	if err != nil {
		return err
	}
	task.Key = "ship/" + order.ID // a run of the transaction that is repeated makes the same future
	var submission *futures.Submission
	result, err := kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set([]byte("orders/"+order.ID), []byte(order.Item))
		submission, err = client.SubmitTx(ctx, tx, []futures.Task{task})
		return err
	})
	if err != nil {
		return err
	}
	submission.Committed(ctx, result.Version)
	text, err := ship.Of(submission.Futures[0]).Await(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, text)
	return err
}
