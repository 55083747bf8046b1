package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/stretchr/testify/require"
)

// mainVariable makes the test's binary the command.
const mainVariable = "FUTURA_TEST_MAIN"

// terminal runs the command as processes of its own, in a directory of its own.
type terminal struct {
	t     *testing.T
	dir   string
	store string
}

func newTerminal(t *testing.T) *terminal {
	dir := t.TempDir()
	return &terminal{t, dir, "embedded:" + filepath.Join(dir, "store")}
}

func (c *terminal) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), mainVariable+"=1", "FUTURA_STORE="+c.store)
	return cmd
}

// run requires an exit code.
func (c *terminal) run(want int, in string, args ...string) (out, errOut string) {
	c.t.Helper()
	var o, e bytes.Buffer
	cmd := c.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(c.t, err)
	}
	require.Equal(c.t, want, cmd.ProcessState.ExitCode(), "%v: %s%s", args, &o, &e)
	return o.String(), e.String()
}

func (c *terminal) ok(args ...string) string {
	c.t.Helper()
	out, _ := c.run(exitOK, "", args...)
	return strings.TrimSpace(out)
}

// put stores a module under an alias.
func (c *terminal) put(alias string, module []byte) string {
	file := filepath.Join(c.dir, alias+".wasm")
	require.NoError(c.t, os.WriteFile(file, module, 0o600))
	return c.ok("function", "put", file, "--alias", alias)
}

// dev serves the store by a process of its own, which kill ends as kill -9 does.
func (c *terminal) dev(args ...string) (kill func()) {
	cmd := c.command(append([]string{"dev", "--listen", "127.0.0.1:0", "--json"}, args...)...)
	log := &stacktest.Buffer{}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, cmd.Start())
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c.t.Cleanup(kill)
	var e endpoint
	require.NoError(c.t, json.NewDecoder(out).Decode(&e), "%s", log)
	require.Equal(c.t, cmd.Process.Pid, e.PID)
	return kill
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.put("trap", trapping())
	c.put("spin", spinning())
	text := filepath.Join(c.dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("no module"), 0o600))
	nosy := filepath.Join(c.dir, "nosy")
	imports := bytes.ReplaceAll(trapping(), []byte("wasi_snapshot"), []byte("nosy_snapshot"))
	require.NoError(t, os.WriteFile(nosy, imports, 0o600))
	big := filepath.Join(c.dir, "big")
	require.NoError(t, os.WriteFile(big, make([]byte, 64<<20+1), 0o600))
	waits := c.ok("submit", "go:nobody")
	for _, test := range []struct {
		want int
		says string
		args []string
	}{
		{exitOK, "", []string{"version"}},
		{exitOK, "", []string{"--version"}},
		{exitOK, "", []string{"--help"}},
		{exitFailed, "unreachable", []string{"submit", "wasm:trap", "--max-retries", "0", "--wait"}},
		{exitFailed, "limit of 100ms", []string{"submit", "wasm:spin", "--timeout", "100ms", "--max-retries", "0", "--wait"}},
		{exitUsage, `unknown command "nothing" for "futura"`, []string{"nothing"}},
		{exitUsage, "did you mean submit?", []string{"sumbit"}},
		{exitUsage, `unknown command "remove" for "futura function"`, []string{"function", "remove"}},
		{exitUsage, "received 0: use futura submit FUNCTION", []string{"submit"}},
		{exitUsage, "--key is empty", []string{"submit", "go:f", "--key", ""}},
		{exitUsage, "--key is empty", []string{"batch", "submit", "--function", "f", "a", "--key", ""}},
		{exitUsage, "--cluster is empty", []string{"list", "--cluster", ""}},
		{exitUsage, "about a --file", []string{"batch", "submit", "--function", "f", "a", "--format", "csv"}},
		{exitUsage, "unknown flag: --what", []string{"list", "--what"}},
		{exitUsage, `--priority "256": use a whole number from 0 to 255`, []string{"submit", "go:f", "--priority", "256"}},
		{exitUsage, `--delay "soon": use a duration`, []string{"submit", "go:f", "--delay", "soon"}},
		{exitUsage, "none may be negative", []string{"submit", "go:f", "--cpu", "-1"}},
		{exitUsage, "--delay -1s is negative", []string{"submit", "go:f", "--delay", "-1s"}},
		{exitUsage, "--timeout -1s is negative", []string{"await", waits, "--timeout", "-1s"}},
		{exitUsage, "--batch-worker-wait -1s is negative", []string{"dev", "--batch-worker-wait", "-1s"}},
		{exitUsage, "--queue is empty", []string{"worker", "--queue", ""}},
		{exitUsage, "--slots 0: use 1 or more", []string{"worker", "--slots", "0"}},
		{exitUsage, "--slots 0: use 1 or more", []string{"dev", "--slots", "0"}},
		{exitUsage, "--module-memory -1", []string{"worker", "--module-memory", "-1"}},
		{exitUsage, "use 1 to 4294967296 bytes", []string{"dev", "--module-memory", "4294967297", "--listen", "127.0.0.1:0"}},
		{exitUsage, "use 0 to 10000", []string{"submit", "go:f", "--max-retries", "-1"}},
		{exitUsage, "use blocked, ready, delayed", []string{"list", "--state", "running"}},
		{exitUsage, "--cursor", []string{"list", "--cursor", "zz"}},
		{exitUsage, "--limit 0: use 1 to 1000", []string{"list", "--limit", "0"}},
		{exitUsage, "queue", []string{"list", "--queue", "no such name"}},
		{exitUsage, "bad name", []string{"list", "--cluster", "No Such Name"}},
		{exitUsage, "no such file", []string{"submit", "go:f", "--args-file", filepath.Join(c.dir, "none")}},
		{exitUsage, "big has more than 67108864 bytes", []string{"submit", "go:f", "--args-file", big}},
		{exitUsage, "not a WebAssembly module", []string{"function", "put", text}},
		{exitUsage, `may import only from "wasi_snapshot_preview1"`, []string{"function", "put", nosy}},
		{exitUsage, "use memory:", []string{"list", "--store", "nowhere:"}},
		{exitNotFound, "store one first", []string{"submit", "wasm:none"}},
		{exitNotFound, "not found", []string{"explain", "01995b4e-6f3a-7c1e-9d2b-0123456789ab"}},
		{exitStore, "text", []string{"list", "--store", "embedded:" + filepath.Join(text, "store")}},
		{exitTimeout, waits + " is not over, but ready. No worker", []string{"await", waits, "--timeout", "1ms"}},
	} {
		out, e := c.run(test.want, "", test.args...)
		require.Contains(t, e, test.says, test.args)
		if test.want == exitOK {
			require.NotEmpty(t, out, test.args)
		} else {
			require.Contains(t, e, "futura: ", test.args)
			require.NotContains(t, e, "goroutine ", test.args)
		}
	}
	require.Contains(t, c.ok("check"), " 0 problems")
}

