//go:build linux

package b7s

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// startOwnHead starts a head of the project that takes nodes of b7s as workers, and
// answers in a dialect.
func (d dialect) startOwnHead(t *testing.T) *node {
	t.Helper()
	rest := freeAddress(t)
	args := []string{
		"head", "--store", "embedded:" + filepath.Join(t.TempDir(), "store"), "--rest-api", rest, "--open",
		"--install-private", "--any-peer", "--peers", "/ip4/127.0.0.1/tcp/0", "--b7s-workers", "--batch-answer", d.container,
	}
	if d.container == "strands" {
		args = append(args, "--b7s-strands")
	}
	n := &node{process: startProcess(t, "own head", built(commandName), args...), own: true, dialect: d}
	n.address, n.id = addressIn(t, n.await(t, "  peers "))
	n.rest = "http://" + rest
	return n
}

// startOwnWorker starts a worker of the project that serves a head.
func startOwnWorker(t *testing.T, name string, head *node) *node {
	t.Helper()
	n := &node{process: startProcess(t, name, built(commandName), "worker", "--head", head.address, "--install-private",
		"--slots", "2"), own: true}
	n.id = regexp.MustCompile(`worker (12D3\w+) serves`).FindStringSubmatch(n.await(t, " serves "))[1]
	return n
}

// addressIn finds the address of a peer in a line.
func addressIn(t *testing.T, line string) (address, id string) {
	t.Helper()
	found := regexp.MustCompile(`/ip4/\S*/p2p/(\w+)`).FindStringSubmatch(line)
	require.NotNil(t, found, line)
	return found[0], found[1]
}
