package main

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/futurestest"
)

func TestAPILimit(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "memory:", &out))
	require.Contains(t, out.String(), "acme: call 1\najax: call 1\napex: call 1\nacme: call 2\n")
	require.Contains(t, out.String(), "apex: call 5\n")
}

// TestRate measures the calls of a customer by the clock of the cluster.
func TestRate(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	var mu sync.Mutex
	var at []time.Time
	api := newAPI()
	cluster.Register(call.Bind(func(ctx context.Context, c Call) (string, error) {
		mu.Lock()
		at = append(at, cluster.Now())
		mu.Unlock()
		return api.call(ctx, c)
	}))
	require.NoError(t, cluster.Client.SetLaneKind(t.Context(), "api", limits))
	answers, err := callAll(t.Context(), cluster.Client, []string{"acme"}, 60)
	require.NoError(t, err)
	require.Len(t, answers, 60)
	const burst = 2 // a lane admits what is due within 50 ms
	for i := 20 + burst; i < len(at); i++ {
		require.Greater(t, at[i].Sub(at[i-20-burst]), time.Second-time.Millisecond, "call %d", i)
	}
	require.Less(t, at[len(at)-1].Sub(at[0]), 4*time.Second, "it is used up")
}
