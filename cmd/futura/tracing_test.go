package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTracesAreOnByTheEnvironment submits with exporters, with none, and with one that there is not.
func TestTracesAreOnByTheEnvironment(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	for _, test := range []struct {
		set  string
		code int
		says string
	}{
		{"OTEL_TRACES_EXPORTER=console", exitOK, `"Name":"create go:f"`},
		{"OTEL_TRACES_EXPORTER=none", exitOK, ""},
		{"OTEL_TRACES_EXPORTER=zipkin", exitUsage, "OTEL_TRACES_EXPORTER"},
	} {
		var said bytes.Buffer
		cmd := c.command("submit", "go:f")
		cmd.Env, cmd.Stderr = append(cmd.Env, test.set), &said
		_ = cmd.Run() // the code says it
		require.Equal(t, test.code, cmd.ProcessState.ExitCode(), "%s: %s", test.set, &said)
		require.Contains(t, said.String(), test.says)
		require.Equal(t, test.says == "", said.Len() == 0, "%s", &said)
	}
}
