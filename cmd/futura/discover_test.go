package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAWorkerFindsItsHeadInTheLocalNetwork starts a worker that knows its head's id and
// group, and no address.
func TestAWorkerFindsItsHeadInTheLocalNetwork(t *testing.T) {
	t.Parallel()
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	const flags = net.FlagUp | net.FlagMulticast
	if !slices.ContainsFunc(interfaces, func(i net.Interface) bool {
		return i.Flags&flags == flags && i.Flags&net.FlagLoopback == 0
	}) {
		t.Skip("no network interface has multicast")
	}
	group := fmt.Sprintf("t%d", rand.Uint32())
	s := newShell(t)
	head, _, _ := startHead(t, "--store", s.store, "--any-peer", "--peers", "/ip4/127.0.0.1/tcp/0", "--discover", group)
	module := filepath.Join(t.TempDir(), "copy.wasm")
	require.NoError(t, os.WriteFile(module, copying(), 0o600))
	s.ok("function", "put", module, "--alias", "copy")
	id := head.Peers[0][strings.LastIndex(head.Peers[0], "/p2p/"):]
	said, log, _ := startPeerWorker(t, "--head", id, "--discover", group)
	require.Equal(t, []string{strings.TrimPrefix(id, "/p2p/")}, said.Heads)
	out, _ := s.run(exitOK, "", "submit", "wasm:copy", "--args", "hello", "--wait")
	require.Contains(t, out, "hello", "%s", log)
}
