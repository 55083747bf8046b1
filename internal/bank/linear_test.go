package bank

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// searchTime bounds the search for the orders of all accounts. It takes a second where calls have results.
const searchTime = time.Minute

// call is what was asked of an account: to move an amount, or to be read if that is 0.
type call struct{ account, amount int }

// told is what a call to an account has returned.
type told struct {
	seen
	refused bool
}

// model is an account as it would be if its calls came one after the other.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			parts := map[int][]porcupine.Operation{}
			for _, o := range all {
				of := o.Input.(call).account
				parts[of] = append(parts[of], o)
			}
			list := make([][]porcupine.Operation, 0, len(parts))
			for _, part := range parts {
				list = append(list, part)
			}
			return list
		},
		Init: func() any { return seen{0, opening} },
		Step: func(state, input, output any) (bool, any) {
			s, c, out := state.(seen), input.(call), output.(told)
			if c.amount == 0 || s.Balance+c.amount < 0 {
				return out == told{s, c.amount != 0}, s
			}
			s = seen{s.Moves + 1, s.Balance + c.amount}
			return out == told{s, false}, s
		},
	}
}

// operations returns what happened to accounts, a refused payment that was to be sent to none that receives.
func (h *history) operations() (all []porcupine.Operation) {
	add := func(c call, out told, began, at int64) {
		all = append(all, porcupine.Operation{Input: c, Output: out, Call: began, Return: at})
	}
	for _, l := range h.looks {
		add(call{l.account, 0}, told{l.seen, false}, l.began, l.at)
	}
	for _, p := range h.payments {
		add(call{p.From, -p.Amount}, told{p.paid.From, p.paid.Refused}, p.began, p.paidAt)
		switch {
		case !p.paid.Refused:
			add(call{p.To, p.Amount}, told{p.came, false}, p.began, p.cameAt)
		case !p.Sent:
			add(call{p.To, 0}, told{p.came, false}, p.began, p.paidAt)
		}
	}
	return all
}

// checkAccounts looks for an order of the calls to each account that explains all that they have returned, and has
// each between its begin and its end. All payments are over.
func checkAccounts(h *history) error {
	all := h.operations()
	if result := porcupine.CheckOperationsTimeout(model(), all, searchTime); result != porcupine.Ok {
		return fmt.Errorf("no order explains %d calls to accounts: %s", len(all), result)
	}
	return nil
}
