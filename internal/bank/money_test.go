package bank

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
)

// roundsOfBank is after how many rounds all processes are killed, everything is checked, and a new bank opens.
const roundsOfBank = 25

// rounds returns how many rounds a test has.
func rounds(t *testing.T, short, normal, long int) int {
	if given, err := strconv.Atoi(os.Getenv("FUTURA_ROUNDS")); err == nil {
		return given
	}
	switch {
	case os.Getenv("FUTURA_LONG") == "1":
		return long
	case testing.Short():
		return short
	}
	return normal
}

// source returns the random choices of a test. FUTURA_SEED=N repeats them, as far as processes do.
func source(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if given, err := strconv.ParseUint(os.Getenv("FUTURA_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("FUTURA_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestMoneyOfKilledProcesses has 32 clients send money among 200 accounts on an embedded store that four processes
// share, of which one has the store alone at first, and strikes these.
func TestMoneyOfKilledProcesses(t *testing.T) {
	t.Parallel()
	random := source(t)
	for left := rounds(t, 5, 10, 1000); left > 0; left -= roundsOfBank {
		dir, err := os.MkdirTemp("", "fb") // short enough for a socket
		require.NoError(t, err)
		c := &crew{t: t, random: random, store: "embedded:" + filepath.Join(dir, "store"), cluster: "bank",
			journal: filepath.Join(dir, "journal")}
		c.run(min(left, roundsOfBank))
		require.NoError(t, os.RemoveAll(dir)) // a failure leaves it there
	}
}

// run opens a bank, strikes it, and checks it.
func (c *crew) run(rounds int) {
	c.struck = map[string]int{}
	start := time.Now()
	c.t.Logf("store %s, journal %s", c.store, c.journal)
	c.startAll()
	for range rounds {
		c.round()
	}
	c.killAll()
	struck := time.Now()
	h := c.check()
	c.t.Logf("%d rounds of %.2f s, checked in %.1f s: %s", rounds, struck.Sub(start).Seconds()/float64(rounds),
		time.Since(struck).Seconds(), c.summary(h))
}

// check has all payments end, with a clock that is ahead of what others have delayed, and checks everything.
func (c *crew) check() *history {
	ctx := context.WithoutCancel(c.t.Context())
	ahead := &movedClock{}
	ahead.ahead.Store(3 * farthest)
	n, err := openNode(ctx, c.store, c.cluster, ahead)
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, n.close(ctx)) }()
	before, err := readHistory(c.journal)
	require.NoError(c.t, err)
	c.settle(ctx, n, before)
	h, err := readHistory(c.journal)
	require.NoError(c.t, err)
	all := make([]*account, accounts)
	for i := range all {
		a, _, err := kept.Read(ctx, n.client, accountKey(i))
		require.NoError(c.t, err)
		all[i] = &a
	}
	require.NoError(c.t, errors.Join(checkSum(all), checkLedger(h, all), checkAccounts(h)))
	report, err := audit.Check(ctx, n.client.Cluster(), audit.Options{})
	require.NoError(c.t, err)
	require.Empty(c.t, report.Problems)
	return before
}

// settle has what killed clients left open end, as a client would that has the same keys.
func (c *crew) settle(ctx context.Context, n *node, h *history) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	j, err := openJournal(c.journal, func() {})
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, j.file.Close()) }()
	one := &client{node: n, journal: j}
	var open sync.WaitGroup
	errs := make(chan error, len(h.payments))
	for _, p := range h.payments {
		if !p.over() {
			open.Go(func() { errs <- one.finish(ctx, p) })
		}
	}
	open.Wait()
	close(errs)
	for err := range errs {
		require.NoError(c.t, err)
	}
}
