//go:build linux

package b7s

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

// openedHead is a head of the project, with its store.
type openedHead struct {
	*head.Head
	peers *peerhead.Head
	host  *p2p.Host
	store batch.Store
	cid   string
}

// openHead starts a head that has the workers of b7s install a module.
func openHead(t *testing.T, d dialect, grace ...time.Duration) *openedHead {
	t.Helper()
	ctx := t.Context()
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	client, err := futures.New(ctx, db, futures.Options{
		Config: layout.Config{Heartbeat: 500 * time.Millisecond, DeadAfter: 2 * time.Second},
	})
	require.NoError(t, err)
	cluster := client.Cluster()
	h := &openedHead{store: futurestore.New(cluster, futurestore.Options{})}
	h.host, err = p2p.Open(ctx, p2p.Options{})
	require.NoError(t, err)
	f := serveFunction(t, emptyModule())
	h.peers, err = peerhead.New(peerhead.Options{
		Cluster: cluster, Network: h.host, Key: bytes.Repeat([]byte("k"), 32),
		Manifest:    func(string) string { return f.manifest },
		AdmitStrand: d.container == "strands", Grace: append(grace, 0)[0],
	})
	require.NoError(t, err)
	h.Head = head.New(head.Options{Store: h.store, Dispatcher: head.NewCluster(cluster), Backoff: 10 * time.Millisecond})
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- h.peers.Run(running) }()
	go func() { ended <- h.Run(running) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		require.NoError(t, h.host.Close())
		require.NoError(t, client.Close(context.Background()))
	})
	h.peers.Serve(h.host)
	require.NoError(t, h.host.Start())
	module, err := modules.Of(cluster).Put(ctx, emptyModule(), "")
	require.NoError(t, err)
	h.cid = module.CID
	return h
}

// run runs a batch on some workers to its end.
func (h *openedHead) run(t *testing.T, config batch.Config, arguments [][]string) (batch.Batch, []batch.Item) {
	t.Helper()
	return h.finish(t, h.begin(t, config, arguments))
}

func (h *openedHead) begin(t *testing.T, config batch.Config, arguments [][]string) batch.Batch {
	t.Helper()
	const attempts = 3
	b, _, err := h.Submit(t.Context(), batch.Request{
		Template:  batch.Template{FunctionID: h.cid, Method: mainMethod, Config: config},
		Arguments: arguments, MaxAttempts: attempts,
	})
	require.NoError(t, err)
	return b
}

func (h *openedHead) finish(t *testing.T, b batch.Batch) (batch.Batch, []batch.Item) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
	defer cancel()
	changed, stop, ok, err := h.store.Watch(ctx, b.ID)
	require.NoError(t, err)
	require.True(t, ok)
	defer stop()
	for {
		b, err = h.store.Get(ctx, b.ID)
		require.NoError(t, err)
		if b.Status.Over() {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			progress, err := h.store.Progress(t.Context(), b.ID)
			require.FailNow(t, "the batch did not end", "%+v %+v %v; peers: %+v", b, progress, err, h.peers.Peers())
		}
	}
	items, err := h.store.Items(ctx, b.ID, 0, b.Items)
	require.NoError(t, err)
	return b, items
}

// connectWorkers starts two workers of b7s: one dials the head, the other is
// dialled.
func (h *openedHead) connectWorkers(t *testing.T, d dialect) (dialling, dialled *node) {
	t.Helper()
	dialling = d.startWorker(t, "b7s worker that dials", h.host.Addrs()[0])
	dialled = d.startWorker(t, "b7s worker that is dialled")
	_, err := h.host.Connect(t.Context(), dialled.address)
	require.NoError(t, err)
	return dialling, dialled
}

// awaitMembers waits until so many workers of b7s take part.
func (h *openedHead) awaitMembers(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		members := 0
		for _, p := range h.peers.Peers() {
			if p.Worker != "" {
				members++
			}
		}
		return members == n
	}, answerLimit, time.Millisecond)
}

