package p2p

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"github.com/multiformats/go-multistream"
)

// recheck looks at a peer's other connections when it makes a new one: a peer that lost
// power, or its way here, leaves one behind on which nothing moves, and libp2p would go
// on sending there.
func (h *Host) recheck(_ network.Network, fresh network.Conn) {
	for _, c := range h.node.Network().ConnsToPeer(fresh.RemotePeer()) {
		if c == fresh || c.IsClosed() || !h.begin() {
			continue
		}
		go func() {
			defer h.end()
			if err := h.ping(c); err != nil {
				h.log.Info("a connection is dead: its peer has made another", "peer", c.RemotePeer().String(), "error", err)
				_ = c.Close()
			}
		}()
	}
}

// ping waits for an answer over one connection.
func (h *Host) ping(c network.Conn) error {
	const size = 32
	ctx, cancel := context.WithTimeout(h.ctx, h.limits.DialTimeout/2)
	defer cancel()
	s, err := c.NewStream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Reset() }()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	if _, err := multistream.SelectOneOf([]protocol.ID{ping.ID}, s); err != nil {
		return err
	}
	sent := fmt.Appendf(nil, "%*d", size, time.Now().UnixNano())
	if _, err := s.Write(sent); err != nil {
		return err
	}
	got := make([]byte, size)
	if _, err := io.ReadFull(s, got); err != nil {
		return err
	}
	if !bytes.Equal(sent, got) {
		return fmt.Errorf("ping: %q came back as %q", sent, got)
	}
	return nil
}
