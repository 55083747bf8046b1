package peerhead_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestArgumentsThatNoMessageCarries has a peer as the only worker: it runs what a message carries, and rejects
// what is one byte larger, with the limit, and without holding up what is sent beside it.
func TestArgumentsThatNoMessageCarries(t *testing.T) {
	require.Equal(t, protocol.MaxArgs, layout.MaxPeerArgs)
	for name, test := range map[string]struct {
		args, argv int
		says       string
	}{
		"arguments": {args: protocol.MaxArgs, says: fmt.Sprint("at most ", protocol.MaxArgs)},
		"argv":      {argv: batch.MaxArguments, says: fmt.Sprint("and ", batch.MaxArguments, " bytes")},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			inWorld(t, peerhead.Options{Logger: logger}, func(w *world) {
				w.join("p", 8, func(p *fakePeer) {
					p.run = func(_ *protocol.WorkOrderBatch, i int) protocol.Outcome {
						return protocol.Outcome{Index: i, Code: protocol.CodeOK}
					}
				})
				var ids []layout.ID
				for _, more := range []int{0, 1} {
					sub := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Codec: layout.CodecRaw}}
					if test.argv > 0 {
						sub.Spec.Argv = []string{strings.Repeat("x", test.argv+more)}
					} else {
						drawn, err := w.cluster.DrawIDs(1)
						require.NoError(w, err)
						sub.ID = drawn[0]
						ref, err := w.cluster.PutArgs(context.Background(), sub.ID, make([]byte, test.args+more))
						require.NoError(w, err)
						sub.Spec.ArgsRef = &ref
					}
					made, err := w.cluster.Submit(context.Background(), []fdbmodel.Submission{sub})
					require.NoError(w, err)
					ids = append(ids, made[0].ID)
				}
				small := w.submit(3)
				w.settle(time.Minute)
				for _, id := range append(small, ids[0]) {
					require.Equal(w, layout.Realized, w.stateOf(id))
				}
				require.Contains(w, []layout.State{layout.Ready, layout.Delayed}, w.stateOf(ids[1]))
				require.Contains(w, log.String(), test.says)
			})
		})
	}
}

// TestStandardInputThatNoNodeTakes has a node of b7s run a module with as much standard input as it is sent, and
// reject one byte more.
func TestStandardInputThatNoNodeTakes(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	inWorld(t, peerhead.Options{Manifest: manifestOf, Logger: logger}, func(w *world) {
		w.node("node", protocol.DialectChunk)
		function := w.rows(w.submitModules(0, "first"))[0].Spec.Function
		var ids []layout.ID
		for more := range 2 {
			made, err := w.cluster.Submit(context.Background(), []fdbmodel.Submission{{
				Spec: layout.Spec{Function: function, Argv: []string{"a"}},
				Args: bytes.Repeat([]byte("x"), batch.MaxItem+more),
			}})
			require.NoError(w, err)
			ids = append(ids, made[0].ID)
		}
		w.settle(5 * time.Minute)
		require.Equal(w, layout.Realized, w.stateOf(ids[0]))
		require.Contains(w, []layout.State{layout.Ready, layout.Delayed}, w.stateOf(ids[1]))
		require.Contains(w, log.String(), "of 32001 bytes: this peer is sent at most 32000; have a worker")
	})
}
