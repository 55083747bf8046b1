// Command limits keeps a cluster within bounds: a producer that is refused comes back
// later, another one waits for room, and no more calls run at a time than the other side
// bears. docs/guide/limits.md goes through it.
//
//	go run ./examples/limits
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

var call = futures.Define[int, int]("call")

// load is how many calls run, and the most that ran at a time.
type load struct{ now, most atomic.Int64 }

func (l *load) callOf(_ context.Context, n int) (int, error) {
	now := l.now.Add(1)
	defer l.now.Add(-1)
	for most := l.most.Load(); now > most && !l.most.CompareAndSwap(most, now); most = l.most.Load() {
	}
	return n * n, nil
}

func main() {
	store := flag.String("store", "memory:", "where futures are kept")
	flag.Parse()
	if err := run(context.Background(), *store, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	var calls load
	node, err := futura.Open(ctx, store, futura.WorkerOptions(workers.Options{Slots: 16}),
		futura.Function(call.Bind(calls.callOf)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	if err := setLimits(ctx, node.Client, out); err != nil {
		return err
	}
	if err := refused(ctx, node.Client, out); err != nil {
		return err
	}
	if err := waits(ctx, node.Client, out); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "never more than 4 at a time:", calls.most.Load() <= 4)
	return err
}

// setLimits is what an operator does once, mostly with futura limits set.
func setLimits(ctx context.Context, client *futures.Client, out io.Writer) error {
	limits, err := client.SetLimits(ctx, func(l *futures.Limits) { l.Pending, l.Running = 50, 4 })
	fmt.Fprintln(out, "pending:", limits.Pending, "running:", limits.Running)
	return err
}

// refused learns which limit is exceeded, and when to come back. Nothing was submitted.
func refused(ctx context.Context, client *futures.Client, out io.Writer) error {
	inputs := make([]int, 51)
	_, err := call.Map(ctx, client, inputs)
	var limit *futures.LimitError
	if !errors.As(err, &limit) {
		return err
	}
	_, err = fmt.Fprintf(out, "too many %s at once: %d of %.0f; in parts they fit: %t\n", limit.Limit, limit.Asked,
		limit.Max, limit.RetryAfter == 0)
	return err
}

// waits submits more than may be pending, as there is room.
func waits(ctx context.Context, client *futures.Client, out io.Writer) error {
	inputs := make([]int, 40)
	for i := range inputs {
		inputs[i] = i
	}
	total := 0
	for range 5 {
		all, err := call.Map(ctx, client, inputs, futures.WaitForRoom())
		if err != nil {
			return err
		}
		squares, err := futures.AwaitAll(ctx, all)
		if err != nil {
			return err
		}
		total += len(squares)
	}
	_, err := fmt.Fprintln(out, "answered:", total)
	return err
}