func TestInterruptEndsACommand(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.dev()
	for i, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := c.command("submit", fmt.Sprintf("go:nobody%d", i), "--wait")
		var said bytes.Buffer
		cmd.Stderr = &said
		require.NoError(t, cmd.Start())
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		// Once its future is there it waits for what does not come.
		for !strings.Contains(c.ok("list"), fmt.Sprintf("go:nobody%d", i)) {
			require.Empty(t, done, "it ended too early")
		}
		require.NoError(t, cmd.Process.Signal(signal))
		require.Error(t, <-done)
		require.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode())
		require.Regexp(t, `^futura: interrupted: future [0-9a-f-]{36} goes on; wait for it again with futura await `,
			said.String())
	}
	require.Contains(t, c.ok("check"), " 0 problems")
}

func TestInputOfASubmit(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.put("cat", copying())
	file := filepath.Join(c.dir, "input")
	require.NoError(t, os.WriteFile(file, []byte("from a file\x00\xff"), 0o600))
	out, _ := c.run(exitOK, "", "submit", "wasm:cat", "--args", "from a flag", "--wait")
	require.Equal(t, "from a flag", out)
	require.NoDirExists(t, filepath.Join(strings.TrimPrefix(c.store, "embedded:"), "modules"))
	require.DirExists(t, filepath.Join(os.Getenv(cachesVariable), "futura", "modules"), "it is compiled once")
	out, _ = c.run(exitOK, "", "submit", "wasm:cat", "--args-file", file, "--wait")
	require.Equal(t, "from a file\x00\xff", out)
	out, _ = c.run(exitOK, "from standard input", "submit", "wasm:cat", "--args-file", "-", "--wait")
	require.Equal(t, "from standard input", out)
	out, _ = c.run(exitOK, "is not read", "submit", "wasm:cat", "--wait")
	require.Empty(t, out)
	_, e := c.run(exitUsage, "", "submit", "wasm:cat", "--args", "a", "--args-file", "-")
	require.Contains(t, e, "exclude each other")
}

