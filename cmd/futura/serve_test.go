package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/sharing"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// served is a serve in a process of its own.
type served struct {
	endpoint
	t   *testing.T
	cmd *exec.Cmd
	log *stacktest.Buffer
	// wait waits for the end, and returns the exit code.
	wait func() int
}

func (c *terminal) serve(args ...string) *served {
	s := &served{t: c.t, cmd: c.command(append([]string{"serve", "--listen", "127.0.0.1:0", "--json"}, args...)...),
		log: &stacktest.Buffer{}}
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, s.cmd.Start())
	s.wait = sync.OnceValue(func() int { _ = s.cmd.Wait(); return s.cmd.ProcessState.ExitCode() })
	c.t.Cleanup(func() { s.end(os.Kill) })
	require.NoError(c.t, json.NewDecoder(out).Decode(&s.endpoint), "%s", s.log)
	return s
}

// end sends a signal and waits for the end.
func (s *served) end(signal os.Signal) int {
	_ = s.cmd.Process.Signal(signal)
	return s.wait()
}

// TestServeIsKilledAndStartedAgain kills the process that owns the store while others submit, run and await through
// it, and starts it again as systemd does: nothing is lost, whichever way the others name the store.
func TestServeIsKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	for _, through := range []string{"socket", "directory"} {
		t.Run(through, func(t *testing.T) {
			t.Parallel()
			c := newTerminal(t)
			// A command that finds the store without its owner may own it until it has reaped the worker.
			c.ok("cluster", "create", "--heartbeat", "500ms", "--dead-after", "2s")
			first := c.serve()
			store := c.store
			if through == "socket" {
				store = first.Store
			}
			c.put("cat", copying())
			later := c.ok("submit", "wasm:cat", "--args", "later", "--delay", "2s")
			c.worker("--slots", "2", "--store", store)
			ids := []string{later}
			for i := range 10 {
				ids = append(ids, c.ok("submit", "wasm:cat", "--args", fmt.Sprint(i)))
			}
			awaiting := c.command(append([]string{"await", "--json"}, ids...)...)
			out, err := awaiting.StdoutPipe()
			require.NoError(t, err)
			var complaints bytes.Buffer
			awaiting.Stderr = &complaints
			require.NoError(t, awaiting.Start())
			first.end(os.Kill)
			again := c.serve()
			for i := range 10 {
				ids = append(ids, c.ok("submit", "wasm:cat", "--args", fmt.Sprint(i), "--store", c.store))
			}
			content, err := io.ReadAll(out)
			require.NoError(t, err)
			require.NoError(t, awaiting.Wait(), "%s%s", content, &complaints)
			require.Equal(t, 11, strings.Count(string(content), `"state": "realized"`), "%s", content)
			require.Equal(t, "later01234567890123456789", c.ok(append([]string{"await"}, ids...)...))
			require.Contains(t, c.ok("check"), "21 futures")
			require.Contains(t, c.ok("check"), " 0 problems")
			require.Zero(t, again.end(syscall.SIGTERM), "%s", again.log)
			require.Contains(t, c.ok("check"), " 0 problems")
		})
	}
}

// TestACommandOutlivesItsServer kills the process that owns the store under a command that waits, and starts none in
// its place: the command takes the store over, and serves it to the next one.
func TestACommandOutlivesItsServer(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	s := c.serve()
	id, _, _ := strings.Cut(c.ok("promise", "new"), "\n")
	clients := func(n int) func() bool {
		return func() bool {
			record, err := sharing.ReadRecord(strings.TrimPrefix(c.store, "embedded:"))
			return err == nil && len(record.Clients) == n
		}
	}
	require.Eventually(t, clients(0), time.Minute, time.Millisecond)
	awaiting := c.command("await", "--give-up-after", "10s", id)
	var said bytes.Buffer
	awaiting.Stdout, awaiting.Stderr = &said, &said
	require.NoError(t, awaiting.Start())
	t.Cleanup(func() { _ = awaiting.Process.Kill() })
	require.Eventually(t, clients(1), time.Minute, time.Millisecond)
	s.end(os.Kill)
	c.ok("promise", "resolve", id, "7")
	require.NoError(t, awaiting.Wait(), "%s", &said)
	require.Equal(t, "7\n", said.String())
}

