// Command deadlines has orders wait for their payment: a function that is run again
// until there is news, a deadline for the whole, which what it submits inherits, and work
// that is not begun too late. docs/guide/deadlines.md goes through it.
//
//	go run ./examples/deadlines
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

var (
	order   = futures.Define[string, string]("order")
	payment = futures.Define[string, string]("payment")
	advert  = futures.Define[string, string]("advert")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	b := &bank{asked: map[string]int{}, after: map[string]int{"tea": 3}}
	node, err := futura.Open(ctx, "memory:", futura.Function(order.Bind(placeOrder)),
		futura.Function(payment.Bind(awaitPayment(b))))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	for _, part := range []func(context.Context, *futures.Client, io.Writer) error{paid, unpaid, tooLate} {
		if err := part(ctx, node.Client, out); err != nil {
			return err
		}
	}
	return nil
}

// bank knows which orders are paid, after it was asked some times.
type bank struct {
	mu    sync.Mutex
	asked map[string]int
	after map[string]int
}

func (b *bank) isPaid(item string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[item]++
	return b.after[item] > 0 && b.asked[item] > b.after[item]
}

// awaitPayment looks once, and asks to be run again if there is no news: no worker is kept
// waiting, and no attempt is lost.
func awaitPayment(b *bank) func(context.Context, string) (string, error) {
	return func(_ context.Context, item string) (string, error) {
		if !b.isPaid(item) {
			return "", workers.Snooze(50 * time.Millisecond)
		}
		return item + " is paid", nil
	}
}

// placeOrder submits the wait with its own context: it has the deadline of the order.
func placeOrder(ctx context.Context, item string) (string, error) {
	client, err := futures.FromContext(ctx)
	if err != nil {
		return "", err
	}
	return payment.Call(ctx, client, item, futures.Key("payment of "+item))
}

// paid has an order that is paid in time.
func paid(ctx context.Context, client *futures.Client, out io.Writer) error {
	text, err := order.Call(ctx, client, "tea", futures.Deadline(time.Now().Add(time.Minute)))
	if err != nil {
		return err
	}
	wait, err := client.Get(ctx, client.Cluster().IDOf("payment of tea"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, text, "after", wait.Snoozes, "looks in vain, in attempt", wait.Attempt)
	return err
}

// unpaid has one that is not: at the deadline it fails, and so does what waits for it.
func unpaid(ctx context.Context, client *futures.Client, out io.Writer) error {
	_, err := order.Call(ctx, client, "salt", futures.Deadline(time.Now().Add(time.Second)))
	var failed *futures.FailedError
	if !errors.As(err, &failed) {
		return err
	}
	_, err = client.Future(client.Cluster().IDOf("payment of salt")).Await(ctx)
	var wait *futures.FailedError
	if !errors.As(err, &wait) {
		return err
	}
	_, err = fmt.Fprintln(out, "the order of salt:", failed.Kind+",", "its payment:", wait.Kind)
	return err
}

// tooLate submits what is of no use later, when no worker knows how to do it.
func tooLate(ctx context.Context, client *futures.Client, out io.Writer) error {
	_, err := advert.Call(ctx, client, "only today", futures.Expires(300*time.Millisecond))
	var failed *futures.FailedError
	if !errors.As(err, &failed) {
		return err
	}
	_, err = fmt.Fprintln(out, "the advert:", failed.Kind)
	return err
}
