package bank

import (
	"errors"
	"fmt"
)

// checkLedger compares the states of all accounts, once all payments are over, with what clients were told: an
// acknowledged payment is applied once to each of its accounts, at the place that was told, and nothing else is.
func checkLedger(h *history, all []*account) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, problem := range h.problems {
		wrong("a read of all accounts: %s", problem)
	}
	places := map[string][]string{} // of a payment, as texts of account, place and amount
	for n, a := range all {
		for i, m := range a.Moves {
			if h.payments[m.Name] == nil {
				wrong("account %d has payment %s, which nobody made", n, m.Name)
			}
			places[m.Name] = append(places[m.Name], place(n, i+1, m.Amount))
		}
	}
	for name, p := range h.payments {
		var want []string
		switch {
		case !p.over():
			wrong("payment %s has no end", name)
			continue
		case !p.paid.Refused:
			want = []string{place(p.From, p.paid.From.Moves, -p.Amount), place(p.To, p.came.Moves, p.Amount)}
		}
		if !sameTexts(want, places[name]) {
			wrong("payment %s, of which clients know %q, was applied as %q", name, want, places[name])
		}
	}
	return errors.Join(errs...)
}

func place(account, place, amount int) string {
	return fmt.Sprintf("account %d, place %d: %d", account, place, amount)
}

// sameTexts reports whether two lists have the same texts, each as often as the other, in any order.
func sameTexts(a, b []string) bool {
	count := map[string]int{}
	for _, text := range a {
		count[text]++
	}
	for _, text := range b {
		count[text]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
