package p2p

import "errors"

// Errors of this package. Further text says what was wrong and what to do.
var (
	// ErrPeerID is a text that is no peer id.
	ErrPeerID = errors.New("p2p: not a peer id")
	// ErrKey is a private key, or its file, that can't be used.
	ErrKey = errors.New("p2p: unusable private key")
	// ErrAddress is an address that can't be used.
	ErrAddress = errors.New("p2p: unusable address")
	// ErrOptions are options that contradict each other or are out of their range.
	ErrOptions = errors.New("p2p: unusable options")
	// ErrClosed is returned by a host that was closed.
	ErrClosed = errors.New("p2p: the host is closed")
	// ErrNotSent is wrapped by errors of Send and Call if the peer can't have handled
	// the message, so that sending it again can't do anything twice.
	ErrNotSent = errors.New("p2p: not sent")
	// ErrUnsupported means that a peer does not speak the protocol.
	ErrUnsupported = errors.New("p2p: the peer does not speak this protocol")
	// ErrDenied means that the lists of peers leave out this one.
	ErrDenied = errors.New("p2p: the peer is not allowed")
	// ErrTooLarge is a message or blob above a limit.
	ErrTooLarge = errors.New("p2p: too large")
	// ErrNewline is a message for a b7s node with a newline in it, which would end
	// there.
	ErrNewline = errors.New("p2p: a message for b7s must not contain a newline")
	// ErrNoAnswer means that a peer took a message and ended the stream without an
	// answer.
	ErrNoAnswer = errors.New("p2p: no answer")
	// ErrUnknownTopic is a topic that the host has not joined.
	ErrUnknownTopic = errors.New("p2p: unknown topic")
	// ErrBlobID is a text that is no blob's id.
	ErrBlobID = errors.New("p2p: not a blob's id")
	// ErrBlobUnknown means that a peer does not have a blob, or not for this host.
	ErrBlobUnknown = errors.New("p2p: the peer does not have the blob")
	// ErrBlobContent means that a peer sent something that is not the blob.
	ErrBlobContent = errors.New("p2p: not the blob's content")
	// ErrBusy means that a peer's share of the host's memory, handlers or rate is in
	// use.
	ErrBusy = errors.New("p2p: too much at once")
)
