package peerworker

import (
	"context"
	"errors"
	"io"
)

// Errors of a Network.
var (
	// ErrNoBlob is returned for an unknown content id.
	ErrNoBlob = errors.New("peerworker: no such blob")
	// ErrContent is returned for a blob whose bytes are not those of its id.
	ErrContent = errors.New("peerworker: a blob with other content")
	// ErrTooLarge is returned for a blob that is larger than it may be.
	ErrTooLarge = errors.New("peerworker: too large")
)

// Network is what a worker needs of the network. Peers are named by their ids, in
// base58. A network connects to the heads by itself, and again after a break. Its
// methods may be called from many goroutines, and bound the size of what they
// receive.
type Network interface {
	// ID returns the id of this peer.
	ID() string
	// Serve begins to connect, and has h called for all that comes in, until Close.
	// It is called once, before Call, Send and Fetch.
	Serve(h Handler) error
	// Call sends a message in Futura's own protocol, and returns the answer.
	Call(ctx context.Context, peer string, message []byte) (answer []byte, err error)
	// Send sends a message in b7s's protocol, where nothing is answered.
	Send(ctx context.Context, peer string, message []byte) error
	// Fetch writes the blob with a content id that a peer serves to to, and goes on
	// after a break, and after what it finds in have, which an earlier one has written. It
	// returns ErrNoBlob, ErrTooLarge for more than limit bytes, and ErrContent if the
	// content has another id. It may call progress now and then.
	Fetch(ctx context.Context, peer, id string, limit int64, have io.Reader, to io.Writer,
		progress func(done, total int64)) error
	// Close ends all connections and calls, and waits for the handler.
	Close() error
}

// Handler takes what comes in. A Network calls it from several goroutines, a
// bounded number for each peer.
type Handler interface {
	// Called returns the answer to a message in Futura's own protocol.
	Called(ctx context.Context, peer string, message []byte) (answer []byte)
	// Received takes a message in b7s's protocol.
	Received(ctx context.Context, peer string, message []byte)
	// Published takes a message that was published to a topic, and its author.
	Published(ctx context.Context, author string, message []byte)
	// Blob opens a blob that a peer asks for, and returns its size. It returns ErrNoBlob.
	Blob(ctx context.Context, peer, id string) (content io.ReadSeekCloser, size int64, err error)
	// PeerChanged says how a peer stands, whenever that changes. It doesn't wait.
	PeerChanged(p Peer)
}

// Peer is how a peer stands.
type Peer struct {
	ID        string
	Connected bool
	// Session differs from one connection to the next, if the peer was disconnected in
	// between.
	Session uint64
	// Futura says that the peer has announced Futura's own protocol.
	Futura bool
}
