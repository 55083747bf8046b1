// Command fromtemporal greets a user, and moves money from one account to another, as Temporal's first
// programs do in workflows and their activities. docs/start/from-temporal.md goes through it.
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
	welcome  = futures.Define[string, string]("welcome")
)

func main() {
	if err := run(context.Background(), "embedded:./data", os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	b := newBank()
	node, err := futura.Open(ctx, store,
		futura.Function(greeting.Bind(greet)), futura.Function(welcome.Bind(welcomeUser)),
		futura.Function(transfer.Bind(func(ctx context.Context, t Transfer) (string, error) {
			return moneyTransfer(ctx, b, t)
		})))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	text, err := welcome.Call(ctx, node.Client, "Ada", futures.Timeout(time.Minute), futures.Key("welcome/Ada"))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, text)
	return transferTwice(ctx, node.Client, out)
}

// greet is one step. It is tried again when it fails or its worker dies.
func greet(_ context.Context, name string) (string, error) { return "Hello " + name + "!", nil }

// welcomeUser calls the steps. Where its worker dies it starts again, and finds the
// steps that were done by their keys: they don't run again.
func welcomeUser(ctx context.Context, name string) (string, error) {
	client, err := futures.FromContext(ctx)
	if err != nil {
		return "", err
	}
	info, _ := workers.InfoFrom(ctx)
	return greeting.Call(ctx, client, name, futures.Key(info.ID.String()+"/greeting"))
}
