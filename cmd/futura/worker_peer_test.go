package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/futura-run/futura/protocol/p2p"
)

// peerWorkerSaid is what a worker that serves heads says once it runs.
type peerWorkerSaid struct {
	Worker    string
	Heads     []string
	Addresses []string
}

// startPeerWorker runs a worker that serves heads.
func startPeerWorker(t *testing.T, args ...string) (said peerWorkerSaid, log *stacktest.Buffer, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	log = &stacktest.Buffer{}
	code := make(chan int, 1)
	go func() {
		args = append([]string{"worker", "--json", "--module-cache", t.TempDir()}, args...)
		code <- run(ctx, args, strings.NewReader(""), out, log)
		_ = out.CloseWithError(io.ErrUnexpectedEOF)
	}()
	require.NoError(t, json.NewDecoder(in).Decode(&said), "%s", log)
	stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { stop() })
	return said, log, stop
}

// TestAWorkerWithoutAStoreRunsModulesForItsHead submits to a head that has no other
// worker, beside a worker that the head does not know.
func TestAWorkerWithoutAStoreRunsModulesForItsHead(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	state := t.TempDir()
	key, err := p2p.LoadKey(filepath.Join(state, "peer.key"))
	require.NoError(t, err)
	allowed, err := p2p.KeyID(key)
	require.NoError(t, err)
	head, headLog, _ := startHead(t, "--store", s.store, "--peers", "/ip4/127.0.0.1/tcp/0",
		"--allow-peer", string(allowed))
	module := filepath.Join(t.TempDir(), "copy.wasm")
	require.NoError(t, os.WriteFile(module, copying(), 0o600))
	s.ok("function", "put", module, "--alias", "copy")
	stranger, _, _ := startPeerWorker(t, "--head", head.Peers[0])
	require.Eventually(t, func() bool { return strings.Contains(headLog.String(), stranger.Worker) }, time.Minute,
		time.Millisecond, "the head says who was refused")
	require.NotContains(t, s.ok("peers", "--json"), stranger.Worker)
	id := string(allowed)
	for range 2 { // a restart, with the same id
		said, log, stop := startPeerWorker(t, "--head", head.Peers[0], "--state", state)
		require.Equal(t, id, said.Worker)
		require.Len(t, said.Heads, 1)
		require.Empty(t, said.Addresses)
		out, _ := s.run(exitOK, "", "submit", "wasm:copy", "--args", "hello", "--wait")
		require.Contains(t, out, "hello", "%s", log)
		require.Contains(t, s.ok("peers", "--json"), id)
		twin := []string{"worker", "--head", head.Peers[0], "--peer-key", filepath.Join(state, "peer.key")}
		var none, refused stacktest.Buffer
		require.Equal(t, exitStore, run(t.Context(), twin, strings.NewReader(""), &none, &refused), "%s", &refused)
		require.Contains(t, refused.String(), "another worker runs with the key")
		require.Equal(t, exitOK, stop(), "%s", log)
	}
}

func TestFlagsOfAWorkerWithoutAStore(t *testing.T) {
	t.Parallel()
	const head = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWGRUVh7G4XJuE9VX2ZqNmyJ5y5fBqFfVFA6K1fQ7kzabc"
	broken := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(broken, []byte("x"), 0o600))
	for says, args := range map[string][]string{
		"--store and --head":     {"--head", head, "--store", "memory:"},
		"--cluster and --head":   {"--head", head, "--cluster", "c"},
		"--queue and --head":     {"--head", head, "--queue", "q"},
		"ends in the head's id":  {"--head", "127.0.0.1:9527"},
		"--state needs --head":   {"--state", t.TempDir()},
		"--discover needs":       {"--discover", "lab"},
		"has no address":         {"--head", head[strings.Index(head, "/p2p/"):]},
		"LocalDiscovery":         {"--head", head, "--discover", "no group"},
		"needs --peer-listen":    {"--allow-any-head"},
		"key":                    {"--head", head, "--peer-key", broken},
		"--slots 0":              {"--head", head, "--slots", "0"},
		"unusable address":       {"--head", head, "--peer-listen", "0.0.0.0:1"},
		"unusable address: \"x/": {"--head", "x/p2p/y"},
		"--state":                {"--head", head, "--state", broken},
	} {
		var out, log stacktest.Buffer
		code := run(t.Context(), append([]string{"worker"}, args...), strings.NewReader(""), &out, &log)
		require.Equal(t, exitUsage, code, "%v: %s", args, &log)
		require.Contains(t, log.String(), says)
	}
}

// TestAWorkerThatCanNotSayWhereItIsEnds as one with a store does.
func TestAWorkerThatCanNotSayWhereItIsEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	key, err := p2p.LoadKey(filepath.Join(t.TempDir(), "head.key"))
	require.NoError(t, err)
	id, err := p2p.KeyID(key)
	require.NoError(t, err)
	var log stacktest.Buffer
	code := run(ctx, []string{"worker", "--head", "/ip4/127.0.0.1/tcp/1/p2p/" + string(id), "--module-cache", t.TempDir()},
		strings.NewReader(""), fullDevice{}, &log)
	require.NoError(t, ctx.Err(), "%s", &log)
	require.Equal(t, exitStore, code, "%s", &log)
}
