package peerworker

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// brokenRunner runs no module.
type brokenRunner struct{}

func (brokenRunner) RunModule(context.Context, workers.ModuleCall) (workers.ModuleOutcome, error) {
	return workers.ModuleOutcome{}, errors.New("it is broken")
}

// TestLinesNameFuturesAsTheirHeadsDo has a worker log that it can't run an item: the line has the
// id of the head's future, and not that of its own.
func TestLinesNameFuturesAsTheirHeadsDo(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		var log stacktest.Buffer
		h := newHead(t, n, headID)
		o.Modules, o.Logger = brokenRunner{}, slog.New(slog.NewTextHandler(&log, nil)).With("at", "test")
		code := []byte("\x00asm")
		cid := cidOf(t, code)
		h.blobs = map[string][]byte{cid: code}
		w := run(t, o)
		m := moduleOrder(cid, []string{})
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		require.Equal(t, protocol.CodeUnavailable, h.all(m.ChunkID, 1)[0].Code)
		w.idle()
		text := log.String()
		require.Contains(t, text, "future="+m.Items[0].ID+" attempt=1 head="+headID+" chunk="+m.ChunkID)
		require.Contains(t, text, "at=test")
		items := (&order{WorkOrderBatch: m})
		require.Nil(t, items.readItems())
		require.NotContains(t, text, items.items[0].localID(headID).String())
	})
}
