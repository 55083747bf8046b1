package remote

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

// cluster is the data model over a store that is served, as the serving process
// and as another one have it.
type cluster struct {
	here, there *fdbmodel.Cluster
	client      *Database
	proxy       *proxy
	gone        chan string
}

func newCluster(t *testing.T, grace time.Duration) *cluster {
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	c := &cluster{gone: make(chan string, 10)}
	at, _ := serve(t, store, ServerOptions{Grace: grace, OnDisconnect: func(id string) { c.gone <- id }})
	c.proxy = newProxy(t, at)
	c.client = dial(t, c.proxy.at)
	var err error
	config := layout.Config{Heartbeat: time.Second, DeadAfter: time.Hour}
	c.here, err = fdbmodel.Open(t.Context(), Share(store), "test", fdbmodel.Options{Config: config})
	require.NoError(t, err)
	c.there, err = fdbmodel.Open(t.Context(), c.client, "test", fdbmodel.Options{})
	require.NoError(t, err)
	return c
}

const claimed = 20

// claim submits futures and has a worker of the other process take them.
func (c *cluster) claim(t *testing.T) (*fdbmodel.Registration, []fdbmodel.Completion) {
	c.submit(t)
	return c.take(t, c.there)
}

func (c *cluster) submit(t *testing.T) {
	subs := make([]fdbmodel.Submission, claimed)
	for i := range subs {
		subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:noop", MaxRetries: 3}}
	}
	_, err := c.here.Submit(t.Context(), subs)
	require.NoError(t, err)
}

// take has a new worker of one of the processes claim all.
func (c *cluster) take(t *testing.T, of *fdbmodel.Cluster) (*fdbmodel.Registration, []fdbmodel.Completion) {
	ctx := t.Context()
	w, err := of.Register(ctx, layout.WorkerInfo{
		Functions: []string{"go:noop"}, Capacity: layout.Resources{Slots: claimed},
	})
	require.NoError(t, err)
	var done []fdbmodel.Completion
	for len(done) < claimed {
		a, err := w.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: claimed}, Max: claimed})
		require.NoError(t, err)
		require.NotEmpty(t, a.Futures)
		for i := range a.Futures {
			done = append(done, fdbmodel.Completion{Future: &a.Futures[i], Result: &layout.Result{Value: []byte(w.ID())}})
		}
	}
	return w, done
}

// promote waits for what was reaped to be due.
func (c *cluster) promote(t *testing.T) {
	promoted := 0
	require.Eventually(t, func() bool {
		n, _, err := maintenance.Of(c.here).PromoteDue(t.Context())
		require.NoError(t, err)
		promoted += n
		return promoted == claimed
	}, patience, time.Millisecond)
}

func requireAll(t *testing.T, want fdbmodel.Outcome, got []fdbmodel.Outcome) {
	require.Len(t, got, claimed)
	for _, outcome := range got {
		require.Equal(t, want, outcome)
	}
}

