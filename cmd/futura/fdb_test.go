//go:build fdb

package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kvopen"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/fdbtest"
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
	var realized, claimed, ready fdbmodel.ID
	var worker fdbmodel.WorkerID
	s.open("cli", func(ctx context.Context, c *futures.Client) {
		cluster := c.Cluster()
		submit := func() fdbmodel.ID {
			got, err := cluster.Submit(ctx, []fdbmodel.Submission{{Spec: fdbmodel.Spec{Function: "go:count"}}})
			require.NoError(t, err)
			return got[0].ID
		}
		w, err := cluster.Register(ctx, fdbmodel.WorkerInfo{
			Name: "by hand", Functions: []string{"go:count"}, Capacity: fdbmodel.Resources{Slots: 2},
		})
		require.NoError(t, err)
		worker = w.ID()
		claim := func() *fdbmodel.ClaimedFuture {
			answer, err := w.Claim(ctx, fdbmodel.ClaimRequest{Free: fdbmodel.Resources{Slots: 1}, Max: 1})
			require.NoError(t, err)
			require.Len(t, answer.Futures, 1)
			return &answer.Futures[0]
		}
		realized = submit()
		outcomes, err := w.Finish(ctx, []fdbmodel.Completion{
			{Future: claim(), Result: &fdbmodel.Result{Value: []byte("the result is 42")}},
		})
		require.NoError(t, err)
		require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
		claimed = submit()
		claim()
		ready = submit()
	})
	paste := func(id fdbmodel.ID) string {
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
