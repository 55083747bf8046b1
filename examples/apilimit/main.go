// Command apilimit calls an API on behalf of customers, which allows each of them one
// call at a time and 20 in a second: a lane for each customer, whichever worker makes the
// call. docs/guide/ratelimit.md goes through it.
//
//	go run ./examples/apilimit
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
)

// Call is a call of the API.
type Call struct {
	Customer string
	Number   int
}

// call's lane follows from its input, wherever it is submitted.
var call = futures.Define[Call, string]("call", futures.Timeout(time.Minute)).
	InLane("api", func(c Call) string { return c.Customer })

// limits are what the API allows each customer.
var limits = futures.LaneSettings{Width: 1, Rate: 20, Every: time.Second}

func main() {
	store := flag.String("store", "memory:", "where the calls are kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *store, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	api := newAPI()
	node, err := futura.Open(ctx, store, futura.Function(call.Bind(api.call)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	// Every process may set it: the same settings again change nothing.
	if err := node.Client.SetLaneKind(ctx, "api", limits); err != nil {
		return err
	}
	answers, err := callAll(ctx, node.Client, []string{"acme", "ajax", "apex"}, 5)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		fmt.Fprintln(out, answer)
	}
	return nil
}

// callAll makes some calls for each customer, and returns the answers.
func callAll(ctx context.Context, client *futures.Client, customers []string, each int) ([]string, error) {
	var calls []Call
	for number := range each {
		for _, customer := range customers {
			calls = append(calls, Call{customer, number + 1})
		}
	}
	made, err := call.Map(ctx, client, calls)
	if err != nil {
		return nil, err
	}
	return futures.AwaitAll(ctx, made)
}
