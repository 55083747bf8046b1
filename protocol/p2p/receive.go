package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/libp2p/go-libp2p/core/network"
)

// takeMessage handles a stream of b7s's protocol.
func (h *Host) takeMessage(s network.Stream) {
	h.receive(s, true, func(r *received) error {
		if err := r.stream.Close(); err != nil {
			return err
		}
		h.counts.received.Add(1)
		(*h.onMessage.Load())(h.ctx, r.from, r.message, false)
		return nil
	})
}

// takeCall handles a stream of Futura's protocol.
func (h *Host) takeCall(s network.Stream) {
	h.receive(s, false, func(r *received) error {
		ctx, cancel := context.WithTimeout(h.ctx, h.limits.AnswerTimeout)
		defer cancel()
		h.counts.answered.Add(1)
		answer := (*h.onCall.Load())(ctx, r.from, r.message)
		switch {
		case len(answer) == 0:
			return ErrNoAnswer
		case len(answer) > h.limits.MaxMessage:
			h.log.Error("an answer is too large and was not sent", "peer", r.from, "bytes", len(answer),
				"limit", h.limits.MaxMessage)
			return ErrTooLarge
		}
		if _, err := h.newPace(s).Write(answer); err != nil {
			return err
		}
		return s.Close()
	})
}

// received is a message and where it came from.
type received struct {
	stream  network.Stream
	from    PeerID
	message []byte
}

// receive reads a message and has it handled, within the peer's share of everything.
// The stream stays open until there is a handler, so that streams that wait count
// against their peer.
func (h *Host) receive(s network.Stream, newline bool, handle func(*received) error) {
	if !h.begin() {
		_ = s.Reset()
		return
	}
	defer h.end()
	defer context.AfterFunc(h.ctx, func() { _ = s.Reset() })()
	share, release := h.table.use(s.Conn().RemotePeer())
	defer release()
	if err := h.receiveWith(s, share, newline, handle); err != nil {
		h.counts.refuse(err)
		_ = s.Reset()
		h.log.Debug("a message was refused", "peer", s.Conn().RemotePeer().String(), "protocol", string(s.Protocol()),
			slog.Any("error", err))
	}
}

func (h *Host) receiveWith(s network.Stream, share *share, newline bool, handle func(*received) error) error {
	if err := h.table.pass(h.ctx, share, h.limits.MessageTimeout); err != nil {
		return err
	}
	message, giveBack, err := h.readMessage(share, h.newPace(s), newline)
	if err != nil {
		return err
	}
	defer giveBack()
	if len(message) == 0 {
		return fmt.Errorf("an empty message: %w", io.ErrUnexpectedEOF)
	}
	done, err := h.waitForHandler(share)
	if err != nil {
		return err
	}
	defer done()
	return handle(&received{s, nameOf(s.Conn().RemotePeer()), message})
}

func (h *Host) waitForHandler(share *share) (done func(), err error) {
	ctx, cancel := context.WithTimeout(h.ctx, h.limits.AnswerTimeout)
	defer cancel()
	done, err = h.table.run(ctx, share)
	if err != nil {
		return nil, errors.Join(ErrBusy, err)
	}
	return done, nil
}
