package peerworker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/futura-run/futura/protocol/p2p"
)

// host is a Network over libp2p.
type host struct {
	options p2p.Options
	id      p2p.PeerID

	mu   sync.Mutex
	host *p2p.Host
}

// openHost returns a host that does nothing before Serve.
func openHost(o *Options, heads []headAddress) (*host, error) {
	h := &host{options: p2p.Options{
		Key: o.Key, Listen: o.Listen, LocalDiscovery: o.Discover, Version: o.Version, RedialMin: o.RedialMin,
		RedialMax: o.RedialMax, Logger: o.Logger,
	}}
	for _, head := range heads {
		h.options.BootNodes = append(h.options.BootNodes, head.addresses...)
	}
	var err error
	switch {
	case o.Key != nil && o.KeyFile != "":
		return nil, fmt.Errorf("%w: both Key and KeyFile are set", ErrOptions)
	case o.KeyFile != "":
		h.options.Key, err = p2p.LoadKey(o.KeyFile)
	case o.Key == nil:
		h.options.Key, err = p2p.NewKey()
	}
	if err == nil {
		h.id, err = p2p.KeyID(h.options.Key)
	}
	if err != nil {
		return nil, err
	}
	if h.options.Listen == nil {
		h.options.Listen = []string{} // it only dials
	}
	if !o.AllowAnyHead {
		for _, head := range heads {
			h.options.Allow = append(h.options.Allow, p2p.PeerID(head.peer))
		}
	}
	return h, nil
}

// ID implements Network.
func (h *host) ID() string { return string(h.id) }

// Serve implements Network.
func (h *host) Serve(handler Handler) error {
	opened, err := p2p.Open(context.Background(), h.options)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	h.mu.Lock()
	h.host = opened
	h.mu.Unlock()
	opened.OnPeer(func(p p2p.Peer) {
		handler.PeerChanged(Peer{ID: string(p.ID), Connected: p.Connected, Session: p.Session, Futura: p.Futura})
	})
	opened.OnCall(func(ctx context.Context, from p2p.PeerID, message []byte) []byte {
		return handler.Called(ctx, string(from), message)
	})
	opened.OnMessage(func(ctx context.Context, from p2p.PeerID, message []byte, published bool) {
		if published {
			handler.Published(ctx, string(from), message)
		} else {
			handler.Received(ctx, string(from), message)
		}
	})
	opened.ServeBlobs(func(ctx context.Context, to p2p.PeerID, id string) (io.ReadSeekCloser, int64, error) {
		content, size, err := handler.Blob(ctx, string(to), id)
		if errors.Is(err, ErrNoBlob) {
			err = fmt.Errorf("%w: %w", err, fs.ErrNotExist)
		}
		return content, size, err
	})
	return opened.Start()
}

// Call implements Network.
func (h *host) Call(ctx context.Context, peer string, message []byte) ([]byte, error) {
	return h.host.Call(ctx, p2p.PeerID(peer), message)
}

// Send implements Network.
func (h *host) Send(ctx context.Context, peer string, message []byte) error {
	return h.host.Send(ctx, p2p.PeerID(peer), message)
}

// Fetch implements Network.
func (h *host) Fetch(ctx context.Context, peer, id string, limit int64, have io.Reader, to io.Writer,
	progress func(done, total int64),
) error {
	o := p2p.FetchOptions{Limit: limit, Have: have, Progress: progress}
	err := h.host.FetchBlob(ctx, p2p.PeerID(peer), id, to, o)
	switch {
	case errors.Is(err, p2p.ErrBlobUnknown):
		return fmt.Errorf("%w: %w", ErrNoBlob, err)
	case errors.Is(err, p2p.ErrBlobContent):
		return fmt.Errorf("%w: %w", ErrContent, err)
	case errors.Is(err, p2p.ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return err
}

// addresses are where others can reach the host.
func (h *host) addresses() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.host == nil {
		return nil
	}
	return h.host.Addrs()
}

// Close implements Network.
func (h *host) Close() error {
	h.mu.Lock()
	opened := h.host
	h.mu.Unlock()
	if opened == nil {
		return nil
	}
	return opened.Close()
}
