// Command steps books a trip in steps: the flight, the hotel, and a reminder a second before it
// begins. The hotel fails twice, and the flight is booked once. Then it counts the trip.
// docs/guide/steps.md goes through it.
//
//	go run ./examples/steps
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
)

var (
	book  = futures.Define[Trip, Booking]("book", futures.Retries(5), futures.Backoff(time.Millisecond, time.Second))
	thank = futures.Define[int, string]("thank")
)

// Trip is what is booked.
type Trip struct {
	To     string
	Begins time.Time
}

// Booking is what came of it.
type Booking struct {
	Flight, Hotel, Mail string
	Trips               int
}

// agency is where trips are booked: its hotels answer from the third call on.
type agency struct {
	out   io.Writer
	calls atomic.Int64
}

func (a *agency) flight(to string) (string, error) {
	fmt.Fprintln(a.out, "a flight to", to)
	return "LX " + to, nil
}

func (a *agency) hotel(to string) (string, error) {
	if a.calls.Add(1) < 3 {
		fmt.Fprintln(a.out, "no answer from", to)
		return "", errors.New("the hotel does not answer")
	}
	fmt.Fprintln(a.out, "a room in", to)
	return "Hotel " + to, nil
}

func (a *agency) remind(to string) (string, error) {
	fmt.Fprintln(a.out, "a mail: pack for", to)
	return "sent", nil
}

// trip books a trip. Whatever fails or dies, what has been booked is not booked again.
func trip(ctx context.Context, a *agency, t Trip) (b Booking, err error) {
	b.Flight, err = futures.Step(ctx, "flight", func(context.Context) (string, error) { return a.flight(t.To) })
	if err != nil {
		return b, err
	}
	b.Hotel, err = futures.Step(ctx, "hotel", func(context.Context) (string, error) { return a.hotel(t.To) })
	if err != nil {
		return b, err
	}
	if err := futures.SleepUntil(ctx, t.Begins.Add(-time.Second)); err != nil {
		return b, err
	}
	b.Mail, err = futures.Step(ctx, "remind", func(context.Context) (string, error) { return a.remind(t.To) },
		futures.StepRetries(3, time.Second, time.Minute), futures.StepTimeout(10*time.Second))
	if err != nil {
		return b, err
	}
	b.Trips, err = countTrip(ctx)
	return b, err
}

// countTrip counts a trip in a row of the application, and submits a thank-you: both together with the record of
// the step, or neither.
func countTrip(ctx context.Context) (int, error) {
	return futures.StepTx(ctx, "count", func(ctx context.Context, tx *futures.Tx) (int, error) {
		row := []byte("agency/trips")
		value, err := tx.Get(row).Wait(ctx)
		if err != nil {
			return 0, err
		}
		before, _ := binary.Varint(value)
		tx.Set(row, binary.AppendVarint(nil, before+1))
		task, err := thank.Task(int(before) + 1)
		if err != nil {
			return 0, err
		}
		_, err = tx.Submit(ctx, task)
		return int(before) + 1, err
	})
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
	a := &agency{out: out}
	node, err := futura.Open(ctx, store, futura.Function(book.Bind(func(ctx context.Context, t Trip) (Booking, error) {
		return trip(ctx, a, t)
	})), futura.Function(thank.Bind(func(_ context.Context, trips int) (string, error) {
		return fmt.Sprintf("thanks for trip %d", trips), nil
	})))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	f, err := book.Submit(ctx, node.Client, Trip{To: "Oslo", Begins: time.Now().Add(2 * time.Second)})
	if err != nil {
		return err
	}
	b, err := f.Await(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %s, mail %s, trip %d\n", b.Flight, b.Hotel, b.Mail, b.Trips)
	return show(ctx, node.Client, f.ID(), out)
}

// show prints the steps that a future has recorded.
func show(ctx context.Context, client *futures.Client, id futures.ID, out io.Writer) error {
	steps, err := client.Steps(ctx, id)
	for _, s := range steps {
		fmt.Fprintf(out, "%d %s in attempt %d\n", s.Number, s.Name, s.Attempt)
	}
	return err
}
