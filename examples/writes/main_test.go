package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
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
