// Command actors has a stock, orders and accounts as actors: states under keys, which calls change one after the
// other. docs/guide/actors.md goes through it.
//
//	go run ./examples/actors
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// Account is the state of an account, and Order that of an order.
type (
	Account struct{ Cents int }
	Order   struct {
		Buyer  string
		Cents  int
		Status string
	}
)

var (
	account = futures.DefineActor[Account]("account").Migrate(1, fromEuros)
	deposit = futures.DefineMethod(account, "deposit", func(_ context.Context, a *Account, cents int) (int, error) {
		a.Cents += cents
		return a.Cents, nil
	})

	order  = futures.DefineActor[Order]("order")
	place  = futures.DefineMethod(order, "place", placeOrder)
	pay    = futures.DefineMethod(order, "pay", payOrder, futures.Retries(0))
	remind = futures.DefineMethod(order, "remind", remindBuyer)

	transfer = futures.Define[Transfer, int]("transfer")
)

// Stock is the state of a stock, and Shelf that of the part of it which has the items of one kind.
type (
	Stock struct{ Items int }
	Shelf struct{ Items int }
)

// Delivery are items of one kind.
type Delivery struct {
	Kind  string
	Items int
}

var (
	stock   = futures.DefineActor[Stock]("stock")
	shelves = futures.DefineParts[Shelf](stock, "shelf")
	deliver = futures.DefineMethod(stock, "deliver", storeItems)
)

// storeItems puts items on their shelf, and touches no other one.
func storeItems(ctx context.Context, s *Stock, d Delivery) (int, error) {
	key := futures.ActorKey(ctx)
	shelf, _, err := shelves.Get(ctx, key, d.Kind)
	if err != nil {
		return 0, err
	}
	s.Items += d.Items
	shelf.Items += d.Items
	return shelf.Items, shelves.Set(ctx, key, d.Kind, shelf)
}

// fromEuros makes an Account of what the first version of the program has left.
func fromEuros(_ int, state []byte) (Account, error) {
	var old struct{ Euros int }
	err := futures.DecodeState(state, &old)
	return Account{Cents: old.Euros * 100}, err
}

// placeOrder changes an order, and has it remind its buyer.
func placeOrder(ctx context.Context, o *Order, placed Order) (string, error) {
	if o.Status != "" {
		return "", workers.Permanent(fmt.Errorf("the order is %s", o.Status))
	}
	*o = placed
	o.Status = "placed"
	_, err := remind.Remind(ctx, futures.ActorKey(ctx), "payment", 24*time.Hour, 0)
	return o.Status, err
}

// payOrder is a turn over two actors: the order, and the account of its buyer.
func payOrder(ctx context.Context, o *Order, _ int) (string, error) {
	from, err := account.State(ctx, o.Buyer)
	if err != nil {
		return "", err
	}
	if from.Cents < o.Cents {
		return "", workers.Permanent(fmt.Errorf("%s has %d cents, and %d are due", o.Buyer, from.Cents, o.Cents))
	}
	from.Cents -= o.Cents
	o.Status = "paid"
	if _, err := deposit.Send(ctx, "shop", o.Cents); err != nil {
		return "", err
	}
	return o.Status, nil
}

// remindBuyer runs a day after the order was placed, or after an outage, once.
func remindBuyer(_ context.Context, o *Order, _ int) (string, error) {
	if o.Status == "placed" {
		o.Status = "overdue"
	}
	return o.Status, nil
}

// Transfer is an amount that goes from one account to another.
type Transfer struct {
	From, To string
	Cents    int
}

// move is a function that is no method: its turn is over two accounts.
func move(ctx context.Context, t Transfer) (int, error) {
	from, err := account.State(ctx, t.From)
	if err != nil {
		return 0, err
	}
	to, err := account.State(ctx, t.To)
	if err != nil {
		return 0, err
	}
	from.Cents -= t.Cents
	to.Cents += t.Cents
	return from.Cents, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	node, err := futura.Open(ctx, "memory:", futura.Function(deposit.Bind()), futura.Function(place.Bind()),
		futura.Function(pay.Bind()), futura.Function(remind.Bind()), futura.Function(transfer.Bind(move)),
		futura.Function(deliver.Bind()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	return errors.Join(shop(ctx, node.Client, out), accounts(ctx, node.Client, out), store(ctx, node.Client, out))
}

// store has items delivered, twice of one kind.
func store(ctx context.Context, c *futures.Client, out io.Writer) error {
	for _, d := range []Delivery{{"cups", 12}, {"plates", 6}, {"cups", 3}} {
		items, err := deliver.Call(ctx, c, "basel", d)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, d.Kind, items)
	}
	return nil
}

// shop places an order and pays for it, twice.
func shop(ctx context.Context, c *futures.Client, out io.Writer) error {
	if _, err := deposit.Call(ctx, c, "alice", 1000); err != nil {
		return err
	}
	status, err := place.Call(ctx, c, "order-7", Order{Buyer: "alice", Cents: 700})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, status)
	for range 2 {
		status, err := pay.Call(ctx, c, "order-7", 0)
		var failed *futures.FailedError
		switch {
		case errors.As(err, &failed):
			fmt.Fprintln(out, failed.Message)
		case err != nil:
			return err
		default:
			fmt.Fprintln(out, status)
		}
	}
	return nil
}

// accounts has alice send bob what she has left, in parts at the same time.
func accounts(ctx context.Context, c *futures.Client, out io.Writer) error {
	parts := make([]Transfer, 10)
	for i := range parts {
		parts[i] = Transfer{From: "alice", To: "bob", Cents: 30}
	}
	all, err := transfer.Map(ctx, c, parts)
	if err == nil {
		_, err = futures.AwaitAll(ctx, all)
	}
	if err != nil {
		return err
	}
	for _, key := range []string{"alice", "bob"} {
		state, _, err := account.Read(ctx, c, key)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, key, state.Cents)
	}
	return nil
}
