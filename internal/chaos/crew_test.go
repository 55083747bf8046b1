//go:build fdb

package chaos

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/fdbtest"
)

// patience is how long a test waits for something that must come.
const patience = 2 * time.Minute

// crew is a cluster of processes.
type crew struct {
	t       *testing.T
	ctx     context.Context
	file    string
	env     []string // of the processes, besides the test's own
	cluster *fdbmodel.Cluster
	started int
	workers []*member
	clients []*member
	ledger  ledger
}

// member is a process of a crew.
type member struct {
	name    string
	command *exec.Cmd
	input   io.WriteCloser
	read    chan struct{} // closed when its last line was read
	stderr  strings.Builder
}

func newCrew(t *testing.T, server *fdbtest.Server, name string, workers, clients int, env ...string) *crew {
	c := &crew{t: t, ctx: context.Background(), file: server.ClusterFile(t), env: env}
	c.ledger.submitted, c.ledger.ended = map[string]string{}, map[string]string{}
	db, err := fdbkv.Open(c.ctx, c.file, fdbkv.Options{ConnectTimeout: patience})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	c.cluster, err = fdbmodel.Open(c.ctx, db, name, fdbmodel.Options{
		Config: layout.Config{Heartbeat: 250 * time.Millisecond, DeadAfter: 1500 * time.Millisecond},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, m := range append(c.workers, c.clients...) {
			m.kill()
		}
	})
	for range workers {
		c.addWorker()
	}
	for range clients {
		c.addClient()
	}
	return c
}

func (c *crew) addWorker() { c.workers = append(c.workers, c.start(roleWorker)) }
func (c *crew) addClient() { c.clients = append(c.clients, c.start(roleClient)) }

// start runs the test binary as a worker or a client.
func (c *crew) start(role string) *member {
	c.started++
	m := &member{name: fmt.Sprintf("%s-%d", role, c.started), read: make(chan struct{})}
	binary, err := os.Executable()
	require.NoError(c.t, err)
	m.command = exec.Command(binary)
	m.command.Env = append(append(os.Environ(), c.env...), roleVariable+"="+role, nameVariable+"="+m.name,
		fileVariable+"="+c.file, clusterVariable+"="+c.cluster.Name())
	m.command.Stderr = &m.stderr
	m.input, err = m.command.StdinPipe()
	require.NoError(c.t, err)
	output, err := m.command.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, m.command.Start())
	go func() {
		defer close(m.read)
		c.ledger.follow(output)
	}()
	return m
}

// kill ends the process as kill -9 does.
func (m *member) kill() {
	_ = m.command.Process.Kill()
	<-m.read
	_ = m.command.Wait()
}

// stop tells the process to end, and waits until it has.
func (m *member) stop(t *testing.T) {
	require.NoError(t, m.input.Close())
	timer := time.AfterFunc(patience, func() { _ = m.command.Process.Kill() })
	defer timer.Stop()
	<-m.read
	require.NoError(t, m.command.Wait(), "%s: %s", m.name, &m.stderr)
}

// letGo lets the workers end what they hold.
func (c *crew) letGo() {
	for _, m := range c.workers {
		_, err := m.input.Write([]byte("\n"))
		require.NoError(c.t, err)
	}
}

func (m *member) signal(t *testing.T, s syscall.Signal) {
	require.NoError(t, m.command.Process.Signal(s))
}

// await looks until done.
func (c *crew) await(what string, done func() bool) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	give := time.NewTimer(patience)
	defer give.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-give.C:
			require.FailNow(c.t, "did not come: "+what)
		}
	}
}

// progress waits until so many more futures have ended.
func (c *crew) progress(n int) {
	c.t.Helper()
	target := c.ledger.count() + n
	c.await("progress", func() bool { return c.ledger.count() >= target })
}

// declaredDead waits until the cluster has declared a worker dead, and has taken
// back what it held.
func (c *crew) declaredDead(name string) {
	c.t.Helper()
	c.await("the death of a worker", func() bool {
		members, err := c.cluster.Workers(c.ctx)
		require.NoError(c.t, err)
		for _, m := range members {
			if m.Name == name && (m.Alive || m.Claims > 0) {
				return false
			}
		}
		return true
	})
}

// finish lets the clients end, and checks that nothing was lost and that what
// they were told is true.
func (c *crew) finish() {
	for _, m := range c.clients {
		m.stop(c.t)
	}
	c.clients = nil
	// What dead clients submitted has ended too, sooner or later.
	c.await("the end of all futures", func() bool {
		counts, err := c.cluster.Counts(c.ctx)
		require.NoError(c.t, err)
		open := int64(0)
		for _, s := range layout.States() {
			if !s.Terminal() {
				open += counts.Total(s)
			}
		}
		return open == 0
	})
	for _, m := range c.workers {
		m.stop(c.t)
	}
	c.workers = nil
	c.check()
}

// check compares what clients were told with what the store says.
func (c *crew) check() {
	report, err := audit.Check(c.ctx, c.cluster, audit.Options{})
	require.NoError(c.t, err)
	require.Empty(c.t, report.Problems)
	submitted, ended, twice := c.ledger.all()
	require.Empty(c.t, twice, "futures that ended in two ways")
	require.NotEmpty(c.t, submitted)
	lost := 0
	for text, args := range submitted {
		id, err := layout.ParseID(text)
		require.NoError(c.t, err)
		row, err := c.cluster.Get(c.ctx, id)
		require.NoError(c.t, err, "an acknowledged future is gone")
		if row.State() == layout.Failed {
			require.Equal(c.t, layout.KindLost, row.Exception.Kind, row.Exception.Message)
			lost++
			continue
		}
		require.Equal(c.t, layout.Realized, row.State())
		require.Equal(c.t, row.Claim.Token, row.Result.Token)
		require.True(c.t, strings.HasPrefix(string(row.Result.Value), args+"-"), "%s: %s", args, row.Result.Value)
		if told, known := ended[text]; known {
			require.Equal(c.t, string(row.Result.Value), told)
		}
	}
	c.t.Logf("%d futures were submitted, %d ends were told, %d crashed too often, %d processes were started",
		len(submitted), len(ended), lost, c.started)
}

// ledger is what the clients said.
type ledger struct {
	mu        sync.Mutex
	submitted map[string]string // arguments by id
	ended     map[string]string // results by id
	twice     []string
}

// follow reads the lines of a client. An incomplete line of a killed client does
// not count.
func (l *ledger) follow(output io.Reader) {
	reader := bufio.NewReader(output)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		id, text, _ := strings.Cut(rest, " ")
		l.mu.Lock()
		switch kind {
		case lineSubmitted:
			l.submitted[id] = text
		case lineEnded:
			if before, known := l.ended[id]; known && before != text {
				l.twice = append(l.twice, id)
			}
			l.ended[id] = text
		}
		l.mu.Unlock()
	}
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ended)
}

func (l *ledger) all() (submitted, ended map[string]string, twice []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.submitted, l.ended, l.twice
}
