package bank

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// honest is a bank in memory whose calls take effect one after the other, while those of other clients overlap
// with them.
type honest struct {
	random  *rand.Rand
	history *history
	all     []*account
	time    int64
}

// overlap is how long a call takes, in calls.
const overlap = 30

// runHonest makes payments by turns and by sends, and reads.
func runHonest(seed uint64, payments int) *honest {
	b := &honest{random: rand.New(rand.NewPCG(seed, 0)), history: &history{payments: map[string]*tale{}}}
	for range accounts {
		b.all = append(b.all, &account{})
	}
	var onWay []*tale
	for n := range payments {
		from := b.random.IntN(accounts)
		p := &tale{payment: payment{Name: fmt.Sprint("p", n), From: from,
			To: (from + 1 + b.random.IntN(accounts-1)) % accounts, Amount: 1 + b.random.IntN(20), Sent: n%2 == 0}}
		b.history.payments[p.Name] = p
		p.began, p.paidAt = b.span()
		b.pay(p)
		if p.Sent && !p.paid.Refused {
			onWay = append(onWay, p)
		}
		if len(onWay) > 5 || n == payments-1 {
			for _, p := range onWay {
				b.come(p)
			}
			onWay = nil
		}
		switch n % 20 {
		case 0:
			began, at := b.span()
			for n, a := range b.all {
				b.history.looks = append(b.history.looks, look{n, a.seen(), began, at})
			}
		case 1, 2, 3:
			began, at := b.span()
			b.history.looks = append(b.history.looks, look{from, b.all[from].seen(), began, at})
		}
	}
	return b
}

// span returns when the call that takes effect now began, and when it will be over.
func (b *honest) span() (began, at int64) {
	b.time += overlap
	return b.time - int64(b.random.IntN(overlap*overlap)), b.time + int64(b.random.IntN(overlap*overlap))
}

func (b *honest) pay(p *tale) {
	from, to := b.all[p.From], b.all[p.To]
	p.paid.Refused = from.balance() < p.Amount
	if !p.paid.Refused {
		from.apply(p.out())
		if !p.Sent {
			to.apply(p.in())
		}
	}
	p.paid.From = from.seen()
	if !p.Sent {
		p.paid.To, p.came, p.cameAt = to.seen(), to.seen(), p.paidAt
	}
}

func (b *honest) come(p *tale) {
	_, p.cameAt = b.span()
	b.all[p.To].apply(p.in())
	p.came = b.all[p.To].seen()
}

// payment returns a payment that was applied, by a send or by a turn.
func (b *honest) payment(sent bool) *tale {
	for n := len(b.history.payments) / 2; ; n++ {
		if p := b.history.payments[fmt.Sprint("p", n)]; p.Sent == sent && !p.paid.Refused {
			return p
		}
	}
}

// drop takes a move from an account, and what it has changed there.
func (b *honest) drop(of int, m move) {
	for i, one := range b.all[of].Moves {
		if one == m {
			b.all[of].Moves = append(b.all[of].Moves[:i], b.all[of].Moves[i+1:]...)
			b.all[of].Change -= m.Amount
			return
		}
	}
}

// checks are the names of those that find something, each within seconds.
func (b *honest) checks(t *testing.T) (found []string) {
	for _, check := range []struct {
		name string
		run  func() error
	}{
		{"sum", func() error { return checkSum(b.all) }},
		{"ledger", func() error { return checkLedger(b.history, b.all) }},
		{"accounts", func() error { return checkAccounts(b.history) }},
	} {
		start := time.Now()
		if err := check.run(); err != nil {
			found = append(found, check.name)
		}
		require.Less(t, time.Since(start), 10*time.Second, check.name)
	}
	return found
}

func TestCheckersAcceptAnHonestBank(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		b := runHonest(seed, 2000)
		require.NoError(t, errors.Join(checkSum(b.all), checkLedger(b.history, b.all), checkAccounts(b.history)))
	}
}

