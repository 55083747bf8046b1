package workers

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// TestResultsOutliveTheirWorker has a worker die that has realized a future with
// a result in its record, and one with a large result.
func TestResultsOutliveTheirWorker(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	w := b.start(Options{Slots: 1}, map[string]Function{"echo": echo})
	sizes := map[layout.ID]int{}
	for _, size := range []int{10, 300_000} {
		id := b.one("go:echo", func(s *fdbmodel.Submission) { s.Args = make([]byte, size) })
		b.awaitOver(id)
		sizes[id] = size
	}
	w.crash()
	<-w.done
	b.declareDead(w.ID())
	_, there := b.member(w.ID())
	require.False(t, there)
	other := b.start(Options{Slots: 1}, map[string]Function{"echo": echo})
	b.awaitOver(b.one("go:echo"))
	for range 3 {
		b.clock.Advance(b.cluster.Config().DeadAfter)
		b.awaitOver(b.one("go:echo"))
	}
	require.Zero(t, other.Stats().Lost)
	for id, size := range sizes {
		row := b.row(id)
		require.Equal(t, layout.Realized, row.State())
		value, err := results.Of(b.cluster).Value(b.ctx, id, row.Result)
		require.NoError(t, err)
		require.True(t, bytes.Equal(make([]byte, size), value))
	}
}
