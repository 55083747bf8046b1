package bank

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/futures"
)

const (
	// accounts is how many accounts the bank has, and opening what each of them has at first. It is little, so that
	// many payments are refused.
	accounts = 200
	opening  = 25
)

// account is the state of an account. The zero value is one that nothing has happened to.
type account struct {
	Change int // of the balance, since the opening
	Moves  []move
}

// move is one side of a payment.
type move struct {
	Name   string
	Amount int  // negative at the account that pays
	Sent   bool // the other side comes by a send, and not in the same turn
}

// payment is an amount that goes from one account to another.
type payment struct {
	Name     string
	From, To int
	Amount   int
	Sent     bool
}

// seen is what somebody saw of an account: how many moves it has, and its balance.
type seen struct{ Moves, Balance int }

// paid is the result of a payment: what the accounts were when it was over. To is the zero value if that is unknown.
type paid struct {
	From, To seen
	Refused  bool
	Receipt  futures.ID // the call that the other side comes by
}

// survey is the result of a read of all accounts in one turn, and what is wrong with it.
type survey struct {
	Accounts []seen
	Problem  string
}

func (a *account) balance() int { return opening + a.Change }
func (a *account) seen() seen   { return seen{len(a.Moves), a.balance()} }

func (a *account) apply(m move) {
	a.Change += m.Amount
	a.Moves = append(a.Moves, m)
}

func (p payment) out() move { return move{p.Name, -p.Amount, p.Sent} }
func (p payment) in() move  { return move{p.Name, p.Amount, p.Sent} }

func accountKey(n int) string { return fmt.Sprint("a", n) }

// patient are the options of all calls: killed workers end none of them.
func patient() futures.Option {
	return func(t *futures.Task) {
		futures.Retries(1000)(t)
		futures.Backoff(1, 1)(t)
	}
}

var (
	kept     = futures.DefineActor[account]("account")
	transfer = futures.Define[payment, paid]("transfer", patient())
	surveyor = futures.Define[int, survey]("survey", patient())
	receive  = futures.DefineMethod(kept, "receive", func(_ context.Context, a *account, p payment) (seen, error) {
		a.apply(p.in())
		return a.seen(), nil
	}, patient())
	pay = futures.DefineMethod(kept, "pay", payBySend, patient())
)

// payBySend is a turn over the account that pays. The money is on its way until the other account has it.
func payBySend(ctx context.Context, a *account, p payment) (paid, error) {
	if a.balance() < p.Amount {
		return paid{From: a.seen(), Refused: true}, nil
	}
	a.apply(p.out())
	receipt, err := receive.Send(ctx, accountKey(p.To), p)
	return paid{From: a.seen(), Receipt: receipt}, err
}

// payByTurn is a turn over both accounts, which it reads together or one after the other.
func payByTurn(ctx context.Context, p payment) (paid, error) {
	var both []*account
	var err error
	if p.Amount%2 == 0 {
		both, err = kept.States(ctx, accountKey(p.From), accountKey(p.To))
	} else {
		for _, n := range []int{p.From, p.To} {
			one, failed := kept.State(ctx, accountKey(n))
			if failed != nil {
				return paid{}, failed
			}
			both = append(both, one)
		}
	}
	if err != nil {
		return paid{}, err
	}
	if both[0].balance() < p.Amount {
		return paid{From: both[0].seen(), To: both[1].seen(), Refused: true}, nil
	}
	both[0].apply(p.out())
	both[1].apply(p.in())
	return paid{From: both[0].seen(), To: both[1].seen()}, nil
}

// surveyAll is a turn that reads n accounts.
func surveyAll(ctx context.Context, n int) (survey, error) {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = accountKey(i)
	}
	all, err := kept.States(ctx, keys...)
	if err != nil {
		return survey{}, err
	}
	s := survey{Accounts: make([]seen, n)}
	for i, a := range all {
		s.Accounts[i] = a.seen()
	}
	if err := checkSum(all); err != nil {
		s.Problem = err.Error()
	}
	return s, nil
}
