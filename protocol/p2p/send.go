package p2p

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multistream"
)

// Send hands a message to a peer that speaks b7s's protocol, connected or at an
// address that is known. It returns when the peer has accepted the stream and all of
// the message is on its way: b7s acknowledges nothing. It returns ErrTooLarge and
// ErrNewline for messages that can't be sent, and ErrUnsupported if the peer has not
// announced the protocol within Limits.ProtocolTimeout. Errors that don't wrap
// ErrNotSent leave open whether the peer has the message.
func (h *Host) Send(ctx context.Context, to PeerID, message []byte) error {
	if bytes.IndexByte(message, '\n') >= 0 {
		return fmt.Errorf("%w: %w", ErrNotSent, ErrNewline)
	}
	_, err := h.exchange(ctx, to, ProtocolB7s, message, func(network.Stream, *pace) ([]byte, error) { return nil, nil })
	if err == nil {
		h.counts.sent.Add(1)
	}
	return err
}

// Call hands a message to a peer that speaks Futura's protocol and returns its
// answer. The peer has Limits.AnswerTimeout to answer, or less if ctx ends first. It
// returns ErrNoAnswer if the peer took the message and gave none, and further errors
// as Send does. Errors that don't wrap ErrNotSent leave open whether the peer handled
// the message.
func (h *Host) Call(ctx context.Context, to PeerID, message []byte) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.limits.AnswerTimeout+h.limits.MessageTimeout)
	defer cancel()
	answer, err = h.exchange(ctx, to, ProtocolFutura, message, h.readAnswer)
	if err == nil {
		h.counts.calls.Add(1)
	}
	return answer, err
}

// readAnswer waits for the answer's first byte as long as its handler may take, and
// for the others at the pace of a stream.
func (h *Host) readAnswer(s network.Stream, p *pace) ([]byte, error) {
	share, release := h.table.use(s.Conn().RemotePeer())
	defer release()
	p.allow(h.limits.AnswerTimeout)
	answer, giveBack, err := h.readMessage(share, p, false)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	if len(answer) == 0 {
		return nil, ErrNoAnswer
	}
	return answer, nil
}

// exchange sends a message over a stream of its own, and returns what read makes of
// the other direction.
func (h *Host) exchange(ctx context.Context, to PeerID, name protocol.ID, message []byte,
	read func(network.Stream, *pace) ([]byte, error)) (answer []byte, err error) {
	p, err := decodePeer(to)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	if len(message) > h.limits.MaxMessage {
		return nil, fmt.Errorf("%w: %w: the message has %d bytes, at most %d", ErrNotSent, ErrTooLarge, len(message),
			h.limits.MaxMessage)
	}
	if !h.begin() {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
	}
	defer h.end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(ErrClosed) })()
	share, release := h.table.use(p)
	defer release()
	if err := share.sending.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNotSent, to, context.Cause(ctx))
	}
	defer share.sending.Release(1)
	for {
		s, err := h.openStream(ctx, p, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrNotSent, to, err)
		}
		answer, err = h.exchangeOn(ctx, s, message, read)
		switch {
		case err == nil:
			return answer, nil
		case isUnsupported(err):
			// What the peer announced holds no longer; the next round waits for what it does now.
			_ = h.node.Peerstore().RemoveProtocols(p, name)
		case context.Cause(ctx) != nil:
			return nil, fmt.Errorf("p2p: %s: %w", to, context.Cause(ctx))
		default:
			return nil, fmt.Errorf("p2p: %s: %w", to, err)
		}
	}
}

func (h *Host) exchangeOn(ctx context.Context, s network.Stream, message []byte,
	read func(network.Stream, *pace) ([]byte, error)) (answer []byte, err error) {
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	p := h.newPace(s)
	_, err = p.Write(message)
	if err == nil {
		err = s.CloseWrite()
	}
	if err == nil {
		_, err = s.Read(nil) // waits until the peer has accepted the protocol
	}
	if err == nil {
		answer, err = read(s, p)
	}
	if err != nil {
		_ = s.Reset()
		return nil, err
	}
	return answer, s.Close()
}

// openStream opens a stream for a protocol. A peer that is connected has some time to
// announce it.
func (h *Host) openStream(ctx context.Context, p peer.ID, name protocol.ID) (network.Stream, error) {
	if err := h.gate.check(p); err != nil {
		return nil, err
	}
	until := h.clock.Now().Add(h.limits.ProtocolTimeout)
	ctx, cancel := context.WithTimeout(ctx, h.limits.DialTimeout+h.limits.ProtocolTimeout)
	defer cancel()
	for {
		news := h.watch.next()
		s, err := h.node.NewStream(ctx, p, name)
		if err == nil || !isUnsupported(err) {
			return s, err
		}
		if h.clock.Now().After(until) {
			return nil, fmt.Errorf("%w: %s, not announced within %v", ErrUnsupported, name, h.limits.ProtocolTimeout)
		}
		h.log.Debug("waiting for a peer to announce a protocol", "peer", p.String(), "protocol", string(name))
		if err := h.awaitProtocol(ctx, p, name, news, until); err != nil {
			return nil, err
		}
	}
}

// awaitProtocol waits until a peer has announced a protocol, or for a while: a peer may
// speak what it announces late.
func (h *Host) awaitProtocol(ctx context.Context, p peer.ID, name protocol.ID, news <-chan struct{},
	until time.Time) error {
	const again = 500 * time.Millisecond
	if next := h.clock.Now().Add(again); next.Before(until) {
		until = next
	}
	timer := h.clock.At(until.Add(time.Nanosecond))
	defer timer.Stop()
	for !h.speaks(p, name) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C():
			return nil
		case <-news:
			news = h.watch.next()
		}
	}
	return nil
}

func isUnsupported(err error) bool {
	var unsupported multistream.ErrNotSupported[protocol.ID]
	return errors.As(err, &unsupported)
}
