package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLogs(t *testing.T) {
	t.Parallel()
	const lines = 100_000
	read, write := io.Pipe()
	go func() {
		for i := range lines {
			fmt.Fprintf(write, "line %d that is long enough to be one of a log\n", i)
			if i%(lines/4) == 0 {
				fmt.Fprintf(write, "ERROR %d\n", i)
			}
		}
		_ = write.Close()
	}()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "ERROR", read, &out))
	require.Equal(t, "4 lines:\nERROR 0\nERROR 25000\nERROR 50000\nERROR 75000\n", out.String())

	out.Reset()
	require.NoError(t, run(t.Context(), "ERROR", strings.NewReader("all is well\n"), &out))
	require.Equal(t, "0 lines:\n", out.String())
}
