package workers

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers/objects/peer"
)

// TestWorkersTakeHints over the connections of objects, unless they are told not to.
func TestWorkersTakeHints(t *testing.T) {
	t.Parallel()
	for _, without := range []bool{false, true} {
		b := newBed(t, layout.Config{}, nil)
		w := b.start(Options{NoHints: without, Objects: ObjectOptions{Memory: 1 << 20}}, nil)
		info, err := b.cluster.Registered(b.ctx, w.ID())
		require.NoError(t, err)
		client, err := peer.NewClient(peer.Options{Token: string(info.Secret)})
		require.NoError(t, err)
		line, err := client.OpenHints(b.ctx, strings.Fields(info.Objects)[0], peer.Owner{}, nil)
		if without {
			require.ErrorContains(t, err, "takes no hints")
		} else {
			require.NoError(t, err)
			heeded, err := line.Hint(context.Background(), []byte("no demand"), 1)
			require.NoError(t, err)
			require.Zero(t, heeded)
			line.Close()
		}
		require.NoError(t, client.Close())
	}
}
