//go:build fdb

package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/fdbtest"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// TestOnFoundationDB has the commands that read and move whole clusters run on a
// server of their own.
func TestOnFoundationDB(t *testing.T) {
	t.Parallel()
	server, err := fdbtest.Start(t.Context())
	if errors.Is(err, exec.ErrNotFound) {
		server = nil
	} else {
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Stop()) })
	}
	file := server.ClusterFile(t)
	t.Run("commands for fdbcli", func(t *testing.T) { testCommandsForFdbcli(t, file) })
	t.Run("there and back", func(t *testing.T) { testMigrateThereAndBack(t, file) })
	t.Run("await across a move", func(t *testing.T) { testAwaitAcrossAMove(t, file) })
	t.Run("living workers", func(t *testing.T) { testMigrateRefusesLivingWorkers(t, file) })
	t.Run("backup and restore", func(t *testing.T) { testBackupAndRestore(t, file) })
}

// open calls fn with a client of the shell's store.
func (s *shell) open(cluster string, fn func(context.Context, *futures.Client)) {
	ctx := context.Background()
	db, err := kvopen.Open(ctx, s.store, kvopen.Options{})
	require.NoError(s.t, err)
	client, err := futures.New(ctx, db, futures.Options{Cluster: cluster})
	require.NoError(s.t, err)
	fn(ctx, client)
	require.NoError(s.t, client.Close(ctx))
	require.NoError(s.t, db.Close())
}

// testCommandsForFdbcli pipes what inspect --fdbcli prints into fdbcli, and
// finds there the state of futures, who holds them, and their results.
func testCommandsForFdbcli(t *testing.T, file string) {
	s := &shell{t, "fdb:" + file}
	var realized, claimed, ready layout.ID
	var worker layout.WorkerID
	s.open("cli", func(ctx context.Context, c *futures.Client) {
		cluster := c.Cluster()
		submit := func() layout.ID {
			got, err := cluster.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:count"}}})
			require.NoError(t, err)
			return got[0].ID
		}
		w, err := cluster.Register(ctx, layout.WorkerInfo{
			Name: "by hand", Functions: []string{"go:count"}, Capacity: layout.Resources{Slots: 2},
		})
		require.NoError(t, err)
		worker = w.ID()
		claim := func() *fdbmodel.ClaimedFuture {
			answer, err := w.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
			require.NoError(t, err)
			require.Len(t, answer.Futures, 1)
			return &answer.Futures[0]
		}
		realized = submit()
		outcomes, err := w.Finish(ctx, []fdbmodel.Completion{
			{Future: claim(), Result: &layout.Result{Value: []byte("the result is 42")}},
		})
		require.NoError(t, err)
		require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
		claimed = submit()
		claim()
		ready = submit()
	})
	paste := func(id layout.ID) string {
		commands := s.ok("inspect", "--fdbcli", id.String(), "--cluster", "cli")
		fdbcli := exec.CommandContext(t.Context(), "fdbcli", "-C", file, "--no-status")
		fdbcli.Stdin = strings.NewReader(commands + "\n")
		out, err := fdbcli.CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), "ERROR")
		return string(out)
	}
	out := paste(realized)
	require.Contains(t, out, "the result is 42")
	require.Contains(t, out, string(worker))
	require.Contains(t, out, `\x02state\x00\x02result\x00`)
	out = paste(claimed)
	require.Contains(t, out, "by hand", "the worker that holds it")
	require.Contains(t, out, `\x02state\x00\x02claim\x00`)
	require.Contains(t, out, `\x02result\x00': not found`)
	out = paste(ready)
	require.Contains(t, out, `\x02claim\x00': not found`)
	require.Contains(t, out, "' is `go:count'", "its place among the ready")
}

// testMigrateThereAndBack moves a cluster from the embedded store to the server
// and back, and compares all three.
func testMigrateThereAndBack(t *testing.T, file string) {
	from, to := newShell(t), newShell(t)
	server := &shell{t, "fdb:" + file}
	from.fill()
	there := from.copied("migrate", "--from", from.store, "--to", server.store)
	require.Equal(t, from.states(), server.states())
	require.Contains(t, server.ok("check"), " 0 problems")
	_, e := from.run(exitUsage, "", "migrate", "--from", from.store, "--to", server.store)
	require.Contains(t, e, "not empty")
	hasty := newShell(t)
	hasty.ok("cluster", "create", "--heartbeat", "500ms", "--dead-after", "2s", "--cluster", "hasty")
	_, e = hasty.run(exitOK, "", "migrate", "--from", hasty.store, "--to", server.store, "--cluster", "hasty")
	require.Contains(t, e, "counts as dead after 2s here")
	back := from.copied("migrate", "--from", server.store, "--to", to.store)
	require.Equal(t, there.Report, back.Report)
	require.Equal(t, from.states(), to.states())
	require.Contains(t, to.ok("check"), " 0 problems")
}

