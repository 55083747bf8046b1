package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/futura-run/futura/workers/wasm"
)

// TestMain is the command's own main where the executor or a test starts it as a
// process.
func TestMain(m *testing.M) {
	wasm.ChildMain()
	if os.Getenv(mainVariable) != "" {
		main()
	}
	os.Exit(runTests(m))
}

// runTests runs the tests with a directory of their own for compiled modules.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "futura-test-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// Go's own cache stays where it is: functions are compiled with it.
	if compiled, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
		if err := os.Setenv("GOCACHE", strings.TrimSpace(string(compiled))); err != nil {
			panic(err)
		}
	}
	for _, variable := range []string{cachesVariable, configurationVariable} {
		if err := os.Setenv(variable, dir); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// The environment's variables that name where a user's caches and configuration
// are.
const (
	cachesVariable        = "XDG_CACHE_HOME"
	configurationVariable = "XDG_CONFIG_HOME"
)

// shell runs the command on a store of its own.
type shell struct {
	t     *testing.T
	store string
}

func newShell(t *testing.T) *shell {
	return &shell{t, "embedded:" + filepath.Join(t.TempDir(), "store")}
}

func (s *shell) run(want int, in string, args ...string) (out, errOut string) {
	var o, e stacktest.Buffer
	code := run(context.Background(), append(args, "--store", s.store), strings.NewReader(in), &o, &e)
	require.Equal(s.t, want, code, "%v: %s%s", args, &o, &e)
	return o.String(), e.String()
}

func (s *shell) ok(args ...string) string {
	out, _ := s.run(exitOK, "", args...)
	return strings.TrimSpace(out)
}

// listed are the things of a list in JSON.
func listed[T any](t *testing.T, name, list string) []T {
	t.Helper()
	var got map[string][]T
	require.NoError(t, json.Unmarshal([]byte(list), &got))
	require.Contains(t, got, name)
	return got[name]
}

func TestLifeFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.ok("submit", "go:later", "--args", "x")
	require.Contains(t, s.ok("explain", id), "no_worker")
	require.Contains(t, s.ok("list", "--state", "ready"), id)
	require.Contains(t, s.ok("cancel", id, "--reason", "not wanted"), "cancelled")
	var got struct {
		State   string
		Failure struct{ Message string }
	}
	require.NoError(t, json.Unmarshal([]byte(s.ok("get", id, "--json")), &got))
	require.Equal(t, "failed", got.State)
	require.Equal(t, "not wanted", got.Failure.Message)
	s.run(exitFailed, "", "await", id)
	out, e := s.run(exitOK, "", "retry", "--failed")
	require.Equal(t, "0 retried\n", out)
	require.Contains(t, e, "left alone, as cancelled: 1")
	s.ok("retry", id)
	_, e = s.run(exitUsage, "", "delete", id)
	require.Contains(t, e, "cancel it first")
	s.ok("cancel", id)
	s.ok("delete", id)
	s.run(exitNotFound, "", "get", id)
	require.Contains(t, s.ok("check"), "0 problems")
	require.Contains(t, s.ok("workers"), "WORKER")
}