// TestServeIsStopped stops the process that owns the store, which lives: a command says so within the time that it has.
func TestServeIsStopped(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	s := c.serve()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGSTOP))
	began := time.Now()
	_, e := c.run(exitStore, "", "list", "--give-up-after", "1s")
	require.Less(t, time.Since(began), 8*time.Second, "it is 10 s in which others may serve the store")
	require.Contains(t, e, fmt.Sprintf("process %d has it open, is alive and has not answered for ", s.PID))
	require.Contains(t, e, fmt.Sprintf("kill -CONT %d", s.PID))
	require.Equal(t, 1, strings.Count(e, fmt.Sprintf("process %d", s.PID)))
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGCONT))
	c.ok("submit", "go:nobody")
	require.Zero(t, s.end(syscall.SIGTERM), "%s", s.log)
}

// TestServeDoesAJanitorsWork has a delayed future become ready where there is no worker.
func TestServeDoesAJanitorsWork(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	s := c.serve()
	id := c.ok("submit", "go:nobody", "--delay", "10ms")
	c.awaitText("ready", "get", id)
	require.Equal(t, "[]", strings.TrimSpace(regexp.MustCompile(`(?s).*"workers": (\[.*\]).*`).ReplaceAllString(
		c.ok("workers", "--json"), "$1")), "it is no worker")
	status, text := ask(t, &s.endpoint, "GET", "/metrics", s.Token, "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "futura_store_memory_bytes")
	require.Regexp(t, `heartbeat +5s\ndead after +15s\n`, c.ok("cluster", "show"), "it is for production")
	_, e := c.run(exitStore, "", "serve", "--listen", "127.0.0.1:0")
	require.Contains(t, e, s.URL, "a second one is told of the first")
}

// TestServeEndsInTime stops it while one request waits for a future and another does not go on.
func TestServeEndsInTime(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	s := c.serve("--drain", "300ms")
	at := strings.TrimPrefix(s.URL, "http://")
	begin := func(path, rest string) net.Conn {
		conn, err := net.Dial("tcp", at)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\n%s", path, s.Token, rest)
		require.NoError(t, err)
		return conn
	}
	stuck := begin("/api/v1/futures", "Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n")
	line, err := bufio.NewReader(stuck).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "100 Continue", "it reads the body")
	waits := begin("/api/v1/futures?wait=30s", "Content-Length: 24\r\n\r\n"+`{"function":"go:nobody"}`)
	c.awaitText("go:nobody", "list") // and so it waits
	answered := make(chan string)
	go func() {
		line, _ := bufio.NewReader(waits).ReadString('\n')
		answered <- line
	}()
	began := time.Now()
	require.Zero(t, s.end(syscall.SIGTERM), "%s", s.log)
	require.Less(t, time.Since(began), 45*time.Second, "as one-machine.md says")
	require.Contains(t, <-answered, "HTTP/1.1 ")
	require.Contains(t, s.log.String(), "cut off")
	require.Contains(t, c.ok("list"), "ready")
}

func TestServeMistakes(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"unknown flag: --slots":   {"memory:", "--slots", "2"},
		"--drain -1s is negative": {"memory:", "--drain", "-1s"},
		"--listen":                {"memory:", "--listen", "127.0.0.1:99999"},
		"not a loopback address":  {"memory:", "--listen", "0.0.0.0:0"},
		"need each other":         {"memory:", "--tls-key", "x"},
		"use memory:":             {"nowhere:"},
		"memory must be":          {"embedded:x?memory=1"},
	} {
		args, s := append([]string{"serve", "--listen", "127.0.0.1:0"}, args[1:]...), &shell{t, args[0]}
		out, e := s.run(exitUsage, "", args...)
		require.Contains(t, e, says)
		require.Empty(t, out, "it has not begun")
	}
}

