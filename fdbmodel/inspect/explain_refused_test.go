package inspect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestExplainSaysWhoPassesAFutureOver puts a future back, until the backoff is over.
func TestExplainSaysWhoPassesAFutureOver(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(func(sub *fdbmodel.Submission) {
		sub.Spec.Backoff = layout.Backoff{Base: time.Minute, Max: time.Minute}
	})
	f := s.Claim(s.Worker)
	_, err := s.Worker.Heartbeat(s.Ctx, layout.Heartbeat{Free: s.Worker.Info().Capacity})
	require.NoError(t, err)
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Reject: true})
	e, err := inspect.Explain(s.Ctx, s.C, id)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonPassedOver, e.Reason)
	require.Contains(t, e.Text, "by worker "+string(s.Worker.ID())+", which rejected it at 17:46:40.")
	s.Clock.Advance(2 * time.Minute)
	e, err = inspect.Explain(s.Ctx, s.C, id)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonAboutToMove, e.Reason)
	require.NotContains(t, e.Text, "rejected it")
}

// TestExplainSaysWhatPeersAreNotSent has a peer reject arguments that no message carries, and then a smaller future.
func TestExplainSaysWhatPeersAreNotSent(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	peer, err := s.C.Register(s.Ctx, layout.WorkerInfo{
		Functions: s.Worker.Info().Functions, Queues: s.Worker.Info().Queues, Capacity: layout.Resources{Slots: 1},
		Labels: map[string]string{layout.LabelPeer: "12D3KooWNbW985igznpKwHAf1pxByyNeipQFtEFLynNrWhsEHkL9"},
	})
	require.NoError(t, err)
	require.NoError(t, s.Worker.Leave(s.Ctx))
	ids, err := s.C.DrawIDs(2)
	require.NoError(t, err)
	for more, id := range ids {
		ref, err := s.C.PutArgs(s.Ctx, id, make([]byte, layout.MaxPeerArgs+more))
		require.NoError(t, err)
		s.Submit(func(sub *fdbmodel.Submission) { sub.ID, sub.Args, sub.Spec.ArgsRef = id, nil, &ref })
		f := s.Claim(peer)
		s.Finish(peer, fdbmodel.Completion{Future: &f[0], Reject: true})
		e, err := inspect.Explain(s.Ctx, s.C, id)
		require.NoError(t, err)
		require.Contains(t, e.Text, "which rejected it at")
		require.Equal(t, more > 0, strings.Contains(e.Text,
			" Its arguments have 8388609 bytes, and a peer is sent at most 8388608: have a worker with access"), e.Text)
	}
}
