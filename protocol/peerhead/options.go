package peerhead

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// PeerID names a peer. The network proves it.
type PeerID = p2p.PeerID

// Network is how a head reaches peers. A *p2p.Host is one.
type Network interface {
	// Send sends a message on a stream of b7s.
	Send(ctx context.Context, to PeerID, message []byte) error
	// Call sends a message on a stream of Futura, and returns its answer.
	Call(ctx context.Context, to PeerID, message []byte) (answer []byte, err error)
	// Publish sends a message to all that joined a topic.
	Publish(ctx context.Context, topic string, message []byte) error
	// Connected tells whether a peer is connected.
	Connected(PeerID) bool
	// FetchBlob writes a blob that a peer serves, by its content id, which it verifies.
	FetchBlob(ctx context.Context, from PeerID, id string, w io.Writer, o p2p.FetchOptions) error
}

// Options of a head's side of peers.
type Options struct {
	// Cluster is where futures are. It is required, and stays the caller's.
	Cluster *fdbmodel.Cluster
	// Network is required.
	Network Network
	// Key is a secret of at least 32 bytes by which the head knows its own orders, also
	// after a restart. It is required.
	Key []byte
	// Name is told to peers: at most protocol.MaxName bytes that print.
	Name string
	// Queues are those that peers serve. Defaults to "default".
	Queues []string
	// Trusted reports whether what a peer says of its name and labels counts. Without it,
	// that of none does.
	Trusted func(PeerID) bool
	// Grace is how long a peer may be away, or have work and be silent, before it is
	// reaped. Defaults to the dead-after time of the cluster.
	Grace time.Duration
	// Patience is how long an item may wait at a peer before it is taken back for another one
	// that is idle. Defaults to the heartbeat of the cluster, in which peers report.
	Patience time.Duration
	// KeepLost is how long a peer that went is in Lost. Defaults to 1 h.
	KeepLost time.Duration
	// MaxPeers is how many peers there may be. Defaults to 10,000.
	MaxPeers int
	// MaxChunk is how many items an order has at most, and MaxOrder how many bytes; one
	// item may have more. Default to 256 and 4 MiB.
	MaxChunk int
	MaxOrder int
	// MaxCached bounds the bytes of results that are cached for attempts of earlier
	// memberships until those are claimed again, or for 10 min. One peer has at most a
	// quarter, or its largest result. Defaults to 256 MiB.
	MaxCached int64
	// OrderTime is how long a peer that does not report its progress, a node of b7s, may
	// take for an order, beside the timeouts of its items. Defaults to 10 min.
	OrderTime time.Duration
	// B7SSlots is how many items a node of b7s is given at a time, which it runs one
	// after the other. Defaults to 32.
	B7SSlots int
	// Manifest returns the URL of the manifest from which nodes of b7s install a module.
	// Without it they are given none.
	Manifest func(cid string) string
	// Verify has several peers run each item; results of earlier memberships don't count
	// then. Defaults to one peer, unchecked.
	Verify Verify
	// AdmitStrand admits nodes of b7s whose answer to a roll call says nothing of
	// batches: those that spell chunks as strands. Without it they are left out.
	AdmitStrand bool
	// Execute answers a client that asks for a batch by a message. Without it, such
	// messages are refused. It returns nil for no answer.
	Execute func(ctx context.Context, from PeerID, m *protocol.ExecuteBatch) *protocol.ExecuteBatchResponse
	// Logger defaults to none.
	Logger *slog.Logger
}

const (
	keyBytes      = 32
	defaultPeers  = 10_000
	defaultChunk  = 256
	defaultOrder  = 4 << 20
	defaultCache  = 256 << 20
	defaultB7S    = 32
	defaultOrders = 10 * time.Minute
	defaultLost   = time.Hour
)

// complete fills in defaults, and returns an error for options that can't be used.
func (o Options) complete() (Options, error) {
	if o.Cluster == nil || o.Network == nil {
		return o, errors.New("peerhead: Options need a Cluster and a Network")
	}
	if len(o.Key) < keyBytes {
		return o, fmt.Errorf("peerhead: Options.Key has %d bytes: at least %d", len(o.Key), keyBytes)
	}
	if min(o.MaxPeers, o.MaxChunk, o.MaxOrder, o.B7SSlots) < 0 || o.MaxCached < 0 ||
		min(o.Grace, o.Patience, o.OrderTime, o.KeepLost) < 0 {
		return o, errors.New("peerhead: Options with a negative number")
	}
	if err := o.Verify.check(); err != nil {
		return o, err
	}
	if err := protocol.DirectLimits().Check(&protocol.HelloResponse{Head: o.Name}); err != nil {
		return o, fmt.Errorf("peerhead: Options.Name: %w", err)
	}
	if len(o.Queues) == 0 {
		o.Queues = []string{layout.DefaultQueue}
	}
	for _, queue := range o.Queues {
		if err := layout.CheckQueueName(queue); err != nil {
			return o, fmt.Errorf("peerhead: Options.Queues: %w", err)
		}
	}
	o.Grace = cmp.Or(o.Grace, o.Cluster.Config().DeadAfter)
	o.Patience = cmp.Or(o.Patience, o.Cluster.Config().Heartbeat)
	o.KeepLost = cmp.Or(o.KeepLost, defaultLost)
	o.MaxPeers = cmp.Or(o.MaxPeers, defaultPeers)
	o.MaxChunk = min(cmp.Or(o.MaxChunk, defaultChunk), protocol.DirectLimits().Items)
	o.MaxOrder = cmp.Or(o.MaxOrder, defaultOrder)
	o.MaxCached = cmp.Or(o.MaxCached, defaultCache)
	o.B7SSlots = cmp.Or(o.B7SSlots, defaultB7S)
	o.OrderTime = cmp.Or(o.OrderTime, defaultOrders)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Trusted == nil {
		o.Trusted = func(PeerID) bool { return false }
	}
	return o, nil
}
