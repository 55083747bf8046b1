package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommandsTakeTurns runs several commands at once on a store that no process
// serves.
func TestCommandsTakeTurns(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	commands := make([]*exec.Cmd, 6)
	said := make([]bytes.Buffer, len(commands))
	for i := range commands {
		commands[i] = c.command("submit", "go:nobody")
		commands[i].Stderr = &said[i]
		require.NoError(t, commands[i].Start())
	}
	for i, cmd := range commands {
		require.NoError(t, cmd.Wait(), "%s", &said[i])
	}
	require.Len(t, strings.Split(c.ok("list"), "\n"), 1+len(commands))

	// What is left by a process that was killed while it served the store misleads
	// nobody.
	c.dev()()
	for i := range commands {
		commands[i] = c.command("submit", "go:nobody")
		require.NoError(t, commands[i].Start())
	}
	for _, cmd := range commands {
		require.NoError(t, cmd.Wait())
	}
	require.Contains(t, c.ok("check"), "12 futures")
}

// fullDevice takes no output.
type fullDevice struct{}

func (fullDevice) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestOutputThatCannotBeWritten requires an error of each command whose results
// are lost.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.ok("submit", "go:nobody")
	for _, args := range [][]string{
		{"--help"}, {"--version"}, {"version"}, {"list"}, {"list", "--json"}, {"get", id}, {"explain", id}, {"inspect", id},
		{"function", "list"}, {"workers"}, {"check"}, {"cluster", "list"}, {"cancel", id}, {"submit", "go:f"},
	} {
		var e bytes.Buffer
		code := run(t.Context(), append(args, "--store", s.store), os.Stdin, fullDevice{}, &e)
		if args[0] == "function" {
			continue // it has nothing to print
		}
		require.NotZero(t, code, args)
		require.Contains(t, e.String(), "no space left", args)
	}
}
