package workers

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestNestedFanOutIsNamed has parents hold all slots while they wait for their
// children, until another worker comes.
func TestNestedFanOutIsNamed(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	log := &lines{}
	var waits sync.WaitGroup
	waits.Add(2)
	children := make(chan layout.ID, 2)
	functions := map[string]Function{
		"parent": func(ctx context.Context, _ []byte) ([]byte, error) {
			child := b.one("go:child")
			children <- child
			ended := layout.NoteAwait(ctx)
			defer ended()
			waits.Done()
			for stateOf(b, child) != layout.Realized {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
			}
			ended()
			return nil, nil
		},
		"child": echo,
	}
	w := b.start(Options{Slots: 2, Logger: log.logger(slog.LevelInfo)}, functions)
	parents := b.many(2, "go:parent")
	waits.Wait()
	child := <-children
	b.await("the explanation", func() bool {
		e, err := inspect.Explain(b.ctx, b.cluster, child)
		require.NoError(t, err)
		return e.Reason == inspect.ReasonStalled
	})
	b.await("the line in the log", func() bool { return len(log.about(t, "all slots are held")) > 0 })
	b.start(Options{Slots: 1}, map[string]Function{"child": echo})
	b.awaitOver(parents...)
	require.Len(t, log.about(t, "all slots are held"), 1)
	require.Zero(t, w.slots.awaits())
}
