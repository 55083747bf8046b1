package peerworker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/protocol"
)

// each of its items has for itself.
func TestWhatItemsShareCountsForEach(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	o := options(n)
	o.Modules, o.MaxBytes = echoRunner{}, 4<<20
	w := run(t, o)
	text := strings.Repeat("x", 30_000)
	for _, config := range []protocol.Config{
		{Stdin: text}, {Environment: []batch.EnvVar{{Name: "X", Value: text}}},
	} {
		order := moduleOrder(cidOf(t, []byte("code")), make([][]string, 200)...)
		order.Template.Config = config
		require.Equal(t, protocol.CodeUnavailable, h.order(order).Code)
	}
	w.idle()
}
