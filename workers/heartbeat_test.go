package workers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestHeartbeatsTellWhatIsFree has a function take a part of its worker.
func TestHeartbeatsTellWhatIsFree(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(true)
	w := b.start(Options{Slots: 2, CPU: 1000, RAM: 500}, map[string]Function{"work": work.run})
	id := b.one("go:work", func(s *fdbmodel.Submission) { s.Spec.Requirements = layout.Requirements{CPU: 600, RAM: 100} })
	b.begins(work)
	first, found := b.member(w.ID())
	require.True(t, found)
	require.NotZero(t, first.StartedAt)
	told := func(want layout.Resources) func() bool {
		return func() bool { m, _ := b.member(w.ID()); return m.Heartbeat.Free == want }
	}
	b.await("a heartbeat beside the function", told(layout.Resources{Slots: 1, CPU: 400, RAM: 400}))
	close(work.end)
	b.awaitOver(id)
	b.await("a heartbeat after it", told(layout.Resources{Slots: 2, CPU: 1000, RAM: 500}))
	last, _ := b.member(w.ID())
	require.NotEqual(t, first.Beat, last.Beat)
}
