//go:build fdb

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/fdbtest"
)

// long reports whether the long variant of the tests was asked for.
func long() bool { return os.Getenv("FUTURA_LONG") == "1" }

// source returns the random choices of a test. FUTURA_SEED=N repeats them.
func source(t *testing.T) *rand.Rand {
	seed := uint64(1)
	if long() {
		seed = rand.Uint64()
	}
	if given, err := strconv.ParseUint(os.Getenv("FUTURA_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("FUTURA_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestProcessesThatDieAndPause kills and stops workers and clients of a cluster
// of processes.
func TestProcessesThatDieAndPause(t *testing.T) {
	t.Parallel()
	blows := 6
	if long() {
		blows = 200
	}
	random := source(t)
	c := newCrew(t, shared, "processes", 4, 2)
	c.progress(100)
	for n := range blows {
		c.strike(n, random)
		c.progress(50)
	}
	c.finish()
}

// TestFaultsOfTheClientLibrary has FoundationDB's own library inject delays, lost
// replies and unknown results into all workers and clients.
func TestFaultsOfTheClientLibrary(t *testing.T) {
	t.Parallel()
	blows := 3
	if long() {
		blows = 60
	}
	random := source(t)
	c := newCrew(t, shared, "buggify", 3, 2, fdbtest.BuggifyVariable+"=1")
	c.progress(50)
	for n := range blows {
		c.strike(n, random)
		c.progress(20)
	}
	c.finish()
}

// strike kills a worker, stops and continues one, or kills a client.
func (c *crew) strike(n int, random *rand.Rand) {
	worker, client := random.IntN(len(c.workers)), random.IntN(len(c.clients))
	switch n % 3 {
	case 0:
		c.workers[worker].kill()
		c.workers[worker] = c.start(roleWorker)
	case 1:
		paused := c.workers[worker]
		paused.signal(c.t, syscall.SIGSTOP)
		c.declaredDead(paused.name)
		paused.signal(c.t, syscall.SIGCONT)
	case 2:
		c.clients[client].kill()
		c.clients[client] = c.start(roleClient)
	}
}

// TestServerThatDiesWhileClaimsRun kills the only server while 1,000 futures are
// claimed, and starts it again.
func TestServerThatDiesWhileClaimsRun(t *testing.T) {
	t.Parallel()
	const claims = 1000
	server := ownServer(t, 1)
	c := newCrew(t, server, "restart", 4, 0)
	submissions := make([]fdbmodel.Submission, claims)
	for i := range submissions {
		submissions[i] = fdbmodel.Submission{
			Args: fmt.Appendf(nil, "claim-%d", i), Spec: layout.Spec{Function: "go:" + fnHeld, MaxRetries: 3},
		}
	}
	submitted, err := c.cluster.Submit(c.ctx, submissions)
	require.NoError(t, err)
	for i, s := range submitted {
		c.ledger.submitted[s.ID.String()] = string(submissions[i].Args)
	}
	total := func(state layout.State) int64 {
		counts, err := c.cluster.Counts(c.ctx)
		require.NoError(t, err)
		return counts.Total(state)
	}
	c.await("the claims of most", func() bool { return total(layout.Claimed) > claims/2 })
	for range 2 {
		server.Kill(0)
		require.NoError(t, server.Restart(0))
		// It is back once it answers.
		total(layout.Claimed)
	}
	c.letGo()
	c.finish()
}

// TestOneOfThreeServers kills one server of three after the other under load, and
// starts it again.
func TestOneOfThreeServers(t *testing.T) {
	t.Parallel()
	rounds := 1
	if long() {
		rounds = 20
	}
	server := ownServer(t, 3)
	c := newCrew(t, server, "three", 3, 2)
	c.progress(100)
	for n := range rounds {
		server.Kill(n % 3)
		c.progress(100)
		require.NoError(t, server.Restart(n%3))
		c.progress(50)
	}
	c.finish()
}

// ownServer starts a cluster of the test's own, or skips it.
func ownServer(t *testing.T, processes int) *fdbtest.Server {
	shared.ClusterFile(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server, err := fdbtest.StartMany(ctx, processes)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}
