package p2p

import (
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/connlimit"
)

func testTable(t *testing.T, l Limits) (*table, *clock.Virtual) {
	t.Helper()
	l, err := l.complete()
	require.NoError(t, err)
	virtual := clock.NewVirtual(time.Unix(1e9, 0))
	return newTable(l, virtual), virtual
}

func TestRateOfAPeer(t *testing.T) {
	t.Parallel()
	table, virtual := testTable(t, Limits{PeerRate: 2, PeerBurst: 3})
	share, release := table.use("a")
	defer release()
	for range 3 {
		require.NoError(t, table.pass(t.Context(), share, time.Second))
	}
	passed := make(chan error)
	go func() { passed <- table.pass(t.Context(), share, time.Second) }()
	require.Equal(t, 500*time.Millisecond, advance(t, virtual))
	require.NoError(t, <-passed)
	// A wait that is too long takes no turn from those that come later.
	require.ErrorIs(t, table.pass(t.Context(), share, time.Millisecond), ErrBusy)
	virtual.Advance(500 * time.Millisecond)
	require.NoError(t, table.pass(t.Context(), share, 0))
	other, done := table.use("b")
	defer done()
	require.NoError(t, table.pass(t.Context(), other, 0))
}

func TestSharesAreForgotten(t *testing.T) {
	t.Parallel()
	table, virtual := testTable(t, Limits{Peers: 10, PeerBurst: 2, PeerRate: 1})
	used, release := table.use("used")
	for i := range 1000 {
		share, release := table.use(peer.ID(fmt.Sprint("passer-by ", i)))
		require.NoError(t, table.pass(t.Context(), share, 0))
		release()
		require.LessOrEqual(t, len(table.shares), 20)
		virtual.Advance(time.Millisecond)
	}
	again, done := table.use("used")
	require.Same(t, used, again)
	done()
	release()
	// Whoever comes back soon has no new burst.
	share, release := table.use("back")
	require.NoError(t, table.pass(t.Context(), share, 0))
	require.NoError(t, table.pass(t.Context(), share, 0))
	release()
	share, release = table.use("back")
	require.ErrorIs(t, table.pass(t.Context(), share, 0), ErrBusy)
	release()
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	a, _ := start(t, nil)
	b, _ := start(t, nil)
	connect(t, a, b)
	_, err := a.Call(soon(t), b.ID(), []byte("x"))
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(NewCollector(a)))
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			values[family.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	require.Equal(t, 1.0, values["futura_p2p_calls_total"])
	require.Equal(t, 1.0, values["futura_p2p_peers"])
	require.Contains(t, values, "futura_p2p_streams_refused_total")
}

// TestPeersLeaveDescriptors has the connections of peers, with those whose peer is not known
// yet, leave more than half of the files that a process may have open.
func TestPeersLeaveDescriptors(t *testing.T) {
	t.Parallel()
	for descriptors, peers := range map[int]int{1: 1, 256: 64, 1024: 256, 4096: 1024, 1 << 20: 2048} {
		require.Equal(t, peers, peersWithin(descriptors), descriptors)
	}
	l, err := Limits{}.complete()
	require.NoError(t, err)
	require.LessOrEqual(t, l.Peers, max(1, connlimit.Descriptors()/4))
	l, err = Limits{Peers: 5000}.complete()
	require.NoError(t, err)
	require.Equal(t, 5000, l.Peers)
}
