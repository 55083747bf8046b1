// Command approval has orders wait until a person approves them, by a link that needs no login.
// docs/guide/promises.md goes through it.
//
//	go run ./examples/approval
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/workers"
)

var order = futures.Define[string, string]("order")

// mail is what a person gets: a link.
type mail struct{ subject, link string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	mails := make(chan mail, 1)
	var site *httptest.Server
	place := func(ctx context.Context, item string) (string, error) { return placeOrder(ctx, item, site.URL, mails) }
	node, err := futura.Open(ctx, "memory:", futura.Function(order.Bind(place)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	site = httptest.NewServer(httpapi.Handler(node.Client, httpapi.Options{Token: "a secret of the operators"}))
	defer site.Close()
	for _, part := range []func(context.Context, *futures.Client, <-chan mail, io.Writer) error{approved, refused} {
		if err := part(ctx, node.Client, mails, out); err != nil {
			return err
		}
	}
	return nil
}

// placeOrder asks a person by mail, and waits for the answer without holding its slot. The key is that of this
// order alone: an attempt that follows a crash finds the promise of the one before.
func placeOrder(ctx context.Context, item, site string, mails chan<- mail) (string, error) {
	client, err := futures.FromContext(ctx)
	if err != nil {
		return "", err
	}
	info, _ := workers.InfoFrom(ctx)
	approval, err := futures.NewPromise[bool](ctx, client, futures.Label("Order of "+item),
		futures.Key("approval of "+info.ID.String()), futures.Expires(7*24*time.Hour))
	if err != nil {
		return "", err
	}
	_, err = futures.Step(ctx, "mail", func(ctx context.Context) (bool, error) {
		token, err := tokenOf(ctx, client, approval)
		if err == nil {
			mails <- mail{"Order of " + item, site + "/api/v1/promises/" + token}
		}
		return true, err
	})
	if err != nil && !errors.Is(err, futures.ErrTransition) { // it is answered already
		return "", err
	}
	ok, err := approval.Await(ctx)
	var failed *futures.FailedError
	switch {
	case errors.As(err, &failed):
		return "", workers.Permanent(fmt.Errorf("not approved: %s", failed.Message))
	case err != nil:
		return "", err
	}
	return fmt.Sprintf("%s is ordered: %t", item, ok), nil
}

// tokenOf draws another token if an attempt was killed after it had made the promise: whether it sent the mail is
// unknown, and the token is shown once.
func tokenOf(ctx context.Context, client *futures.Client, approval *futures.Promise[bool]) (string, error) {
	if token := approval.Token(); token != "" {
		return token, nil
	}
	return client.NewPromiseToken(ctx, approval.ID())
}

// approved has a person click twice, and somebody change the mind of the link.
func approved(ctx context.Context, client *futures.Client, mails <-chan mail, out io.Writer) error {
	f, err := order.Submit(ctx, client, "tea")
	if err != nil {
		return err
	}
	link := (<-mails).link
	for _, click := range []struct{ method, form string }{
		{http.MethodGet, ""}, // a mail program looks at the link: nothing happens
		{http.MethodPost, "value=true"}, {http.MethodPost, "value=true"}, {http.MethodPost, "value=false"},
	} {
		status, err := send(ctx, click.method, link, click.form)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, click.method, click.form, "->", status)
	}
	text, err := f.Await(ctx)
	fmt.Fprintln(out, text)
	return err
}

// refused has a person reject another order of tea: who awaits it gets the reason.
func refused(ctx context.Context, client *futures.Client, mails <-chan mail, out io.Writer) error {
	f, err := order.Submit(ctx, client, "tea")
	if err != nil {
		return err
	}
	if _, err := send(ctx, http.MethodPost, (<-mails).link+":reject", "message=too+dear"); err != nil {
		return err
	}
	var failed *futures.FailedError
	if _, err = f.Await(ctx); !errors.As(err, &failed) {
		return fmt.Errorf("it was not refused: %w", err)
	}
	_, err = fmt.Fprintln(out, failed.Message)
	return err
}

func send(ctx context.Context, method, url, form string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(form))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