// TestCheckersAcceptMoneyOnItsWay looks at all accounts while sends are open.
func TestCheckersAcceptMoneyOnItsWay(t *testing.T) {
	t.Parallel()
	b := runHonest(1, 100)
	p := b.payment(true)
	b.drop(p.To, p.in())
	require.NoError(t, checkSum(b.all))
}

// TestCheckersFindPlantedFaults has each checker find what it alone can see, and what others see too.
func TestCheckersFindPlantedFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct {
		name  string
		plant func(*honest)
		by    []string
	}{
		{"a deposit is applied twice", func(b *honest) {
			p := b.payment(true)
			b.all[p.To].apply(p.in())
		}, []string{"sum", "ledger"}},
		{"a withdrawal is lost", func(b *honest) {
			p := b.payment(false)
			b.drop(p.From, p.out())
		}, []string{"sum", "ledger"}},
		{"an acknowledged turn is lost on both sides", func(b *honest) {
			p := b.payment(false)
			b.drop(p.From, p.out())
			b.drop(p.To, p.in())
		}, []string{"ledger"}},
		{"an acknowledged send never comes", func(b *honest) {
			p := b.payment(true)
			b.drop(p.To, p.in())
		}, []string{"ledger"}},
		{"a send comes that never left", func(b *honest) {
			p := b.payment(true)
			b.drop(p.From, p.out())
		}, []string{"sum", "ledger"}},
		{"another amount comes", func(b *honest) {
			p := b.payment(true)
			m := p.in()
			b.drop(p.To, m)
			m.Amount++
			b.all[p.To].apply(m)
		}, []string{"sum", "ledger"}},
		{"a refused payment is applied", func(b *honest) {
			for n := 0; ; n++ {
				p := b.history.payments[fmt.Sprint("p", n)]
				if p.paid.Refused && b.all[p.From].balance() >= p.Amount {
					b.all[p.From].apply(p.out())
					b.all[p.To].apply(p.in())
					return
				}
			}
		}, []string{"ledger"}},
		{"an account pays what it has not", func(b *honest) {
			most := b.all[5].balance() + 1
			b.all[5].apply(move{"x", -most, false})
			b.all[6].apply(move{"x", most, false})
		}, []string{"sum", "ledger"}},
		{"a balance changes without a move", func(b *honest) { b.all[7].Change++ }, []string{"sum"}},
		{"money moves without a payment", func(b *honest) {
			b.all[3].apply(move{Name: "nobody's", Amount: -1})
			b.all[4].apply(move{Name: "nobody's", Amount: 1})
		}, []string{"ledger"}},
		{"a payment has no end", func(b *honest) { b.payment(true).cameAt = 0 }, []string{"ledger", "accounts"}},
		{"a turn that reads all accounts is torn", func(b *honest) { b.history.problems = []string{"torn"} },
			[]string{"ledger"}},
		{"a read is stale", func(b *honest) {
			p := b.payment(false)
			before := seen{p.paid.From.Moves - 1, p.paid.From.Balance + p.Amount}
			b.history.looks = append(b.history.looks, look{p.From, before, p.paidAt + 1, p.paidAt + 2})
		}, []string{"accounts"}},
		{"a read sees what has not begun", func(b *honest) {
			p := b.payment(false)
			b.history.looks = append(b.history.looks, look{p.From, p.paid.From, p.began - 2, p.began - 1})
		}, []string{"accounts"}},
		{"two turns saw one state", func(b *honest) {
			p := b.payment(false)
			twin := *p
			twin.Name = "twin"
			b.history.payments["twin"] = &twin
		}, []string{"ledger", "accounts"}},
		{"a payment is refused for nothing", func(b *honest) {
			p := b.payment(false)
			p.paid.Refused = true
			b.drop(p.From, p.out())
			b.drop(p.To, p.in())
		}, []string{"ledger", "accounts"}},
		{"a result tells another balance", func(b *honest) { b.payment(true).paid.From.Balance++ }, []string{"accounts"}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			b := runHonest(7, 2000)
			fault.plant(b)
			require.Equal(t, fault.by, b.checks(t))
		})
	}
}
