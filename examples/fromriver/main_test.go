package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFromRiver(t *testing.T) {
	t.Parallel()
	store := "embedded:" + t.TempDir()
	for range 2 {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), store, &out))
		require.Equal(t, "[bear tiger whale]\n", out.String())
	}
}
