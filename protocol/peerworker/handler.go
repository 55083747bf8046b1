package peerworker

import (
	"context"
	"io"

	"github.com/futura-run/futura/protocol"
)

// handler is the worker as its network sees it.
type handler Worker

// Called implements Handler.
func (h *handler) Called(ctx context.Context, peer string, message []byte) []byte {
	w := (*Worker)(h)
	var answer protocol.Message
	m, err := protocol.Decode(message)
	if err != nil {
		w.counts.garbage.Add(1)
		w.log.Debug("a peer sent what can't be read", "peer", peer, "error", err)
		answer = &protocol.Ack{Code: protocol.CodeInvalid, Message: cut(err.Error())}
	} else {
		answer = w.answer(ctx, peer, m)
	}
	data, err := protocol.Encode(answer, protocol.DialectFutura)
	if err != nil {
		w.log.Error("an answer can't be encoded", "error", err)
	}
	return data
}

func (w *Worker) answer(ctx context.Context, peer string, m protocol.Message) protocol.Message {
	if !w.mayOrder(peer) {
		return &protocol.Ack{Code: protocol.CodeNotPermitted, Message: "this worker does not serve " + cut(peer)}
	}
	switch m := m.(type) {
	case *protocol.WorkOrderBatch:
		return w.take(ctx, peer, m)
	case *protocol.TakeBack:
		return w.giveUpLater(peer, m)
	case *protocol.CancelOrder:
		c := w.chunk(chunkName{peer, m.ChunkID})
		if c == nil {
			return &protocol.Ack{Code: protocol.CodeNotFound, ChunkID: m.ChunkID, Message: "no such chunk"}
		}
		c.cancel(ctx, m.Indexes, m.Reason)
		return &protocol.Ack{Code: protocol.CodeOK, ChunkID: m.ChunkID}
	default:
		return &protocol.Ack{Code: protocol.CodeNotSupported, Message: "a worker does not take " + m.Type()}
	}
}

// Blob implements Handler.
func (h *handler) Blob(_ context.Context, peer, id string) (io.ReadSeekCloser, int64, error) {
	return (*Worker)(h).blobs.open(peer, id)
}

// PeerChanged implements Handler.
func (h *handler) PeerChanged(p Peer) {
	w := (*Worker)(h)
	if !w.mayOrder(p.ID) {
		return
	}
	w.updateLink(p)
	if !p.Connected {
		w.forgetLink(p.ID)
	}
}
