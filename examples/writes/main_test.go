package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

func TestWrites(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), "memory:", &out))
	require.Equal(t, `users: ada, one of 3
orders: tea, one of 2
users: grace, one of 3
users: the row is empty
orders: milk, one of 2
`, out.String())
}

// TestRowsOfOneTableAreWrittenTogether runs the handler in a cluster of the test.
func TestRowsOfOneTableAreWrittenTogether(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	cluster.RegisterBundle(writes.Bind(insert))
	require.NoError(t, writes.Setup(t.Context(), cluster.Client))
	tasks, err := writes.SubmitAll(t.Context(), cluster.Client, []Row{{"users", "ada"}, {"users", "grace"}})
	require.NoError(t, err)
	together, err := futures.AwaitAll(t.Context(), tasks)
	require.NoError(t, err)
	require.Equal(t, []int{2, 2}, together)
}
