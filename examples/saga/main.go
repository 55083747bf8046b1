// Command saga books a trip whose parts are undone once one is refused: a flight, a room, the approval of a person who
// gets a link, and the payment. Kill it with -9 wherever you like, and start it again: it goes on.
// docs/guide/saga.md goes through it; saga.go has all of the saga.
//
//	go run ./examples/saga -store embedded:./trip
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

// agency is where trips are booked, as far as this program has one.
type agency struct {
	out  io.Writer
	site string
}

func (a *agency) book(_ context.Context, key string) (refused string, err error) {
	return a.note("book", key)
}

func (a *agency) cancel(_ context.Context, key string) (refused string, err error) {
	return a.note("cancel", key)
}

func (a *agency) pay(_ context.Context, key string) (refused string, err error) {
	return a.note("pay", key)
}

func (a *agency) note(what, key string) (refused string, err error) {
	_, err = fmt.Fprintln(a.out, what, key)
	return "", err
}

// ask mails a link. The token of a promise is shown once: an attempt that was killed before has lost it, so that
// another one is drawn.
func (a *agency) ask(ctx context.Context, _ string) (refused string, err error) {
	client, p, err := approval(ctx)
	if err != nil {
		return "", err
	}
	token, err := client.NewPromiseToken(ctx, p.ID())
	if errors.Is(err, futures.ErrTransition) {
		return "", nil // it is answered already
	}
	if err == nil {
		_, err = fmt.Fprintln(a.out, "answer at", a.site+"/api/v1/promises/"+token)
	}
	return "", err
}

func main() {
	store := flag.String("store", "memory:", "where futures are kept")
	listen := flag.String("listen", "127.0.0.1:8080", "where the links of promises lead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *store, *listen, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store, listen string, out io.Writer) (err error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	a := &agency{out, "http://" + listener.Addr().String()}
	node, err := futura.Open(ctx, store, futura.Function(book.Bind(func(ctx context.Context, to string) (string, error) {
		return trip(ctx, a, to)
	})))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	served := make(chan error, 1)
	server := http.Server{Handler: httpapi.Handler(node.Client, httpapi.Options{Token: "a secret of the operators"})}
	go func() { served <- server.Serve(listener) }()
	// Who answers hears that it counts, though that ends the program.
	defer func() { err = errors.Join(err, server.Shutdown(context.WithoutCancel(ctx))); <-served }()
	fmt.Fprintln(out, "listening at", a.site)
	f, err := book.Submit(ctx, node.Client, "Oslo", futures.Key("trip 7"))
	if err != nil {
		return err
	}
	text, err := f.Await(ctx)
	if failed := (*futures.FailedError)(nil); errors.As(err, &failed) {
		text, err = failed.Message, nil
	}
	if err == nil {
		_, err = fmt.Fprintln(out, text)
	}
	return err
}
