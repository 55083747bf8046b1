package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPipeline(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), "memory:", &out))
	require.Equal(t, `ada owes 16
bob owes 17
order 3 is parked: coal is sold out
`, out.String())
}
