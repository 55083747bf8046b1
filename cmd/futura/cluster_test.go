package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func TestClusterFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(exitNotFound, "", "cluster", "show")
	_, e := s.run(exitUsage, "", "cluster", "create", "--shards", "3")
	require.Contains(t, e, "power of two")
	s.ok("cluster", "create", "--shards", "4", "--retention", "72h", "--heartbeat", "500ms", "--dead-after", "2s")
	_, e = s.run(exitUsage, "", "cluster", "create")
	require.Contains(t, e, "already exists")
	s.ok("submit", "go:later")
	s.ok("submit", "go:later", "--delay", "1h")
	out := s.ok("cluster", "set", "--heartbeat", "5s", "--dead-after", "15s")
	require.Regexp(t, `dead after +15s\nretention +72h0m0s\nqueue default +1 ready, 1 delayed`, out)
	var got httpapi.Cluster
	require.NoError(t, json.Unmarshal([]byte(s.ok("cluster", "show", "--json")), &got))
	require.Equal(t, httpapi.Cluster{
		Name: "default", Shards: 4, HeartbeatMS: 5000, DeadAfterMS: 15_000, RetentionMS: 72 * 3600_000,
		Counts: []httpapi.Count{
			{Queue: "default", State: "delayed", Futures: 1}, {Queue: "default", State: "ready", Futures: 1},
		},
	}, got)
	for _, args := range [][]string{{}, {"--retention", "-1s"}, {"--heartbeat", "1m"}, {"--shards", "8"}} {
		s.run(exitUsage, "", append([]string{"cluster", "set"}, args...)...)
	}
	require.Contains(t, s.ok("check"), "0 problems")
	s.ok("submit", "go:later", "--cluster", "another")
	require.Regexp(t, `(?m)^CLUSTER +SHARDS +FUTURES *\nanother +1 +1 *\ndefault +4 +2 *$`, s.ok("cluster", "list"))
	require.Equal(t, []clusterView{
		{Name: "another", Shards: 1, Futures: 1}, {Name: "default", Shards: 4, Futures: 2},
	}, listed[clusterView](t, "clusters", s.ok("cluster", "list", "--json")))
}

// TestCommandsMakeOneKindOfCluster makes a cluster by each command that can: its
// settings are those that dev gives it.
func TestCommandsMakeOneKindOfCluster(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	module := filepath.Join(t.TempDir(), "copy.wasm")
	require.NoError(t, os.WriteFile(module, copying(), 0o600))
	for cluster, args := range map[string][]string{
		"a": {"submit", "go:f"}, "b": {"function", "put", module}, "c": {"cluster", "create", "--retention", "1h"},
	} {
		s.ok(append(args, "--cluster", cluster)...)
		require.Regexp(t, `heartbeat +500ms\ndead after +2s\n`, s.ok("cluster", "show", "--cluster", cluster), args)
	}
	require.Regexp(t, `heartbeat +7s\ndead after +21s\n`, s.ok("cluster", "create", "--heartbeat", "7s", "--cluster", "d"))
}

// TestPolicyFromTheCommandLine limits what futures may ask for, and takes a limit
// away again.
func TestPolicyFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("cluster", "create", "--max-timeout", "1h", "--max-priority", "7")
	out := s.ok("cluster", "set", "--default-timeout", "1m", "--max-memory", "1024", "--max-output", "10")
	for _, line := range []string{
		`default timeout +1m0s\n`, `longest timeout +1h0m0s\n`, `most memory +1024\n`, `highest priority +7\n`,
		`largest result +10(\n|$)`,
	} {
		require.Regexp(t, line, out)
	}
	for flag, value := range map[string]string{"--timeout": "61m", "--priority": "8", "--ram": "1025"} {
		_, e := s.run(exitUsage, "", "submit", "go:f", flag, value)
		require.Contains(t, e, "this cluster allows at most", flag)
		require.Contains(t, e, "futura cluster set", flag)
	}
	id := s.ok("submit", "go:f", "--priority", "7", "--ram", "1024")
	require.Contains(t, s.ok("get", id, "--json"), `"timeout_ms": 60000`)
	s.ok("cluster", "set", "--max-priority", "0")
	s.ok("submit", "go:f", "--priority", "8")
	var got httpapi.Cluster
	require.NoError(t, json.Unmarshal([]byte(s.ok("cluster", "show", "--json")), &got))
	require.Equal(t, httpapi.Policy{
		DefaultTimeoutMS: 60_000, MaxTimeoutMS: 3600_000, MaxMemory: 1024, MaxOutput: 10,
	}, got.Policy)
	s.run(exitUsage, "", "cluster", "set", "--default-timeout", "2h")
	s.run(exitUsage, "", "worker", "--max-timeout", "-1s")
	require.Contains(t, s.ok("check"), "0 problems")
}

// TestWhatNoWorkerCanRunFromTheCommandLine refuses it at submit, and sets when it
// ends.
func TestWhatNoWorkerCanRunFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	require.Regexp(t, `infeasible after +10m0s`, s.ok("cluster", "create", "--infeasible-after", "10m"))
	s.run(exitUsage, "", "submit", "go:f", "--grow-ram", "2", "--max-ram", "8")
	s.ok("submit", "go:f", "--ram", "4", "--grow-ram", "2", "--max-ram", "8")
	_, e := s.run(exitUsage, "", "submit", "go:f", "--require-fit")
	require.Contains(t, e, "There is no worker in the cluster. Start one.")
	s.run(exitUsage, "", "cluster", "set", "--infeasible-after", "1ms")
	require.Contains(t, s.ok("cluster", "set", "--infeasible-after", "1h", "--json"), `"infeasible_after_ms": 3600000`)
	require.NotContains(t, s.ok("cluster", "set", "--infeasible-after", "0"), "infeasible")
}

// TestLabelsFromTheCommandLine requires labels, and refuses what can't be one.
func TestLabelsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.ok("submit", "go:f", "--require-label", "zone=a", "--require-label", "worker=w-1")
	require.Regexp(t, `labels +worker=w-1,zone=a`, s.ok("get", id))
	var got httpapi.Future
	require.NoError(t, json.Unmarshal([]byte(s.ok("get", id, "--json")), &got))
	require.Equal(t, map[string]string{"zone": "a", "worker": "w-1"}, got.Requirements.Labels)
	for _, args := range [][]string{
		{"submit", "go:f", "--require-label", "zone"}, {"worker", "--label", "a,b=c"},
		{"worker", "--label", "zone=a", "--label", "zone=b"},
	} {
		_, e := s.run(exitUsage, "", args...)
		require.Contains(t, e, "label", args)
	}
}

// TestAClusterWithABrokenCounter shows one below zero, which futura check repairs.
func TestAClusterWithABrokenCounter(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("cluster", "create")
	s.past(func(c *futures.Client, tx kv.Tx) {
		tx.Atomic(kv.Add, c.Cluster().Keys().Count(0, "mail", "", layout.Ready), layout.EncodeCounter(-2))
	})
	require.Regexp(t, `queue mail +-2 ready`, s.ok("cluster", "show"))
}