func TestMistakesHaveExitCodes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(file, []byte("not a module"), 0o600))
	for _, c := range []struct {
		want int
		says string
		args []string
	}{
		{exitUsage, "accepts 1 arg", []string{"submit"}},
		{exitUsage, "unknown flag", []string{"list", "--what"}},
		{exitUsage, "not a future id", []string{"get", "123"}},
		{exitUsage, "--env", []string{"submit", "go:f", "--env", "X"}},
		{exitUsage, "exclude", []string{"submit", "go:f", "--args", "a", "--args-file", "b"}},
		{exitUsage, "bad name", []string{"submit", "f"}},
		{exitUsage, "not a WebAssembly module", []string{"function", "put", file}},
		{exitNotFound, "store one first", []string{"submit", "wasm:nothing"}},
		{exitNotFound, "not found", []string{"await", "01995b4e-6f3a-7c1e-9d2b-0123456789ab"}},
	} {
		_, e := s.run(c.want, "", c.args...)
		require.Contains(t, e, c.says, c.args)
	}
	s.ok("submit", "go:f", "--key", "k", "--args", "1")
	_, e := s.run(exitUsage, "", "submit", "go:f", "--key", "k", "--args", "2")
	require.Contains(t, e, "in use")
	id := s.ok("submit", "go:nobody")
	s.run(exitTimeout, "", "await", id, "--timeout", "10ms")
	elsewhere := &shell{t, "nope:"}
	elsewhere.run(exitUsage, "", "list")
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for range 3 {
		s.ok("submit", "go:wrong")
	}
	s.ok("submit", "go:wrong", "--delay", "1h")
	keep := s.ok("submit", "go:right", "--queue", "other")
	require.Equal(t, "3 cancelled\n0 asked to stop", s.ok("cancel", "--function", "go:wrong", "--state", "ready"))
	require.JSONEq(t, `{"cancelled":1,"requested":0,"of_batches":0}`, s.ok("cancel", "--queue", "default", "--json"))
	require.Equal(t, "0 deleted", s.ok("delete", "--state", "realized"))
	require.Equal(t, "4 deleted", s.ok("delete", "--function", "go:wrong"))
	require.Contains(t, s.ok("get", keep), "ready")
	for _, args := range [][]string{
		{"cancel"}, {"delete"}, {"cancel", keep, "--queue", "other"}, {"cancel", "--state", "failed"},
		{"delete", "--state", "ready"}, {"delete", "--state", "gone"}, {"cancel", "--queue", "a b"},
	} {
		s.run(exitUsage, "", args...)
	}
	require.Contains(t, s.ok("check"), "0 problems")
}

// TestLookingMakesNothing holds that a mistaken --store or --cluster is told, and
// is not a new and empty cluster.
func TestLookingMakesNothing(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := "01995b4e-6f3a-7c1e-9d2b-0123456789ab"
	looks := [][]string{
		{"get", id}, {"list"}, {"await", id}, {"explain", id}, {"cancel", id}, {"retry", id}, {"retry", "--failed"},
		{"delete", id}, {"function", "list"}, {"workers"}, {"check"}, {"inspect", "ready"},
		{"backup", filepath.Join(t.TempDir(), "backup")},
	}
	stores := append(looks, []string{"migrate", "--from", s.store, "--to", newShell(t).store},
		[]string{"token", "create", "ci"}, []string{"cluster", "list"})
	for _, args := range stores {
		out, e := s.run(exitNotFound, "", args...)
		require.Empty(t, out, args)
		require.Contains(t, e, "there is no directory", args)
		require.Contains(t, e, "create it with futura dev", args)
	}
	dir := strings.TrimPrefix(s.store, "embedded:")
	require.NoDirExists(t, dir)
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, args := range looks {
		_, e := s.run(exitNotFound, "", args...)
		require.Contains(t, e, "holds no store", args)
	}
	require.NoError(t, os.Remove(dir), "nothing was made in it")
	s.ok("submit", "go:later")
	for range 2 {
		for _, args := range looks {
			_, e := s.run(exitNotFound, "", append(args, "--cluster", "elsewhere")...)
			require.Contains(t, e, `cluster "elsewhere": not found in this store`, args)
		}
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	for _, cmd := range (&app{}).root().Commands() {
		if cmd.HasSubCommands() {
			for _, sub := range cmd.Commands() {
				require.NotEmpty(t, sub.Example, sub.CommandPath())
			}
			continue
		}
		require.NotEmpty(t, cmd.Example, cmd.CommandPath())
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
	}
}

func TestDocsHaveTheExitCodes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/command.md")
	require.NoError(t, err)
	for _, code := range []int{
		exitOK, exitFailed, exitUsage, exitNotFound, exitStore, exitTimeout, exitInterrupted,
	} {
		require.Contains(t, string(page), fmt.Sprintf("\n| %d | ", code))
		require.Regexp(t, fmt.Sprintf(`\b%d\b`, code), (&app{}).root().Long)
	}
}
