package attack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/attack"
)

// commandVariable names the command that is attacked, if it was built before.
const commandVariable = "FUTURA_COMMAND"

// command is what the tests start.
var command string

func TestMain(m *testing.M) {
	flag.Parse()
	if !attack.Watched() {
		fmt.Println("SKIP: no /proc that shows a process's memory and files: nothing is attacked")
		return
	}
	os.Exit(runWith(m))
}

func runWith(m *testing.M) int {
	if command = os.Getenv(commandVariable); command != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "futura-attack-")
	if err == nil {
		defer os.RemoveAll(dir)
		command = filepath.Join(dir, "futura")
		build := exec.Command("go", "build", "-tags", "pebblegozstd", "-ldflags=-s -w", "-o", command, "../../cmd/futura")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the command could not be built:", err)
		return 1
	}
	return m.Run()
}

func long() bool { return os.Getenv("FUTURA_LONG") == "1" }

// What must hold in every attack.
const (
	// descriptors is how many files and connections the process may have open.
	descriptors = 256
	// others is the longest that a client waits beyond one of a process that
	// nobody attacks.
	others = time.Second
	// strikes is how often an attack may be repeated before a client has waited for it.
	strikes = 5
	// bound is the most memory that a process takes, in bytes: its requests hold 384
	// MiB, and what they no longer hold is collected when it is as much. The store
	// holds 512 MiB for its own clients.
	bound = 1024 * mebibyte
	// mebibyte is the unit of the bounds.
	mebibyte = 1 << 20
)

// site is a process with its bystander.
type site struct {
	*testing.T
	process   *attack.Process
	bystander *attack.Bystander
	tokens    map[string]string
	dir       string
}

// newSite starts a process and a bystander that has warmed it up.
func newSite(t *testing.T, args ...string) *site {
	t.Helper()
	return newSiteOf(t, descriptors, args...)
}

// newSiteOf starts a process that may have some descriptors.
func newSiteOf(t *testing.T, descriptors int, args ...string) *site {
	t.Helper()
	s := &site{T: t, dir: t.TempDir(), tokens: map[string]string{}}
	file := filepath.Join(s.dir, "tokens")
	for name, role := range map[string]string{"attacker": "submit", "bystander": "submit", "operator": "admin"} {
		secret, err := stack.CreateToken(file, name, role, time.Time{})
		require.NoError(t, err)
		s.tokens[name] = secret
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var err error
	s.process, err = attack.Start(ctx, attack.Options{
		Command: command, Dir: s.dir, Descriptors: descriptors, Args: append([]string{
			"dev", "--json", "--listen", "127.0.0.1:0", "--store-listen", "127.0.0.1:0", "--tokens", file, "--slots", "4",
		}, args...),
	})
	require.NoError(t, err)
	t.Cleanup(s.process.Kill)
	s.put("copy", attack.Copy())
	steps, closing := attack.HTTP(s.process.Endpoint.URL, s.tokens["bystander"])
	more, leave, err := attack.Store(ctx, s.store())
	require.NoError(t, err)
	s.bystander = attack.NewBystander(append(steps, more...), func() { closing(); leave() })
	t.Cleanup(s.bystander.Stop)
	s.bystander.Go(1)
	_, err = s.bystander.Take()
	require.NoError(t, err)
	return s
}

// store names the store by its door for other machines.
func (s *site) store() string {
	return s.process.Endpoint.StoreTCP + "?token-file=" + filepath.Join(s.dir, ".futura", "token")
}

// send sends a request of a token, and decodes the answer.
func (s *site) send(method, path, token string, body []byte, to any) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.process.Endpoint.URL+path, bytes.NewReader(body))
	require.NoError(s, err)
	r.Header.Set("Authorization", "Bearer "+s.tokens[token])
	r.Header.Set("Content-Type", "application/json")
	if bytes.HasPrefix(body, []byte("\x00asm")) {
		r.Header.Set("Content-Type", "application/wasm")
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(s, err)
	content, err := io.ReadAll(response.Body)
	require.NoError(s, err)
	require.NoError(s, response.Body.Close())
	require.Less(s, response.StatusCode, 300, "%s %s: %s", method, path, content)
	require.NoError(s, json.Unmarshal(content, to), "%s", content)
}

// put stores a module under an alias.
func (s *site) put(alias string, module []byte) {
	s.Helper()
	var stored struct{}
	s.send(http.MethodPost, "/api/v1/functions?alias="+alias, "operator", module, &stored)
}

// target prepares what attacks aim at.
func (s *site) target() *attack.Target {
	s.Helper()
	e := s.process.Endpoint
	t := &attack.Target{
		Address: strings.TrimPrefix(e.URL, "http://"), Door: strings.TrimPrefix(e.StoreTCP, "remote:tcp:"),
		Store: s.store(), Token: s.tokens["attacker"], Admin: s.tokens["operator"], Queue: "hostile",
	}
	const megabytes = 60
	s.put("large", attack.Large(megabytes*mebibyte/(32<<10)))
	var f struct{ ID, State string }
	s.send(http.MethodPost, "/api/v1/futures?wait=30s", "operator", []byte(`{"function":"wasm:large"}`), &f)
	require.Equal(s, "realized", f.State)
	t.Large = f.ID
	var b struct {
		ID string `json:"request_id"`
	}
	s.send(http.MethodPost, "/api/v1/functions/install?function_id=batched&method=main.wasm", "operator",
		attack.Endless(), &struct{}{})
	template := `{"function_id":"batched","method":"main.wasm","config":{"timeout":3600}}`
	s.send(http.MethodPost, "/api/v1/functions/execute/batch", "operator",
		[]byte(`{"template":`+template+`,"arguments":[["a"]]}`), &b)
	t.Batch = b.ID
	return t
}

