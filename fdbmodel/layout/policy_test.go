package layout_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

func TestPolicyOfNewFutures(t *testing.T) {
	t.Parallel()
	p := layout.Policy{DefaultTimeout: time.Minute, MaxTimeout: time.Hour, MaxMemory: 100, MaxPriority: 9}
	for name, c := range map[string]struct {
		asks layout.Spec
		gets time.Duration
		says string
	}{
		"nothing": {layout.Spec{}, time.Minute, ""},
		"all there is": {layout.Spec{Timeout: time.Hour, Priority: 9, Requirements: layout.Requirements{RAM: 100}},
			time.Hour, ""},
		"more time":     {layout.Spec{Timeout: 2 * time.Hour}, 0, "timeout of 2h0m0s: this cluster allows at most 1h0m0s"},
		"more memory":   {layout.Spec{Requirements: layout.Requirements{RAM: 101}}, 0, "101 bytes of memory"},
		"more priority": {layout.Spec{Priority: 10}, 0, "priority 10: this cluster allows at most 9"},
	} {
		err := p.Complete(&c.asks)
		if c.says != "" {
			require.ErrorIs(t, err, layout.ErrBadSpec, name)
			require.ErrorContains(t, err, c.says, name)
			require.ErrorContains(t, err, "futura cluster set", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.gets, c.asks.Timeout, name)
	}
	var none layout.Policy
	free := layout.Spec{Priority: 255, Timeout: 1e6 * time.Hour, Requirements: layout.Requirements{RAM: 1 << 60}}
	require.NoError(t, none.Complete(&free))
	require.Zero(t, none.Timeout(0))
	require.Zero(t, none.Memory(0))
	bounded := layout.Policy{MaxTimeout: time.Hour}
	require.Equal(t, time.Hour, bounded.Timeout(0), "none is longer than the longest")
}

func TestTheStricterPolicyHolds(t *testing.T) {
	t.Parallel()
	worker := layout.Policy{DefaultTimeout: 2 * time.Hour, MaxMemory: 50, MaxOutput: 7}
	cluster := layout.Policy{DefaultTimeout: time.Minute, MaxTimeout: time.Hour, DefaultMemory: 80, MaxMemory: 100}
	both := worker.Within(cluster)
	require.Equal(t, layout.Policy{
		DefaultTimeout: time.Hour, MaxTimeout: time.Hour, DefaultMemory: 50, MaxMemory: 50, MaxOutput: 7,
	}, both)
	require.NoError(t, both.Validate())
	require.EqualValues(t, 50, both.Memory(1000))
	require.EqualValues(t, 10, both.Memory(10))
	require.EqualValues(t, 50, both.Memory(0))
}

func TestPoliciesThatContradictThemselves(t *testing.T) {
	t.Parallel()
	for _, p := range []layout.Policy{
		{MaxTimeout: -1}, {MaxPriority: 256}, {MaxPriority: -1}, {DefaultTimeout: 2, MaxTimeout: 1},
		{DefaultMemory: 2, MaxMemory: 1}, {MaxOutput: -1},
	} {
		config := layout.Config{Policy: p}.WithDefaults()
		require.ErrorIs(t, config.Validate(), layout.ErrBadConfig, "%+v", p)
	}
}

func TestAHeartbeatThatOverflowsIsRefused(t *testing.T) {
	t.Parallel()
	for _, config := range []layout.Config{
		{Heartbeat: 1 << 62, DeadAfter: time.Second}, {Heartbeat: 1 << 62}, {Heartbeat: math.MaxInt64},
		{Heartbeat: time.Second, DeadAfter: 2*time.Second - 1},
	} {
		require.ErrorIs(t, config.WithDefaults().Validate(), layout.ErrBadConfig, "%+v", config)
	}
	require.NoError(t, layout.Config{Heartbeat: time.Second, DeadAfter: 2 * time.Second}.WithDefaults().Validate())
}
