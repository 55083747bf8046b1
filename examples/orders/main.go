// Command orders prices and ships orders by futures: a program of one's own with
// typed functions, a worker, many futures at once, failures, futures that take the
// results of others, and futures that are made together with one's own rows.
// docs/guide/go.md goes through it.
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

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/fdbmodel/kv"
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
	price = futures.Define[Order, int]("price", futures.Retries(5))
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
	node, err := open(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	if err := priceAll(ctx, node.Client, out); err != nil {
		return err
	}
	if err := billOne(ctx, node.Client, out); err != nil {
		return err
	}
	return shipOne(ctx, node, out)
}

// open opens the store and runs a worker. It may as well be in another process.
func open(ctx context.Context, store string) (*futura.Node, error) {
	return futura.Open(ctx, store,
		futura.WorkerOptions(workers.Options{Slots: 4}),
		futura.Function(price.Bind(priceOf)),
		futura.Function(bill.Bind(billOf)),
		futura.Function(ship.Bind(func(_ context.Context, o Order) (string, error) { return "shipped " + o.ID, nil })))
}

// priceOf may run more than once for an order: its worker may die.
func priceOf(_ context.Context, o Order) (int, error) {
	switch o.Item {
	case "tea":
		return 3 * o.Count, nil
	case "cake":
		return 5 * o.Count, nil
	}
	return 0, workers.Permanent(fmt.Errorf("%s is sold out", o.Item))
}

// priceAll prices many orders at once.
func priceAll(ctx context.Context, client *futures.Client, out io.Writer) error {
	orders := []Order{{"17", "tea", 2}, {"18", "cake", 1}, {"19", "coal", 9}}
	all, err := price.Map(ctx, client, orders, futures.Timeout(time.Minute))
	if err != nil {
		return err
	}
	for i, future := range all {
		amount, err := future.Await(ctx)
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

// Bill is what a customer owes, for orders whose prices may not be known yet.
type Bill struct {
	Customer string
	Amounts  []futures.Arg[int]
}

var bill = futures.Define[Bill, string]("bill")

// billOf runs once all prices are known.
func billOf(_ context.Context, b Bill) (string, error) {
	total := 0
	for _, amount := range b.Amounts {
		total += amount.Get()
	}
	return fmt.Sprintf("%s owes %d", b.Customer, total), nil
}

// billOne submits a bill right after the orders, and awaits only the bill.
func billOne(ctx context.Context, client *futures.Client, out io.Writer) error {
	prices, err := price.Map(ctx, client, []Order{{"20", "tea", 1}, {"21", "cake", 3}})
	if err != nil {
		return err
	}
	text, err := bill.Call(ctx, client, Bill{"Ada", append(futures.All(prices), futures.Value(2))})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, text)
	return err
}

// shipOne writes an order and makes the future that ships it in one transaction:
// both are there, or neither. The key makes a repeated run of the transaction the
// same future.
func shipOne(ctx context.Context, node *futura.Node, out io.Writer) error {
	order := Order{"17", "tea", 2}
	task, err := ship.Task(order, futures.Key("ship/"+order.ID))
	if err != nil {
		return err
	}
	var submission *futures.TxFutures
	result, err := kv.Transact(ctx, node.Store, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set([]byte("orders/"+order.ID), []byte(order.Item))
		submission, err = node.Client.SubmitTx(ctx, tx, []futures.Task{task})
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
