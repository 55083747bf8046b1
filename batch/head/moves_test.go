package head

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/internal/bubble"
)

// mute is a dispatcher whose first roll calls fail.
type mute struct {
	Dispatcher
	fails   int
	workers []Candidate
}

func (m *mute) RollCall(context.Context, *batch.Template) ([]Candidate, error) {
	if m.fails--; m.fails >= 0 {
		return nil, errors.New("it does not answer")
	}
	return append([]Candidate(nil), m.workers...), nil
}

// moves is a store that notes who is given items.
type moves struct {
	batch.Mover
	to []string
}

func (m *moves) Move(_ context.Context, _ string, to *batch.Chunk, _ int) (int, error) {
	m.to = append(m.to, to.Worker)
	return 1, nil
}

// TestAWorkerThatIsDoneIsRemembered has a worker be done with its items whose last heartbeat says that it is busy,
// and the first roll call after that fail.
func TestAWorkerThatIsDoneIsRemembered(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		calls := &mute{fails: 1, workers: []Candidate{{Worker: "done", Slots: 1}, {Worker: "other", Slots: 1}}}
		h, store := New(Options{Dispatcher: calls}), &moves{}
		d := newDriver(h, "b")
		b := &batch.Batch{ID: "b", Template: batch.Template{Config: batch.Config{Nodes: 2}}}
		look := func(loads ...batch.Load) error {
			next, err := d.balance(t.Context(), store, b, loads)
			if !next.IsZero() {
				<-time.After(time.Until(next))
			}
			return err
		}
		has := batch.Load{Worker: "has", Items: 9}
		require.NoError(t, look(has, batch.Load{Worker: "done", Items: 1}))
		<-time.After(time.Minute)
		require.Error(t, look(has))
		require.NoError(t, look(has))
		require.Equal(t, []string{"done"}, store.to)
		for range 9 { // nobody else may have items
			d.moves.see([]batch.Load{has, {Worker: "done"}}, time.Now(), time.Second)
			d.moves.see([]batch.Load{has}, time.Now(), time.Second)
		}
		require.Equal(t, []string{"done"}, d.moves.done, "once")
	})
}