// TestOwnHeadRecruitsWorkersOfB7s says how soon after its connection a worker of b7s takes
// part, if the head buries none before 10 s: the connection begins it, and no timer.
func TestOwnHeadRecruitsWorkersOfB7s(t *testing.T) {
	for _, d := range dialects() {
		t.Run(d.branch, func(t *testing.T) {
			d.program(t)
			h := openHead(t, d, 10*time.Second)
			worker := d.startWorker(t, "b7s worker that is dialled")
			begun := time.Now()
			_, err := h.host.Connect(t.Context(), worker.address)
			require.NoError(t, err)
			h.awaitMembers(t, 1)
			took := time.Since(begun)
			t.Logf("a worker of b7s %s took part %v after its connection", d.branch, took.Round(time.Millisecond))
			require.Less(t, took, 2*time.Second)
		})
	}
}

// TestOwnHeadWithWorkersOfB7s has a head of the project run batches on two
// workers of b7s.
func TestOwnHeadWithWorkersOfB7s(t *testing.T) {
	for _, d := range dialects() {
		t.Run(d.branch, func(t *testing.T) {
			d.program(t)
			h := openHead(t, d)
			h.connectWorkers(t, d)
			for _, count := range []int{100, 1000} {
				for name, w := range map[string]*work{"some failing": newWork(t, count), "all done": newCleanWork(t, count)} {
					begun := time.Now()
					b, items := h.run(t, batch.Config{Nodes: 2}, w.arguments)
					took := time.Since(begun).Round(time.Millisecond)
					w.check(t, b, items)
					w.checkShared(t, h, b)
					t.Logf("own head, workers of b7s %s: %d items, %s, in %s", d.branch, count, name, took)
				}
			}
			h.runsTwins(t)
			h.runsConfigured(t)
		})
	}
}

// runsTwins runs items with one id: each runs, and has a result.
func (h *openedHead) runsTwins(t *testing.T) {
	t.Helper()
	log := "log=" + filepath.Join(t.TempDir(), "runs")
	arguments := [][]string{{"a", log}, {"a", log}, {"a", log}, {"b c", log}, {"b c", log}, {"d", log}}
	_, items := h.run(t, batch.Config{Nodes: 2}, arguments)
	for i, item := range items {
		require.Equal(t, batch.Done, item.Status)
		require.Equal(t, arguments[i][0], item.Result.Stdout)
	}
	w := work{log: strings.TrimPrefix(log, "log=")}
	require.Equal(t, map[string]int{"a": 3, "b c": 2, "d": 1}, w.ran(t))
}

// runsConfigured gives the function an environment and a standard input.
func (h *openedHead) runsConfigured(t *testing.T) {
	t.Helper()
	_, items := h.run(t, batch.Config{
		Nodes: 1, Stdin: "and stdin", Environment: []batch.EnvVar{{Name: "GREETING", Value: "hello "}},
	}, [][]string{{"first: ", "env=GREETING", "stdin"}})
	require.Equal(t, "first: hello and stdin", items[0].Result.Stdout)
}

// TestOwnHeadLosesAWorkerOfB7s kills one of two workers of b7s while they work:
// the other one runs what it had.
func TestOwnHeadLosesAWorkerOfB7s(t *testing.T) {
	const count = 200
	d := dialects()[0]
	d.program(t)
	h := openHead(t, d)
	victim, _ := h.connectWorkers(t, d)
	w := newCleanWork(t, count)
	for i := range w.arguments {
		w.arguments[i] = append(w.arguments[i], "sleep=10")
	}
	b := h.begin(t, batch.Config{Nodes: 2}, w.arguments)
	victim.await(t, "command executed successfully")
	victim.kill()
	begun := time.Now()
	_, items := h.finish(t, b)
	took := time.Since(begun).Round(time.Millisecond)
	t.Logf("the batch of %d items ended %s after a worker of b7s was killed", count, took)
	ran := w.ran(t)
	twice := 0
	for i, item := range items {
		require.Equal(t, batch.Done, item.Status)
		require.Equal(t, w.arguments[i][0], item.Result.Stdout)
		require.Zero(t, item.Attempts, "a lost worker costs no attempt")
		require.Positive(t, ran[item.Arguments[0]])
		twice += ran[item.Arguments[0]] - 1
	}
	require.Less(t, twice, 64, "only what the lost worker had runs again")
}

