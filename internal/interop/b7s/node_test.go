//go:build linux

package b7s

import (
	"crypto/ed25519"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Names of what build makes.
const (
	runtimeName = "bls-runtime"
	commandName = "futura"
	benchName   = "futura-bench"
	moduleName  = "echo.wasm"
)

// dialect is a branch of b7s.
type dialect struct {
	branch   string
	variable string
	// container is the field of a batch's reply that has its chunks.
	container string
	stored    bool // needs a store for its batches
}

func dialects() []dialect {
	return []dialect{
		{branch: "batch-persist", variable: persistNode, container: "chunks", stored: true},
		{branch: "batched-execution-requests", variable: batchedNode, container: "strands"},
	}
}

// program is the dialect's node, or the test is skipped.
func (d dialect) program(t *testing.T) string {
	t.Helper()
	name := os.Getenv(d.variable)
	if name == "" {
		t.Skipf("%s names no node of b7s's branch %s", d.variable, d.branch)
	}
	return name
}

// node is a running node of b7s, or a process of the project that plays one.
type node struct {
	*process
	own     bool    // of the project
	dialect dialect // in which a head answers
	name    string
	program string
	args    []string
	dir     string
	id      string // of its peer
	address string // of the peer, with its id
	rest    string // of a head's API
}

// startHead starts a head of b7s and waits until it works.
func (d dialect) startHead(t *testing.T) *node {
	t.Helper()
	const database = "b7s-db"
	rest := freeAddress(t)
	args := []string{"--rest-api", rest}
	var store ferret
	if d.stored {
		store = startFerret(t)
		args = append(args, "--batch-db-server", store.uri, "--batch-db-name", database)
	}
	n := d.start(t, "b7s head", "head", append(args, "--log-level", "trace")...)
	if d.stored {
		store.indexKeys(t, database)
	}
	n.rest = "http://" + rest
	awaitListener(t, rest)
	return n
}

// awaitListener waits until something listens: a head of b7s does not say when.
func awaitListener(t *testing.T, address string) {
	t.Helper()
	const again = 5 * time.Millisecond
	for limit := time.Now().Add(startLimit); ; <-time.After(again) {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			require.NoError(t, connection.Close())
			return
		}
		require.True(t, time.Now().Before(limit), "nothing listens within %s: %v", startLimit, err)
	}
}

// startWorker starts a worker of b7s, which connects to some nodes.
func (d dialect) startWorker(t *testing.T, name string, boot ...string) *node {
	t.Helper()
	args := []string{"--runtime-path", os.Getenv(builtDir), "--runtime-cli", runtimeName, "--log-level", "debug"}
	for _, address := range boot {
		args = append(args, "--boot-nodes", address)
	}
	return d.start(t, name, "worker", args...)
}

func (d dialect) start(t *testing.T, name, role string, args ...string) *node {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, newKey(t), 0o600))
	n := &node{name: name, dialect: d, program: d.program(t), dir: dir, args: append([]string{
		"--role", role, "--address", "127.0.0.1", "--port", "0", "--private-key", key,
		"--workspace", filepath.Join(dir, "workspace"), "--db", filepath.Join(dir, "db"),
	}, args...)}
	n.launch(t)
	return n
}

// launch starts the node's process, and waits until it works.
func (n *node) launch(t *testing.T) {
	t.Helper()
	n.process = startProcess(t, n.name, n.program, n.args...)
	var created struct {
		ID        string
		Addresses []string
	}
	require.NoError(t, json.Unmarshal([]byte(n.await(t, `"created host"`)), &created))
	require.NotEmpty(t, created.Addresses)
	n.id, n.address = created.ID, created.Addresses[0]
	n.await(t, "starting node main loop")
}

// wipe removes what a node that has ended knows, except for its key.
func (n *node) wipe(t *testing.T) {
	t.Helper()
	for _, name := range []string{"workspace", "db"} {
		require.NoError(t, os.RemoveAll(filepath.Join(n.dir, name)))
	}
}

// newKey is a private key as b7s's nodes read it: libp2p's protobuf.
func newKey(t *testing.T) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	const header = "\x08\x01\x12\x40" // type: Ed25519; data: 64 bytes
	return append([]byte(header), key...)
}

// freeAddress is one that nobody listened at a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0") // where no host takes a port meanwhile
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}