// TestTakenAddressesMayPass has each listener find its address taken, which another start may not.
func TestTakenAddressesMayPass(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close() })
	at := other.Addr().String()
	_, port, err := net.SplitHostPort(at)
	require.NoError(t, err)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600))
	for says, args := range map[string][]string{
		"with --listen":         {"serve", "--token-file", token, "--listen", at},
		"--store-listen":        {"dev", "--token-file", token, "--listen", "127.0.0.1:0", "--store-listen", at},
		"with --metrics-listen": {"worker", "--token-file", token, "--metrics-listen", at},
		"objects: listen at":    {"worker", "--object-memory", "1048576", "--object-listen", at},
		"can't listen on": {"serve", "--token-file", token, "--listen", "127.0.0.1:0", "--any-peer", "--peer-key",
			filepath.Join(t.TempDir(), "key"), "--peers", "/ip4/127.0.0.1/tcp/" + port},
	} {
		_, e := (&shell{t, "memory:"}).run(exitStore, "", args...)
		require.Contains(t, e, says)
		require.Contains(t, e, "address already in use")
	}
}

// TestUnitsPreventRestartsOfWrongCalls holds what keeps a unit down for good, which is no crash: a Go program that
// panics ends with 2.
func TestUnitsPreventRestartsOfWrongCalls(t *testing.T) {
	t.Parallel()
	prevents := regexp.MustCompile(`RestartPreventExitStatus=(.*)\n`)
	for name, unit := range units(t) {
		for _, found := range prevents.FindAllStringSubmatch(unit, -1) {
			require.Equal(t, fmt.Sprint(exitUsage, exitUnreadable), found[1], name)
		}
	}
	require.NotContains(t, []int{exitOK, exitFailed, exitNotFound, exitStore, exitTimeout, exitUsage, exitUnreadable}, 2)
}

// TestStoresThatCanNotBeRead end the command with a code of their own: no further try helps.
func TestStoresThatCanNotBeRead(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s := &shell{t, "embedded:" + dir}
	s.run(exitOK, "", "submit", "go:f")
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST*"))
	require.NoError(t, err)
	require.NotEmpty(t, manifests)
	for _, m := range manifests {
		require.NoError(t, os.WriteFile(m, []byte("damaged"), 0o600))
	}
	_, e := s.run(exitUnreadable, "", "list")
	require.Contains(t, e, "damaged")
	for _, cause := range []error{layout.ErrOldFormat, layout.ErrNewerRecord} {
		require.Equal(t, exitUnreadable, exitCode(t.Context(), fmt.Errorf("open cluster x: %w", cause)))
	}
}

// unitPage is the page that has the units.
const unitPage = "../../docs/operating/one-machine.md"

// units are the files of systemd on the page, by their names.
func units(t *testing.T) map[string]string {
	page, err := os.ReadFile(unitPage)
	require.NoError(t, err)
	all := map[string]string{}
	block := regexp.MustCompile("(?s)```ini\n# /etc/systemd/system/(\\S+)\n(.*?)```")
	for _, found := range block.FindAllSubmatch(page, -1) {
		all[string(found[1])] = string(found[2])
	}
	require.Contains(t, all, "futura.service")
	return all
}

// TestUnitsCallTheCommandRightly has the command itself read what the units call it with.
func TestUnitsCallTheCommandRightly(t *testing.T) {
	t.Parallel()
	const installed = "=/usr/local/bin/futura "
	called := map[string]bool{}
	for name, unit := range units(t) {
		for line := range strings.Lines(unit) {
			_, call, found := strings.Cut(line, installed)
			if !found {
				continue
			}
			args := strings.Fields(call)
			called[args[0]] = true
			root := (&app{err: io.Discard}).root()
			cmd, rest, err := root.Find(args)
			require.NoError(t, err, name)
			require.NoError(t, cmd.ParseFlags(rest), "%s: %s", name, line)
			require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), "%s: %s", name, line)
		}
	}
	require.Equal(t, map[string]bool{"serve": true, "worker": true, "backup": true}, called)
}

// TestUnitsAreValid has systemd read the units.
func TestUnitsAreValid(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: the units of one-machine.md are not verified")
	}
	dir := t.TempDir()
	program, err := os.Executable()
	require.NoError(t, err)
	args := []string{"verify", "--man=no"}
	for name, unit := range units(t) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(unit, "/usr/local/bin/futura", program)), 0o644))
		args = append(args, file)
	}
	out, err := exec.Command(analyze, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) {
		require.NotContains(t, line, dir, "of these units")
		require.NotContains(t, line, "futura", "of these units")
	}
}