// TestJSONOutputs runs each command that has one with --json: standard output is
// one value of JSON, also where the command fails.
func TestJSONOutputs(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.put("cat", copying())
	c.put("trap", trapping())
	cat := filepath.Join(c.dir, "cat.wasm")
	waits := c.ok("submit", "go:nobody")
	unknown := "01995b4e-6f3a-7c1e-9d2b-0123456789ab"
	late := []string{"submit", "go:nobody", "--wait", "--wait-timeout", "1ns"}
	for _, test := range []struct {
		want int
		kind any
		has  string
		args []string
	}{
		{exitOK, map[string]any{}, "version", []string{"version"}},
		{exitOK, map[string]any{}, "id", []string{"submit", "go:nobody"}},
		{exitOK, map[string]any{}, `"data": "x"`, []string{"submit", "wasm:cat", "--args", "x", "--wait"}},
		{exitFailed, map[string]any{}, `"kind": "panic"`, []string{"submit", "wasm:trap", "--max-retries", "0", "--wait"}},
		{exitTimeout, map[string]any{}, `"state": "ready"`, late},
		{exitTimeout, []any{}, `"state": "ready"`, []string{"await", waits, "--timeout", "1ns"}},
		{exitNotFound, []any{}, "", []string{"await", unknown}},
		{exitOK, map[string]any{}, "state", []string{"get", waits}},
		{exitOK, map[string]any{}, "futures", []string{"list"}},
		{exitOK, map[string]any{}, "futures", []string{"list", "--state", "delayed"}},
		{exitOK, map[string]any{}, "reason", []string{"explain", waits}},
		{exitOK, map[string]any{}, "workers", []string{"workers"}},
		{exitOK, map[string]any{}, "problems", []string{"check"}},
		{exitOK, map[string]any{}, "cid", []string{"function", "put", cat}},
		{exitOK, map[string]any{}, `"function": "wasm:`, []string{"function", "list"}},
		{exitOK, []any{}, `"outcome": "cancelled"`, []string{"cancel", waits}},
		{exitFailed, []any{}, `"kind": "cancelled"`, []string{"await", waits, "--timeout", "1ns"}},
		{exitOK, map[string]any{}, `"retried": 1`, []string{"retry", "--failed", "--function", "wasm:trap"}},
		{exitNotFound, []any{}, "", []string{"retry", unknown}},
		{exitOK, []any{}, "", []string{"cancel", waits}},
		{exitOK, []any{}, "outcome", []string{"delete", waits}},
	} {
		out, e := c.run(test.want, "", append(test.args, "--json")...)
		var value any
		require.NoError(t, json.Unmarshal([]byte(out), &value), "%v: %q %q", test.args, out, e)
		require.IsType(t, test.kind, value, "%v: %s", test.args, out)
		require.Contains(t, out, test.has, test.args)
	}
}

// TestKilledCluster kills a process that serves a store and runs futures of it:
// what others were told to be submitted is there, and comes to its end.
func TestKilledCluster(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.put("cat", copying())
	c.put("spin", spinning())
	kill := c.dev("--slots", "2")
	var spins, cats []string
	for range 2 {
		spins = append(spins, c.ok("submit", "wasm:spin", "--priority", "9"))
	}
	for _, id := range spins {
		c.awaitText("claimed", "explain", id)
	}
	for range 5 {
		cats = append(cats, c.ok("submit", "wasm:cat", "--args", "kept"))
	}
	kill()

	require.Contains(t, c.ok("check"), " 0 problems")
	for _, id := range append(spins, cats...) {
		require.Contains(t, c.ok("get", id), id)
	}
	for _, id := range spins {
		c.ok("cancel", id)
	}
	require.Equal(t, strings.Repeat("kept", len(cats)), c.ok(append([]string{"await"}, cats...)...))
	c.run(exitFailed, "", append([]string{"await"}, spins...)...)
	for _, state := range []string{"ready", "delayed", "claimed"} {
		var listed struct{ Futures []any }
		require.NoError(t, json.Unmarshal([]byte(c.ok("list", "--state", state, "--json")), &listed))
		require.Empty(t, listed.Futures, state)
	}
	require.Contains(t, c.ok("check"), "7 futures")
	require.Contains(t, c.ok("check"), " 0 problems")
}

