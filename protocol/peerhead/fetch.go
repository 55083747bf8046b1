package peerhead

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/internal/budget"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// Bounds of values that are fetched.
const (
	// peerFetches are those of one peer at a time. The network bounds those of all.
	peerFetches = 2
	// smallFetch is what each may have in memory. What is larger waits for its share of
	// largeFetches once so much is here, so that peers that send slowly hold up nobody.
	smallFetch   = 4 << 20
	largeFetches = 256 << 20
)

// fetch returns a value that the peer has as a blob.
func (h *Head) fetch(ctx context.Context, p *peer, b *protocol.Blob) ([]byte, error) {
	if err := p.fetches.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer p.fetches.Release(1)
	value := &fetched{size: b.Size, ctx: ctx, large: h.fetches}
	defer value.release()
	if err := h.options.Network.FetchBlob(ctx, p.id, b.ID, value, p2p.FetchOptions{Limit: b.Size}); err != nil {
		return nil, fmt.Errorf("the value was not fetched: %w", err)
	}
	return value.bytes, nil
}

// fetched is a value as it comes.
type fetched struct {
	ctx   context.Context
	size  int64
	large *budget.Bytes
	held  int64
	bytes []byte
}

// Write implements io.Writer. It waits for memory.
func (f *fetched) Write(b []byte) (int, error) {
	if f.held == 0 && len(f.bytes)+len(b) > smallFetch {
		if err := f.large.Acquire(f.ctx, f.size); err != nil {
			return 0, err
		}
		f.held = f.size
		f.bytes = append(make([]byte, 0, f.size), f.bytes...)
	}
	f.bytes = append(f.bytes, b...)
	return len(b), nil
}

func (f *fetched) release() { f.large.Release(f.held) }