// TestOwnHeadKeepsWorkersOfB7sThatRestart has a worker of b7s restart with its
// function and without.
func TestOwnHeadKeepsWorkersOfB7sThatRestart(t *testing.T) {
	d := dialects()[0]
	d.program(t)
	h := openHead(t, d)
	worker := d.startWorker(t, "b7s worker", h.host.Addrs()[0])
	for _, restart := range []func(){
		func() {},
		func() { worker.kill(); worker.launch(t) },
		func() { worker.kill(); worker.wipe(t); worker.launch(t) },
		func() { worker.stop(t); worker.wipe(t); worker.launch(t) },
	} {
		restart()
		w := newCleanWork(t, 50)
		b, items := h.run(t, batch.Config{Nodes: 1}, w.arguments)
		w.checkResults(t, b, items) // what the head sends before it knows of the restart may run again
	}
	require.Len(t, h.peers.Peers(), 1)
}

// work is items of which some fail, with a record of what was run.
type work struct {
	arguments [][]string
	log       string
	runs      map[string]int // expected, by the first argument
}

// newWork makes items: every tenth fails once, and every twenty-fifth always.
func newWork(t *testing.T, count int) *work {
	t.Helper()
	dir := t.TempDir()
	w := &work{log: filepath.Join(dir, "runs"), runs: map[string]int{}}
	for i := range count {
		text := fmt.Sprintf("https://example.com/slug-%d", i)
		args := []string{text, "log=" + w.log}
		w.runs[text] = 1
		switch {
		case i%25 == 7:
			args = append(args, "fail")
			w.runs[text] = 3
		case i%10 == 3:
			args = append(args, fmt.Sprintf("once=%s/%d", dir, i))
			w.runs[text] = 2
		}
		w.arguments = append(w.arguments, args)
	}
	return w
}

// newCleanWork makes items that succeed.
func newCleanWork(t *testing.T, count int) *work {
	t.Helper()
	w := &work{log: filepath.Join(t.TempDir(), "runs"), runs: map[string]int{}}
	for _, args := range echoes(count) {
		w.arguments = append(w.arguments, append(args, "log="+w.log))
		w.runs[args[0]] = 1
	}
	return w
}

// check compares a batch that has ended with its items: each ended once, under
// its id, after as many runs as it needs.
func (w *work) check(t *testing.T, b batch.Batch, items []batch.Item) {
	t.Helper()
	w.checkResults(t, b, items)
	require.Equal(t, w.runs, w.ran(t))
}

func (w *work) checkResults(t *testing.T, b batch.Batch, items []batch.Item) {
	t.Helper()
	require.Len(t, items, len(w.arguments))
	for i, item := range items {
		args := w.arguments[i]
		require.Equal(t, i, item.Index)
		require.Equal(t, args, item.Arguments)
		require.Equal(t, batch.ItemID(&b.Template, args), item.ID)
		require.NotNil(t, item.Result)
		require.Equal(t, args[0], item.Result.Stdout)
		runs := w.runs[args[0]]
		if args[len(args)-1] == "fail" {
			require.Equal(t, batch.PermanentlyFailed, item.Status, "%+v", item)
			require.Equal(t, 3, item.Result.ExitCode)
			require.Equal(t, "asked to fail", item.Result.Stderr)
			require.Equal(t, runs, item.Attempts)
			continue
		}
		require.Equal(t, batch.Done, item.Status, "%+v", item)
		require.Zero(t, item.Result.ExitCode)
		require.Equal(t, runs-1, item.Attempts)
	}
}

// ran counts the runs of each item.
func (w *work) ran(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(w.log)
	require.NoError(t, err)
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		counts[strings.TrimSuffix(line, "\n")]++
	}
	return counts
}

// checkShared wants each worker to have had a part of a batch.
func (w *work) checkShared(t *testing.T, h *openedHead, b batch.Batch) {
	t.Helper()
	chunks, err := h.store.Chunks(t.Context(), b.ID)
	require.NoError(t, err)
	peers := map[string]int{}
	for _, c := range chunks {
		require.Positive(t, c.Items)
		peers[c.PeerID()] += c.Items
	}
	for _, p := range h.peers.Peers() {
		require.Contains(t, peers, string(p.ID))
		require.Zero(t, p.Refused)
		require.Zero(t, p.Items)
	}
	require.Len(t, peers, 2)
}
