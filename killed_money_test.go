package futura_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// bankVariable names the directory of a process that TestMoneyOfKilledProcesses starts, and bankProcess says which
// one of them it is.
const (
	bankVariable = "FUTURA_KILLED_BANK"
	bankProcess  = "FUTURA_BANK_PROCESS"
)

// purse is the state of an account: what came of turns over two accounts, and of sends, and the names of all
// that was applied, in order.
type purse struct {
	Turns, Sends int
	Applied      []string
}

// payment is an amount that goes from one account to another. Its name is in the ledger outside.
type payment struct {
	Name     string
	From, To string
	Amount   int
}

var (
	purses   = futures.DefineActor[purse]("purse")
	transfer = futures.Define[payment, int]("transfer", futures.Retries(100), futures.Backoff(1, 1))
	wealth   = futures.Define[int, int]("total", futures.Retries(100), futures.Backoff(1, 1))
	receive  = futures.DefineMethod(purses, "receive", func(_ context.Context, p *purse, got payment) (int, error) {
		p.Sends += got.Amount
		p.Applied = append(p.Applied, got.Name)
		return len(p.Applied), nil
	}, futures.Retries(100), futures.Backoff(1, 1))
	pay = futures.DefineMethod(purses, "pay", func(ctx context.Context, p *purse, out payment) (int, error) {
		p.Sends -= out.Amount
		p.Applied = append(p.Applied, out.Name)
		_, err := receive.Send(ctx, out.To, out)
		return len(p.Applied), err
	}, futures.Retries(100), futures.Backoff(1, 1))
)

func accountName(n int) string { return fmt.Sprint("a", n) }

// moveMoney is a turn over two accounts. It returns its place among all that was applied to the first one.
func moveMoney(ctx context.Context, p payment) (int, error) {
	both, err := purses.States(ctx, p.From, p.To)
	if err != nil {
		return 0, err
	}
	both[0].Turns -= p.Amount
	both[1].Turns += p.Amount
	for _, one := range both {
		one.Applied = append(one.Applied, p.Name)
	}
	return len(both[0].Applied), nil
}

// sumMoney sums what came of turns over the first n accounts, at one time.
func sumMoney(ctx context.Context, n int) (sum int, err error) {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = accountName(i)
	}
	all, err := purses.States(ctx, keys...)
	for _, one := range all {
		sum += one.Turns
	}
	return sum, err
}

// openBank opens a store that several processes share.
func openBank(ctx context.Context, dir string) (*futura.Node, error) {
	return futura.Open(ctx, "embedded:"+filepath.Join(dir, "store"), futura.Function(transfer.Bind(moveMoney)),
		futura.Function(wealth.Bind(sumMoney)), futura.Function(receive.Bind()), futura.Function(pay.Bind()),
		futura.WorkerOptions(workers.Options{Slots: 8}),
		futura.ClusterConfig(futures.Config{Heartbeat: 200 * time.Millisecond}))
}

// accounts is how many accounts a bank has.
const accounts = 30

