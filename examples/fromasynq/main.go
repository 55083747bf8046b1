// Command fromasynq sends mails and resizes images in the background, as asynq's
// quickstart does. docs/start/from-asynq.md goes through it.
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

// Mail is what the function mail takes.
type Mail struct {
	User     int
	Template string
}

var (
	sendMail    = futures.Define[Mail, string]("mail", futures.Retries(10), futures.Timeout(3*time.Minute))
	resizeImage = futures.Define[string, int]("resize", futures.Queue("low"))
)

func main() {
	if err := run(context.Background(), "embedded:./data", os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	node, err := serve(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	return enqueue(ctx, node.Client, out)
}

// serve runs ten jobs at a time of two queues, as asynq's server does.
func serve(ctx context.Context, store string) (*futura.Node, error) {
	return futura.Open(ctx, store,
		futura.WorkerOptions(workers.Options{Slots: 10, Queues: []string{"default", "low"}}),
		futura.Function(sendMail.Bind(func(_ context.Context, m Mail) (string, error) {
			return fmt.Sprintf("sent %s to user %d", m.Template, m.User), nil
		})),
		futura.Function(resizeImage.Bind(func(_ context.Context, source string) (int, error) {
			return len(source), nil
		})))
}

// enqueue makes a job for at once, one for tomorrow, and one with options of its
// own, and awaits two of them.
func enqueue(ctx context.Context, client *futures.Client, out io.Writer) error {
	welcome, err := sendMail.Submit(ctx, client, Mail{42, "welcome"})
	if err != nil {
		return err
	}
	tomorrow, err := sendMail.Submit(ctx, client, Mail{42, "reminder"}, futures.Delay(24*time.Hour))
	if err != nil {
		return err
	}
	size, err := resizeImage.Call(ctx, client, "images/42.png", futures.Retries(2), futures.Priority(9))
	if err != nil {
		return err
	}
	sent, err := welcome.Await(ctx)
	if err != nil {
		return err
	}
	view, err := client.Get(ctx, tomorrow.ID())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\nresized to %d bytes\nthe reminder is %s\n", sent, size, view.State)
	return err
}
