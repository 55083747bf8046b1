package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/futurestest"
)

func TestOrders(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "memory:", &out))
	require.Equal(t, "order 17 costs 6\norder 18 costs 5\norder 19: error in attempt 1: coal is sold out\n"+
		"Ada owes 20\nshipped 17\n", out.String())
}

func TestPrice(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	cluster.Register(price.Bind(priceOf))
	future, err := price.Submit(t.Context(), cluster.Client, Order{"17", "tea", 2})
	require.NoError(t, err)
	amount, err := future.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, 6, amount)
}