// beBank pays until it is killed: it is the main of a process.
func beBank(dir, process string) (err error) {
	ctx := context.Background()
	file, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	j := &journal{file: file}
	node, err := openBank(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	var all sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		all.Go(func() {
			for n := 0; errs[i] == nil; n++ {
				errs[i] = j.payOne(ctx, node.Client, fmt.Sprintf("%s.%d.%d", process, i, n), n)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// payOne makes a payment, and notes before and afterwards what it is and what it came to; now and then it looks at
// all accounts.
func (j *journal) payOne(ctx context.Context, c *futures.Client, name string, n int) error {
	if n%10 == 9 {
		sum, err := wealth.Call(ctx, c, accounts)
		if err == nil && sum != 0 {
			err = j.write("broken", name, sum)
		}
		return err
	}
	p := payment{Name: name, From: accountName(rand.IntN(accounts)), To: accountName(rand.IntN(accounts)), Amount: 1 + n%7}
	kind := []string{"turn", "send"}[n%2]
	if p.From == p.To {
		return nil
	}
	if err := j.write("begin", name, kind, p.From, p.To, p.Amount); err != nil {
		return err
	}
	var place int
	var err error
	if kind == "turn" {
		place, err = transfer.Call(ctx, c, p, futures.Key(name))
	} else {
		place, err = pay.Call(ctx, c, p.From, p, futures.Key(name))
	}
	if errors.Is(err, futures.ErrFailed) { // its workers were killed too often
		return j.write("failed", name)
	}
	if err != nil {
		return err
	}
	return j.write("done", name, place)
}

// TestMoneyOfKilledProcesses has three processes pay from account to account on one embedded store, kills them as
// kill -9 does and stops them for longer than it takes to be declared dead, and compares the accounts with a ledger
// outside. FUTURA_LONG=1 does that 1,000 times.
func TestMoneyOfKilledProcesses(t *testing.T) {
	t.Parallel()
	rounds := 12
	switch {
	case os.Getenv("FUTURA_LONG") == "1":
		rounds = 1000
	case testing.Short():
		rounds = 5
	}
	dir, err := os.MkdirTemp("", "fb") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	processes := make([]*bankChild, 3)
	for i := range processes {
		processes[i] = startBank(t, dir, fmt.Sprint(i))
	}
	for round := range rounds {
		at := rand.IntN(len(processes))
		p := processes[at]
		for range 1 + rand.IntN(60) {
			if !p.scanWithin(time.Minute) {
				break
			}
		}
		if rand.IntN(3) == 0 {
			require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
			other := processes[(at+1)%len(processes)]
			for range 40 { // it is declared dead meanwhile, unless it has the store
				if !other.scanWithin(2 * time.Second) {
					break
				}
			}
			require.NoError(t, p.Process.Signal(syscall.SIGCONT))
			continue
		}
		p.kill()
		processes[at] = startBank(t, dir, fmt.Sprint(len(processes)+round))
	}
	for _, p := range processes {
		p.kill()
	}
	checkBank(t, dir)
}

// bankChild is a process that pays.
type bankChild struct {
	*exec.Cmd
	lines *bufio.Scanner
	next  chan bool
}

func startBank(t *testing.T, dir, process string) *bankChild {
	binary, err := os.Executable()
	require.NoError(t, err)
	child := &bankChild{Cmd: exec.Command(binary)}
	child.Env = append(os.Environ(), bankVariable+"="+dir, bankProcess+"="+process)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	child.lines = bufio.NewScanner(out)
	require.NoError(t, child.Start())
	return child
}

// scanWithin reads a line, and reports whether there was one in time.
func (c *bankChild) scanWithin(d time.Duration) bool {
	if c.next == nil {
		c.next = make(chan bool, 1)
		go func() { c.next <- c.lines.Scan() }()
	}
	select {
	case more := <-c.next:
		c.next = nil
		return more
	case <-time.After(d):
		return false
	}
}

func (c *bankChild) kill() {
	_ = c.Process.Kill()
	for c.scanWithin(time.Minute) {
	}
	_ = c.Wait()
}

// ledger is what the journal says of payments.
type ledger struct {
	payments map[string]payment
	kinds    map[string]string
	done     map[string]int // the places of those that were acknowledged
}

// readLedger reads a journal, and requires of each payment that it has a place behind all that were acknowledged
// before it began.
func readLedger(t *testing.T, dir string) ledger {
	text, err := os.ReadFile(filepath.Join(dir, "journal"))
	require.NoError(t, err)
	l := ledger{map[string]payment{}, map[string]string{}, map[string]int{}}
	last, before := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch name := words[1]; words[0] {
		case "begin":
			p := payment{Name: name, From: words[3], To: words[4]}
			_, err := fmt.Sscan(words[5], &p.Amount)
			require.NoError(t, err)
			l.payments[name], l.kinds[name], before[name] = p, words[2], last[p.From]
		case "done":
			place, from := 0, l.payments[name].From
			_, err := fmt.Sscan(words[2], &place)
			require.NoError(t, err)
			require.Greater(t, place, before[name], "%s came before what had ended before it began", name)
			l.done[name], last[from] = place, max(last[from], place)
		case "broken":
			require.Fail(t, line)
		}
	}
	return l
}

// checkBank lets all that was submitted end, and compares the accounts with the ledger.
func checkBank(t *testing.T, dir string) {
	ctx := t.Context()
	node, err := openBank(ctx, dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close()) }()
	require.Eventually(t, func() bool {
		counts, err := node.Client.Counts(ctx)
		require.NoError(t, err)
		open := int64(0)
		for of, n := range counts {
			if !of.State.Terminal() {
				open += n
			}
		}
		return open == 0
	}, 2*time.Minute, 50*time.Millisecond)
	l := readLedger(t, dir)
	seen, turns, sends := map[string][]string{}, map[string]int{}, map[string]int{}
	for n := range accounts {
		key := accountName(n)
		state, _, err := purses.Read(ctx, node.Client, key)
		require.NoError(t, err)
		for i, name := range state.Applied {
			seen[name] = append(seen[name], key)
			if place, done := l.done[name]; done && l.payments[name].From == key {
				require.Equal(t, place, i+1, "the place of %s in account %s", name, key)
			}
		}
		turns[key], sends[key] = state.Turns, state.Sends
	}
	applied := 0
	for name, p := range l.payments {
		_, done := l.done[name]
		require.True(t, len(seen[name]) == 2 || len(seen[name]) == 0 && !done, "%s (done %t) was applied to %v", name, done,
			seen[name])
		if len(seen[name]) == 2 {
			require.ElementsMatch(t, []string{p.From, p.To}, seen[name])
			of := map[string]map[string]int{"turn": turns, "send": sends}[l.kinds[name]]
			of[p.From] += p.Amount
			of[p.To] -= p.Amount
			applied++
		}
	}
	for n := range accounts {
		require.Zero(t, turns[accountName(n)])
		require.Zero(t, sends[accountName(n)])
	}
	report, err := audit.Check(ctx, node.Client.Cluster(), audit.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	t.Logf("%d payments, %d acknowledged, %d applied", len(l.payments), len(l.done), applied)
}
