package p2p

import (
	"errors"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/network"
)

// counts are what a host counts.
type counts struct {
	sent, calls, received, answered              atomic.Int64
	tooLarge, tooSlow, tooMany, otherwise        atomic.Int64
	published, heard, gossipDropped, gossipLarge atomic.Int64
	gossipFast, dialFailures                     atomic.Int64
	blobsGiven, blobsTaken, blobCuts             atomic.Int64
	blobBytesGiven, blobBytesTaken               atomic.Int64
}

// refuse counts a stream that was reset, by its reason.
func (c *counts) refuse(err error) {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrTooLarge):
		c.tooLarge.Add(1)
	case errors.Is(err, ErrBusy), errors.Is(err, network.ErrResourceLimitExceeded):
		c.tooMany.Add(1)
	case errors.As(err, &timeout) && timeout.Timeout():
		c.tooSlow.Add(1)
	default:
		c.otherwise.Add(1)
	}
}

// Stats are counts since a host was opened, and what is in use now.
type Stats struct {
	// Peers are connected.
	Peers int
	// Sent are messages handed to peers, Calls those that were answered.
	Sent, Calls int64
	// Received are messages that came for OnMessage, Answered those for OnCall.
	Received, Answered int64
	// RefusedLarge, RefusedSlow and RefusedBusy are streams of peers that were reset:
	// for a message above MaxMessage, at their deadline, and because the peer's or the
	// host's share of something was in use. RefusedOther ended otherwise, most often by
	// the peer.
	RefusedLarge, RefusedSlow, RefusedBusy, RefusedOther int64
	// Published are messages to topics, Heard those from them.
	Published, Heard int64
	// DroppedGossip are published messages for which there was no memory or handler,
	// LargeGossip those above MaxGossip, and FastGossip those beyond the rate of their author
	// or of the peer they came by.
	DroppedGossip, LargeGossip, FastGossip int64
	// DialFailures are failed attempts to reach a boot node.
	DialFailures int64
	// BlobsServed and BlobsFetched are whole blobs, with or from an offset, and
	// BytesServed and BytesFetched their bytes. BlobCuts are pauses of a fetch.
	BlobsServed, BlobsFetched, BytesServed, BytesFetched, BlobCuts int64
}

// Stats returns counts. They are read one by one, so they may differ by what goes on.
func (h *Host) Stats() Stats {
	c := &h.counts
	h.watch.mu.Lock()
	peers := len(h.watch.sessions)
	h.watch.mu.Unlock()
	return Stats{
		Peers: peers, Sent: c.sent.Load(), Calls: c.calls.Load(), Received: c.received.Load(), Answered: c.answered.Load(),
		RefusedLarge: c.tooLarge.Load(), RefusedSlow: c.tooSlow.Load(), RefusedBusy: c.tooMany.Load(),
		RefusedOther: c.otherwise.Load(), Published: c.published.Load(), Heard: c.heard.Load(),
		DroppedGossip: c.gossipDropped.Load(), LargeGossip: c.gossipLarge.Load(), FastGossip: c.gossipFast.Load(),
		DialFailures: c.dialFailures.Load(), BlobsServed: c.blobsGiven.Load(), BlobsFetched: c.blobsTaken.Load(),
		BytesServed: c.blobBytesGiven.Load(), BytesFetched: c.blobBytesTaken.Load(), BlobCuts: c.blobCuts.Load(),
	}
}