func (c *cluster) requireSound(t *testing.T) {
	report, err := audit.Check(t.Context(), c.here, audit.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

func TestLostConnectionEndsItsClaims(t *testing.T) {
	t.Parallel()
	c := newCluster(t, time.Millisecond)
	first, held := c.claim(t)
	require.Equal(t, c.client.Traits().Connection, first.Info().Connection)
	c.proxy.setRefuse(true)
	c.proxy.cut()
	require.Equal(t, c.client.Traits().Connection, <-c.gone)
	workers, reaped, err := admin.ReapConnection(t.Context(), c.here, c.client.Traits().Connection)
	require.NoError(t, err)
	require.Equal(t, 1, workers)
	require.Equal(t, claimed, reaped)

	c.promote(t)
	second, again := c.take(t, c.here)
	c.proxy.setRefuse(false)
	outcomes, err := first.Finish(t.Context(), held)
	require.NoError(t, err)
	requireAll(t, fdbmodel.Lost, outcomes)
	_, err = first.Claim(t.Context(), fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
	require.ErrorIs(t, err, fdbmodel.ErrReaped)
	_, err = first.Heartbeat(t.Context(), layout.Heartbeat{})
	require.ErrorIs(t, err, fdbmodel.ErrReaped)

	outcomes, err = second.Finish(t.Context(), again)
	require.NoError(t, err)
	requireAll(t, fdbmodel.Applied, outcomes)
	c.requireSound(t)
}

func TestConnectionThatComesBackKeepsItsClaims(t *testing.T) {
	t.Parallel()
	c := newCluster(t, time.Hour)
	worker, held := c.claim(t)
	for range 5 {
		before, _, err := c.client.current()
		require.NoError(t, err)
		c.proxy.cut()
		if before != nil {
			<-before.broken
		}
		_, err = worker.Heartbeat(t.Context(), layout.Heartbeat{})
		require.NoError(t, err)
	}
	outcomes, err := worker.Finish(t.Context(), held)
	require.NoError(t, err)
	requireAll(t, fdbmodel.Applied, outcomes)
	require.Empty(t, c.gone)
	c.requireSound(t)
}

func TestClosedDatabaseIsGoneAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, time.Hour)
	require.NoError(t, c.client.Close())
	require.Equal(t, c.client.Traits().Connection, <-c.gone)
}

// TestALostConnectionEndsTheRoleOfItsJanitor, and not that of another one.
func TestALostConnectionEndsTheRoleOfItsJanitor(t *testing.T) {
	t.Parallel()
	c := newCluster(t, time.Hour)
	there, err := fdbmodel.Open(t.Context(), c.client, c.here.Name(), fdbmodel.Options{})
	require.NoError(t, err)
	_, held, err := maintenance.Of(there).Acquire(t.Context(), "no worker", nil, 1)
	require.NoError(t, err)
	require.True(t, held)
	for i, connection := range []string{"nobody", c.client.Traits().Connection} {
		_, _, err = admin.ReapConnection(t.Context(), c.here, connection)
		require.NoError(t, err)
		record, _, err := maintenance.Of(c.here).Present(t.Context())
		require.NoError(t, err)
		require.Equal(t, i == 1, record == nil)
	}
}

func TestReapConnectionOfNobody(t *testing.T) {
	t.Parallel()
	c := newCluster(t, time.Hour)
	_, _ = c.registerBoth(t)
	for _, connection := range []string{"", "nobody"} {
		workers, reaped, err := admin.ReapConnection(t.Context(), c.here, connection)
		require.NoError(t, err)
		require.Zero(t, workers+reaped)
	}
	members, err := c.here.Workers(t.Context())
	require.NoError(t, err)
	require.Len(t, members, 2)
}

// registerBoth registers a worker in each process.
func (c *cluster) registerBoth(t *testing.T) (here, there *fdbmodel.Registration) {
	info := layout.WorkerInfo{Functions: []string{"go:noop"}, Capacity: layout.Resources{Slots: 1}}
	here, err := c.here.Register(t.Context(), info)
	require.NoError(t, err)
	there, err = c.there.Register(t.Context(), info)
	require.NoError(t, err)
	require.Equal(t, here.Info().Opening, there.Info().Opening)
	require.NotEmpty(t, here.Info().Opening)
	return here, there
}

func TestWorkersOfBothProcessesLiveTogether(t *testing.T) {
	t.Parallel()
	c := newCluster(t, time.Hour)
	_, there := c.registerBoth(t)
	// A later registration of the process that has the store open must not take
	// the other process's worker for one of an earlier opening.
	again, err := fdbmodel.Open(t.Context(), c.here.Database(), "test", fdbmodel.Options{})
	require.NoError(t, err)
	_, err = again.Register(t.Context(), layout.WorkerInfo{Capacity: layout.Resources{Slots: 1}})
	require.NoError(t, err)
	_, err = there.Heartbeat(t.Context(), layout.Heartbeat{})
	require.NoError(t, err)
}

// TestSubmitWakesWorkersOfTheServingProcess submits over the connection what an
// idle worker of the serving process waits for.
func TestSubmitWakesWorkersOfTheServingProcess(t *testing.T) {
	t.Parallel()
	c := newCluster(t, time.Hour)
	local := kv.TraitsOf(c.here.Database()).Exclusive
	require.False(t, local)
	here, _ := c.registerBoth(t)
	watch, err := here.EnterIdleRing(t.Context(), fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}})
	require.NoError(t, err)
	_, err = c.there.Submit(context.Background(), []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:noop"}}})
	require.NoError(t, err)
	<-watch.Done()
	require.NoError(t, watch.Err())
}
