package kvtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

func concurrencyCases() []testCase {
	return []testCase{
		{name: "Concurrent/Cycle", run: concurrentCycle},
		{name: "Concurrent/Add", run: concurrentAdd},
		{name: "Concurrent/Bank", run: concurrentBank},
		{name: "Concurrent/PhantomWriteSkew", run: concurrentPhantoms},
		{name: "Concurrent/StampsFollowVersions", run: concurrentStamps},
		{name: "Concurrent/Appends", run: concurrentAppends},
	}
}

const (
	workers   = 8
	perWorker = 40
)

// concurrently runs fn in several goroutines, as many times in each as a case
// does by default, and fails on the first error.
func (b *bundle) concurrently(fn func(worker, i int, random *rand.Rand) error) {
	b.Helper()
	failures := make(chan error, workers)
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 0))
			for i := range perWorker {
				if err := fn(worker, i, random); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		require.NoError(b, err)
	}
}

// concurrentCycle keeps a ring of keys, each naming the next. Every transaction
// takes one out of its place and puts it behind its successor: any lost or
// phantom update breaks the ring.
func concurrentCycle(b *bundle) {
	const nodes = 12
	node := func(i int) []byte { return b.key(fmt.Sprintf("node%02d", i)) }
	b.update(func(tx kv.Tx) {
		for i := range nodes {
			tx.Set(node(i), node((i+1)%nodes))
		}
	})
	b.concurrently(func(_, _ int, random *rand.Rand) error {
		start := node(random.IntN(nodes))
		_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
			chain := [][]byte{start}
			for range 3 {
				next, err := a.Get(chain[len(chain)-1]).Wait(b.ctx)
				if err != nil {
					return err
				}
				chain = append(chain, next)
			}
			a.Set(chain[0], chain[2])
			a.Set(chain[2], chain[1])
			a.Set(chain[1], chain[3])
			return nil
		})
		return err
	})
	rows := map[string]string{}
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
		page, err := a.GetRange(b.span("node", "nodf"), kv.RangeOptions{}).Wait(b.ctx)
		for _, item := range page.Items {
			rows[string(item.Key)] = string(item.Value)
		}
		return err
	})
	require.NoError(b, err)
	require.Len(b, rows, nodes)
	at, first := string(node(0)), string(node(0))
	for i := range nodes {
		at = rows[at]
		require.Equal(b, i == nodes-1, at == first, "the ring closes after %d of %d steps", i+1, nodes)
	}
}

func concurrentAdd(b *bundle) {
	b.concurrently(func(worker, i int, _ *rand.Rand) error {
		_, err := b.guarded(b.db, b.retry(), func(tx kv.Tx) error {
			tx.Atomic(kv.Add, b.key("sum"), number(i+1))
			return nil
		})
		return err
	})
	require.Equal(b, workers*perWorker*(perWorker+1)/2, b.number("sum"))
}

// concurrentBank moves money between accounts and reads all of them meanwhile:
// the sum is the same in every transaction that commits.
func concurrentBank(b *bundle) {
	const accounts, each = 6, 100
	account := func(i int) []byte { return b.key(fmt.Sprint("account", i)) }
	b.update(func(tx kv.Tx) {
		for i := range accounts {
			tx.Set(account(i), number(each))
		}
	})
	b.concurrently(func(worker, i int, random *rand.Rand) error {
		from, to, amount := random.IntN(accounts), random.IntN(accounts), random.IntN(each)
		_, err := b.guarded(b.db, b.retry(), func(tx kv.Tx) error {
			sum, balances, err := b.balances(tx)
			if err != nil {
				return err
			}
			if sum != accounts*each {
				return fmt.Errorf("accounts hold %d, not %d", sum, accounts*each)
			}
			if from != to && balances[from] >= amount {
				tx.Set(account(from), number(balances[from]-amount))
				tx.Set(account(to), number(balances[to]+amount))
			}
			return nil
		})
		return err
	})
	b.update(func(tx kv.Tx) { tx.Set(b.key("end"), nil) })
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
		sum, _, err := b.balances(a)
		if err == nil && sum != accounts*each {
			return errors.New("money was made or lost")
		}
		return err
	})
	require.NoError(b, err)
}

func (b *bundle) balances(r kv.Reader) (sum int, balances []int, err error) {
	page, err := r.GetRange(kv.Prefix(b.key("account")), kv.RangeOptions{}).Wait(b.ctx)
	for _, item := range page.Items {
		n := 0
		for i, digit := range item.Value {
			n |= int(digit) << (8 * i)
		}
		balances = append(balances, n)
		sum += n
	}
	return sum, balances, err
}

// concurrentPhantoms lets each transaction take a seat only if it finds fewer
// than the limit taken: without conflicts on what was not there, too many are
// taken.
func concurrentPhantoms(b *bundle) {
	const seats = 20
	b.concurrently(func(worker, i int, _ *rand.Rand) error {
		_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
			page, err := a.GetRange(b.span("seat/", "seat0"), kv.RangeOptions{}).Wait(b.ctx)
			if err != nil || len(page.Items) >= seats {
				return err
			}
			a.Set(b.key(fmt.Sprint("seat/", worker, "-", i)), nil)
			return nil
		})
		return err
	})
	var taken int
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
		page, err := a.GetRange(b.span("seat/", "seat0"), kv.RangeOptions{}).Wait(b.ctx)
		taken = len(page.Items)
		return err
	})
	require.NoError(b, err)
	require.Equal(b, seats, taken)
}

// concurrentStamps writes stamped keys from all sides. Stamps are distinct, and
// later commits of one goroutine have larger ones.
func concurrentStamps(b *bundle) {
	var mu sync.Mutex
	seen := map[kv.Stamp]bool{}
	last := map[int]kv.Stamp{}
	b.concurrently(func(worker, i int, _ *rand.Rand) error {
		name := fmt.Sprint(worker, "-", i)
		result, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
			b.stampKey(a, "s", name)
			return nil
		})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		before, stamp := last[worker], result.Stamp
		if seen[stamp] || string(before[:]) >= string(stamp[:]) {
			return fmt.Errorf("stamp %x after %x of the same goroutine", stamp, before)
		}
		seen[stamp], last[worker] = true, stamp
		return nil
	})
	require.Len(b, seen, workers*perWorker)
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
		page, err := a.GetRange(b.span("s", "t"), kv.RangeOptions{}).Wait(b.ctx)
		if err != nil {
			return err
		}
		found := map[kv.Stamp]bool{}
		for _, item := range page.Items {
			found[kv.Stamp(item.Key[len(b.prefix)+1:])] = true
		}
		for stamp := range seen {
			if !found[stamp] {
				return fmt.Errorf("no key has the stamp %x", stamp)
			}
		}
		return nil
	})
	require.NoError(b, err)
}
