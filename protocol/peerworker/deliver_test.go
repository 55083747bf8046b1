package peerworker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// narrowNetwork carries no message of more than most bytes.
type narrowNetwork struct {
	*memory
	most int
}

func (n narrowNetwork) Call(ctx context.Context, peer string, message []byte) ([]byte, error) {
	if len(message) > n.most {
		return nil, fmt.Errorf("%w: %w: %d bytes", p2p.ErrNotSent, p2p.ErrTooLarge, len(message))
	}
	return n.memory.Call(ctx, peer, message)
}

// TestOutcomesThatAreTooLargeTogether has items fail with messages of which JSON makes six times as much, so that the
// network does not carry as many as usual in one message.
func TestOutcomesThatAreTooLargeTogether(t *testing.T) {
	t.Parallel()
	n, h, o := withHead(t)
	o.Network = narrowNetwork{n, 100 << 10}
	w, err := New(o)
	require.NoError(t, err)
	require.NoError(t, w.Register("garble", func(context.Context, []byte) ([]byte, error) {
		return nil, errors.New(strings.Repeat("\x01", 8000))
	}))
	r := start(t, w, n)
	order := goOrder("garble", make([]string, 20)...)
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	for _, x := range h.all(order.ChunkID, 20) {
		require.Len(t, x.Message, 8000)
	}
	r.idle()
}