// attacks is the table of all, with their sizes and the most memory that the
// process may take meanwhile.
var attacks = []struct {
	name        string
	strike      attack.Attack
	short, long int
	memory      int64
}{
	{"idle connections", attack.IdleConnections, 400, 3000, bound},
	{"slow headers", attack.SlowHeaders, 400, 3000, bound},
	{"slow bodies", attack.SlowBodies, 400, 3000, bound},
	{"trickled bodies", attack.Trickles, 20, 60, bound},
	{"pipelines", attack.Pipelines, 100, 1000, bound},
	{"unread results", attack.UnreadResults, 20, 200, bound},
	{"waits", attack.Waits, 512, 2000, bound},
	{"event streams", attack.Streams, 300, 3000, bound},
	{"flood of connections", attack.ConnectionFlood, 1000, 50_000, bound},
	{"noise", attack.Noise, 200, 10_000, bound},
	{"flood of requests", attack.RequestFlood, 300, 20_000, bound},
	{"wrong tokens", attack.WrongTokens, 1000, 50_000, bound},
	{"shapes of JSON", attack.Shapes, 256 << 10, 16 * mebibyte, bound},
	{"bombs", attack.Bombs, 1 * mebibyte, 64 * mebibyte, bound},
	{"archives", attack.Archives, 1 * mebibyte, 60 * mebibyte, bound},
	{"strangers at the store", attack.Strangers, 300, 3000, bound},
	{"frames", attack.Frames, 200, 20_000, bound},
	{"open transactions", attack.Transactions, 40, 400, bound + bound/2},
	{"watches", attack.Watches, 11_000, 60_000, bound},
	{"hostile modules", attack.Modules, 1, 20, bound},
	{"queues", attack.Queues, 1000, 100_000, bound},
}

// TestAttacks strikes a process with one attack after the other.
func TestAttacks(t *testing.T) {
	quiet, attacked := newSite(t), newSite(t)
	target := attacked.target()
	attacked.hostileWorker()
	for _, a := range attacks {
		size := a.short
		if target.From = ""; long() {
			size = a.long
			if a.name == "flood of connections" {
				target.From = "127.0.0.2" // clients of one address share its places
			}
		}
		t.Run(a.name, func(t *testing.T) {
			strike(t, quiet, attacked, a.memory, func(ctx context.Context) (func(), error) {
				return a.strike(ctx, target, size)
			})
		})
	}
	attacked.bystander.Go(1)
	found, err := attacked.process.Descriptors()
	require.NoError(t, err)
	require.Less(t, found, 100, "the connections are given back")
}

// hostileWorker starts a worker for the modules of attacks.
func (s *site) hostileWorker() {
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	p, err := attack.Start(ctx, attack.Options{Command: command, Dir: s.dir, Descriptors: descriptors, Args: []string{
		"worker", "--json", "--store", s.process.Endpoint.Store, "--queue", "hostile", "--slots", "2",
	}})
	require.NoError(s, err)
	s.Cleanup(func() {
		require.NoError(s, p.Alive())
		require.NoError(s, p.Log.Fatal())
		p.Kill()
	})
}

// strike runs an attack, and checks what must hold while it lasts. A bystander that waits for too long may have waited
// for the machine; so the attack is repeated, and what it does to bystanders it does each time.
func strike(t *testing.T, quiet, attacked *site, memory int64, run func(context.Context) (func(), error)) {
	t.Helper()
	for left := strikes - 1; ; left-- {
		mine, theirs := strikeOnce(t, quiet, attacked, memory, run)
		if mine.Time <= theirs.Time+others {
			return
		}
		require.Positive(t, left, "%s took %v, and %s of a process that nobody attacks %v", mine.Step, mine.Time,
			theirs.Step, theirs.Time)
	}
}

// strikeOnce returns the longest waits of the bystanders of both.
func strikeOnce(t *testing.T, quiet, attacked *site, memory int64, run func(context.Context) (func(), error)) (
	mine, theirs attack.Wait,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	require.NoError(t, attacked.process.ForgetPeak())
	quiet.forget()
	attacked.forget()
	before := attacked.process.Log.Lines()
	start := time.Now()
	undo, err := run(ctx)
	struck := time.Since(start)
	var both sync.WaitGroup
	for _, s := range []*site{quiet, attacked} {
		both.Go(func() { s.bystander.Go(1) })
	}
	both.Wait()
	open, watched := attacked.process.Descriptors()
	undo()
	require.NoError(t, watched)
	require.NoError(t, err)
	mine, failed := attacked.bystander.Take()
	theirs, _ = quiet.bystander.Take()
	now, peak, err := attacked.process.Memory()
	require.NoError(t, err)
	t.Logf("%v to strike; the bystander waits %v for %s, another %v for %s; %d MiB at most, %d MiB now; %d descriptors; "+
		"%d lines of log", struck, mine.Time, mine.Step, theirs.Time, theirs.Step, peak/mebibyte, now/mebibyte, open,
		attacked.process.Log.Lines()-before)
	require.NoError(t, attacked.process.Alive())
	require.NoError(t, attacked.process.Log.Fatal())
	require.NoError(t, failed)
	require.LessOrEqual(t, peak, memory)
	require.Less(t, attacked.process.Log.Lines()-before, 100, "attackers don't fill the log")
	return mine, theirs
}

// forget lets waits begin again.
func (s *site) forget() { _, _ = s.bystander.Take() }