// worker runs a worker that echoes until stop is called.
func (s *shell) worker(client *futures.Client) (stop func()) {
	w, err := workers.New(client, workers.Options{})
	require.NoError(s.t, err)
	require.NoError(s.t, w.Register("echo", func(_ context.Context, args []byte) ([]byte, error) { return args, nil }))
	stop = storetest.Background(s.t, w.Run)
	<-w.Ready()
	return stop
}

// testAwaitAcrossAMove awaits futures by their ids on a server whose versions are
// lower than those of the store that they were submitted to.
func testAwaitAcrossAMove(t *testing.T, file string) {
	from, to := newShell(t), &shell{t, "fdb:" + file}
	var ids []layout.ID
	var before kv.Version
	version := func(ctx context.Context, c *futures.Client) kv.Version {
		v, err := c.Cluster().Database().Begin(kv.Options{}).ReadVersion(ctx)
		require.NoError(t, err)
		return v
	}
	for range 30 {
		from.open("spanning", func(ctx context.Context, c *futures.Client) { before = version(ctx, c) })
	}
	from.open("spanning", func(ctx context.Context, c *futures.Client) {
		stop := from.worker(c)
		var last *futures.Future
		for i := range 20 {
			if i == 10 {
				_, err := last.Await(ctx)
				require.NoError(t, err)
				stop()
			}
			f, err := c.Submit(ctx, futures.Task{Function: "go:echo", Args: []byte("x")})
			require.NoError(t, err)
			last, ids = f, append(ids, f.ID())
		}
	})
	from.ok("migrate", "--from", from.store, "--to", to.store, "--cluster", "spanning")
	to.open("spanning", func(ctx context.Context, c *futures.Client) {
		require.Less(t, version(ctx, c), before)
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		stop := to.worker(c)
		for _, id := range ids {
			result, err := c.Future(id).Await(ctx)
			require.NoError(t, err)
			require.Equal(t, []byte("x"), result.Value)
		}
		stop()
	})
	require.Contains(t, to.ok("check", "--cluster", "spanning"), " 0 problems")
}

// testMigrateRefusesLivingWorkers moves a cluster that a worker is in, and moves
// it once it has stopped.
func testMigrateRefusesLivingWorkers(t *testing.T, file string) {
	server, to := &shell{t, "fdb:" + file}, newShell(t)
	ctx := context.Background()
	db, err := kvopen.Open(ctx, server.store, kvopen.Options{})
	require.NoError(t, err)
	client, err := futures.New(ctx, db, futures.Options{Cluster: "living", Config: layout.Config{
		Heartbeat: 100 * time.Millisecond, DeadAfter: 2 * time.Second,
	}})
	require.NoError(t, err)
	stop := server.worker(client)
	move := []string{"migrate", "--from", server.store, "--to", to.store, "--cluster", "living"}
	_, e := server.run(exitUsage, "", move...)
	require.Contains(t, e, "in use by worker")
	stop()
	require.NoError(t, client.Close(ctx))
	require.NoError(t, db.Close())
	server.ok(move...)
	require.Contains(t, to.ok("check", "--cluster", "living"), " 0 problems")
}

func testBackupAndRestore(t *testing.T, file string) {
	s, restored := &shell{t, "fdb:" + file}, newShell(t)
	local := newShell(t)
	local.fill()
	backup := filepath.Join(t.TempDir(), "backup")
	made := local.copied("backup", backup)
	there := s.copied("restore", backup, "--cluster", "restored")
	require.Equal(t, made.SHA256, there.SHA256)
	again := s.copied("backup", backup+"2", "--cluster", "restored")
	require.Equal(t, made.SHA256, again.SHA256)
	require.True(t, again.OneVersion)
	require.Equal(t, made.SHA256, restored.copied("restore", backup+"2").SHA256)
	require.Contains(t, restored.ok("check", "--cluster", "restored"), " 0 problems")
}
