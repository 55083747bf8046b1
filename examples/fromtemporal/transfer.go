package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

var transfer = futures.Define[Transfer, string]("transfer", futures.Retries(10))

// Transfer is what is moved. By the reference a bank knows a repetition.
type Transfer struct {
	From, To  string
	Amount    int
	Reference string
}

// deposited is what a bank answers: a confirmation, or why it refuses for good.
type deposited struct{ Confirmation, Refused string }

// moneyTransfer withdraws and deposits. If the deposit is refused for good, it refunds.
func moneyTransfer(ctx context.Context, b *bank, t Transfer) (string, error) {
	retries := futures.StepRetries(10, time.Second, 100*time.Second)
	withdrawn, err := futures.Step(ctx, "withdraw", func(context.Context) (string, error) {
		return b.move(t.From, -t.Amount, t.Reference+"-withdrawal")
	}, retries)
	if err != nil {
		return "", err
	}
	answer, err := futures.Step(ctx, "deposit", func(context.Context) (deposited, error) {
		confirmation, err := b.move(t.To, t.Amount, t.Reference+"-deposit")
		if errors.Is(err, errNoAccount) {
			return deposited{Refused: err.Error()}, nil
		}
		return deposited{Confirmation: confirmation}, err
	}, retries)
	switch {
	case err != nil:
		return "", err
	case answer.Refused == "":
		return withdrawn + ", " + answer.Confirmation, nil
	}
	_, err = futures.Step(ctx, "refund", func(context.Context) (string, error) {
		return b.move(t.From, t.Amount, t.Reference+"-refund")
	}, retries)
	if err != nil {
		return "", err
	}
	return "", workers.Permanent(fmt.Errorf("%s: the money is back at %s", answer.Refused, t.From))
}

var errNoAccount = errors.New("there is no account")

// bank has accounts, and knows repetitions by their references.
type bank struct {
	mu       sync.Mutex
	accounts map[string]int
	done     map[string]bool
}

func newBank() *bank {
	return &bank{accounts: map[string]int{"85-150": 2000, "43-812": 0}, done: map[string]bool{}}
}

func (b *bank) move(account string, amount int, reference string) (confirmation string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, is := b.accounts[account]; !is {
		return "", workers.Permanent(fmt.Errorf("%w %s", errNoAccount, account))
	}
	if !b.done[reference] {
		b.done[reference] = true
		b.accounts[account] += amount
	}
	return fmt.Sprintf("%+d at %s", amount, account), nil
}

// transferTwice moves money to an account, and to one that is none.
func transferTwice(ctx context.Context, client *futures.Client, out io.Writer) error {
	for _, to := range []string{"43-812", "99-000"} {
		t := Transfer{From: "85-150", To: to, Amount: 250, Reference: "12345-" + to}
		text, err := transfer.Call(ctx, client, t, futures.Key(t.Reference))
		if failed := (*futures.FailedError)(nil); errors.As(err, &failed) {
			text, err = failed.Message, nil
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, text)
	}
	return nil
}