// TestWorkerKilledAndStartedAgain starts one again at the same address, at once
// and with fewer resources: what the killed one held runs there, or waits for a
// larger worker, and is claimed by no worker that is gone.
func TestWorkerKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.put("spin", spinning())
	c.dev("--queue", "others")
	kill := c.worker("--slots", "3", "--cpu", "4000")
	big := c.ok("submit", "wasm:spin", "--cpu", "4000")
	small := []string{c.ok("submit", "wasm:spin"), c.ok("submit", "wasm:spin")}
	all := append([]string{big}, small...)
	for _, id := range all {
		c.awaitText("claimed", "explain", id)
	}
	kill()
	c.worker("--slots", "3", "--cpu", "1000")
	members := slices.DeleteFunc(listed[httpapi.Worker](t, "workers", c.ok("workers", "--json")),
		func(m httpapi.Worker) bool { return !m.Alive }) // what it held may still be on its way back
	require.Len(t, members, 2, "dev's own and the new one")
	c.awaitText("Start a larger one", "explain", big)
	for _, id := range small {
		c.awaitText("claimed", "explain", id)
		require.Contains(t, c.ok("get", id, "--json"), `"deaths": 1`)
	}
	require.Contains(t, c.ok("check"), " 0 problems")
	for _, id := range all {
		c.ok("cancel", id)
	}
	c.run(exitFailed, "", append([]string{"await"}, all...)...)
	require.Contains(t, c.ok("check"), " 0 problems, 0 leftovers for a janitor to remove")
}

// worker starts one at an address and waits until it is a member.
func (c *terminal) worker(args ...string) (kill func()) {
	const address = "10.0.0.1:7000"
	known := c.ok("workers", "--json")
	cmd := c.command(append([]string{"worker", "--address", address}, args...)...)
	log := &stacktest.Buffer{}
	cmd.Stderr = log
	require.NoError(c.t, cmd.Start())
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c.t.Cleanup(kill)
	for give := time.Now().Add(time.Minute); ; {
		require.True(c.t, time.Now().Before(give), "the worker does not come: %s", log)
		now := c.ok("workers", "--json")
		for _, m := range listed[httpapi.Worker](c.t, "workers", now) {
			if m.Address == address && !strings.Contains(known, string(m.ID)) {
				return kill
			}
		}
	}
}

// awaitText repeats a command until it prints text.
func (c *terminal) awaitText(text string, args ...string) {
	c.t.Helper()
	give := time.Now().Add(time.Minute)
	for !strings.Contains(c.ok(args...), text) {
		require.True(c.t, time.Now().Before(give), "%v never said %q", args, text)
	}
}

// Small modules with one function, "_start", of which body is the code. Function
// 0 is fd_read and 1 is fd_write.
func assemble(body ...byte) []byte {
	text := func(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }
	section := func(id byte, parts ...[]byte) []byte {
		content := bytes.Join(parts, nil)
		return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
	}
	wasi := text("wasi_snapshot_preview1")
	body = append(append([]byte{0}, body...), 0x0b)
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{2, 0x60, 0, 0, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}),
		section(2, []byte{2}, wasi, text("fd_read"), []byte{0, 1}, wasi, text("fd_write"), []byte{0, 1}),
		section(3, []byte{1, 0}),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{2}, text("memory"), []byte{2, 0}, text("_start"), []byte{0, 2}),
		section(10, []byte{1}, binary.AppendUvarint(nil, uint64(len(body))), body),
	}, nil)
}

func trapping() []byte { return assemble(0x00) }

func spinning() []byte { return assemble(0x03, 0x40, 0x0c, 0, 0x0b) }

// copying reads up to 32 KiB and writes them.
func copying() []byte {
	return assemble(
		0x41, 0, 0x41, 0x80, 0x08, 0x36, 2, 0, // the vector at 0 begins at 1,024
		0x41, 4, 0x41, 0x80, 0x80, 2, 0x36, 2, 0, // and has 32,768 bytes
		0x41, 0, 0x41, 0, 0x41, 1, 0x41, 8, 0x10, 0, 0x1a, // read; the number goes to 8
		0x41, 4, 0x41, 8, 0x28, 2, 0, 0x36, 2, 0, // which is now the vector's length
		0x41, 1, 0x41, 0, 0x41, 1, 0x41, 12, 0x10, 1, 0x1a)
}
