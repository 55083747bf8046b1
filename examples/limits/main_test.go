package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), "memory:", &out))
	require.Equal(t, `pending: 50 running: 4
too many pending at once: 51 of 50; in parts they fit: true
answered: 200
never more than 4 at a time: true
`, out.String())
}
