package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestActors(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, `placed
paid
alice has 300 cents, and 700 are due
alice 0
bob 300
cups 12
plates 6
cups 15
`, out.String())
}
