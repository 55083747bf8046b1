package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnique(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), "memory:", &out))
	require.Equal(t, `synced ada true true
version 1 replaces one: false
version 2 replaces one: true
version 3 replaces one: true
indexed /tea, version 3
report of Monday; the next one is refused: other arguments, realized, for 20h0m0s
welcome, grace@example.com
she had her welcome
`, out.String())
}
