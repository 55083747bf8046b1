//go:build linux

package b7s

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBatches has heads of b7s and of the project run batches over HTTP on two
// workers of either, and on one of each. Those of b7s with each other show that
// what the tests start works by itself.
func TestBatches(t *testing.T) {
	for _, d := range dialects() {
		for _, c := range []struct {
			name    string
			head    func(*testing.T) *node
			workers [2]bool // of the project
		}{
			{"b7s head, b7s workers", d.startHead, [2]bool{false, false}},
			{"b7s head, own workers", d.startHead, [2]bool{true, true}},
			{"b7s head, workers of both", d.startHead, [2]bool{false, true}},
			{"own head, b7s workers", d.startOwnHead, [2]bool{false, false}},
			{"own head, workers of both", d.startOwnHead, [2]bool{true, false}},
		} {
			t.Run(d.branch+": "+c.name, func(t *testing.T) {
				d.program(t)
				runBatches(t, d, c.head(t), c.workers)
			})
		}
	}
}

func runBatches(t *testing.T, d dialect, head *node, own [2]bool) {
	t.Helper()
	module, err := os.ReadFile(built(moduleName))
	require.NoError(t, err)
	f := serveFunction(t, module)
	var peers []string
	var has []func(context.Context) bool
	for i, own := range own {
		name := []string{"worker 1", "worker 2"}[i]
		var worker *node
		if own {
			worker = startOwnWorker(t, name, head)
		} else {
			worker = d.startWorker(t, name, head.address)
		}
		peers = append(peers, worker.id)
		if !head.own { // a head of the project gives functions to its workers when they need them
			has = append(has, head.told(worker.id))
		}
	}
	head.install(t, f, has...)
	for _, count := range []int{20, 100, 1000} {
		items := echoes(count)
		begun := time.Now()
		chunks := head.execute(t, f, len(peers), items)
		t.Logf("%d items in %s", count, time.Since(begun).Round(100*time.Microsecond))
		checkChunks(t, f, chunks, peers, items)
	}
	items := append(echoes(9), []string{"bad", "fail"}, []string{"two words"}, []string{"", "no output"})
	checkChunks(t, f, head.execute(t, f, len(peers), items), peers, items)
}
