package peerhead_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestArgumentsThatAreNoText has a peer as the only worker: what JSON can't carry as it is, it is not given.
func TestArgumentsThatAreNoText(t *testing.T) {
	for name, spec := range map[string]layout.Spec{
		"argv": {Argv: []string{"a", "\xff"}}, "env": {Env: map[string]string{"X": "\xff"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			inWorld(t, peerhead.Options{Logger: logger}, func(w *world) {
				p := w.join("p", 8)
				spec.Function = "go:f"
				made, err := w.cluster.Submit(context.Background(), []fdbmodel.Submission{{Spec: spec}})
				require.NoError(w, err)
				w.settle(time.Minute)
				require.Empty(w, p.orders)
				require.Contains(w, []layout.State{layout.Ready, layout.Delayed}, w.stateOf(made[0].ID))
				require.Contains(w, log.String(), "no text in UTF-8")
			})
		})
	}
}

// narrow is a network that carries no order of more than one item.
type narrow struct{ *world }

func (n narrow) Call(ctx context.Context, to peerhead.PeerID, message []byte) ([]byte, error) {
	m, err := protocol.Decode(message)
	if err != nil {
		return nil, err
	}
	if o, ok := m.(*protocol.WorkOrderBatch); ok && len(o.Items) > 1 {
		return nil, fmt.Errorf("%w: %w", p2p.ErrNotSent, p2p.ErrTooLarge)
	}
	return n.world.Call(ctx, to, message)
}

// Send implements peerhead.Network.
func (n narrow) Send(ctx context.Context, to peerhead.PeerID, message []byte) error {
	m, err := protocol.Decode(message)
	if err != nil {
		return err
	}
	if o, ok := m.(*protocol.WorkOrderBatch); ok && len(o.Arguments) > 1 {
		return fmt.Errorf("%w: %w", p2p.ErrNotSent, p2p.ErrTooLarge)
	}
	return n.world.Send(ctx, to, message)
}

// TestOrdersThatAreTooLargeForNodesOfB7S has them get smaller ones too, and none of them be lost.
func TestOrdersThatAreTooLargeForNodesOfB7S(t *testing.T) {
	inWorld(t, peerhead.Options{Manifest: manifestOf}, func(w *world) {
		w.stop()
		w.network = narrow{w}
		w.start(peerhead.Options{Manifest: manifestOf})
		n := w.node("node", protocol.DialectChunk)
		w.submitModules(0, "first")
		w.settle(2 * time.Minute)
		w.head.Prove(n.id)
		before := w.head.Peers()[0].Worker
		ids := w.submitModules(0, "a", "b", "c", "d", "e", "f", "g", "h")
		w.settle(2 * time.Minute)
		for _, id := range ids {
			require.Equal(w, layout.Realized, w.stateOf(id))
		}
		require.Equal(w, before, w.head.Peers()[0].Worker)
		require.Zero(w, w.rows(ids)[0].Attempts.Deaths.Len())
	})
}

// TestOrdersThatAreTooLargeForTheNetwork has a network carry less than orders have. Peers get smaller ones.
func TestOrdersThatAreTooLargeForTheNetwork(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		w.stop()
		w.network = narrow{w}
		w.start(peerhead.Options{})
		w.join("p", 8)
		ids := w.submit(16)
		w.settle(time.Minute)
		w.requireEchoes(ids)
		require.EqualValues(w, 1, w.head.Peers()[0].Score)
	})
}
