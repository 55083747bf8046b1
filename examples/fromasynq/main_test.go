package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFromAsynq(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "embedded:"+t.TempDir(), &out))
	require.Equal(t, "sent welcome to user 42\nresized to 13 bytes\nthe reminder is delayed\n", out.String())
}
