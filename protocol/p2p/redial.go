package p2p

import (
	"math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// keepConnected dials a peer whenever it is not connected, until the host closes.
func (h *Host) keepConnected(p peer.AddrInfo) {
	const tag = "boot"
	h.node.ConnManager().Protect(p.ID, tag)
	failures := 0
	for h.ctx.Err() == nil {
		connected, changed := h.watch.connected(p.ID)
		if connected {
			failures = 0
			select {
			case <-changed:
			case <-h.ctx.Done():
			}
			continue
		}
		err := h.dial(h.ctx, p)
		if err == nil {
			// Its event may come after the connection, or after its end; then a pause follows too.
			if !h.awaitConnected(p.ID) {
				failures++
			}
			continue
		}
		failures++
		h.counts.dialFailures.Add(1)
		wait := backoff(failures, h.options.RedialMin, h.options.RedialMax, rand.Float64())
		h.log.Warn("can't reach a boot node", "peer", p.ID.String(), "error", err, "again_in", wait)
		h.pause(p.ID, wait)
	}
}

// awaitConnected waits for a little until the event of a connection has come.
func (h *Host) awaitConnected(p peer.ID) bool {
	timer := h.clock.At(h.clock.Now().Add(h.options.RedialMin))
	defer timer.Stop()
	for {
		connected, changed := h.watch.connected(p)
		if connected {
			return true
		}
		select {
		case <-changed:
		case <-timer.C():
			return false
		case <-h.ctx.Done():
			return false
		}
	}
}

// pause waits, or until the peer has connected by itself.
func (h *Host) pause(p peer.ID, wait time.Duration) {
	timer := h.clock.At(h.clock.Now().Add(wait))
	defer timer.Stop()
	for {
		connected, changed := h.watch.connected(p)
		if connected {
			return
		}
		select {
		case <-changed:
		case <-timer.C():
			return
		case <-h.ctx.Done():
			return
		}
	}
}

// backoff is how long to wait after some failures in a row. random is from 0 up to 1
// and moves the time by a fifth to either side.
func backoff(failures int, least, most time.Duration, random float64) time.Duration {
	wait := most
	if shift := failures - 1; shift < 32 && least<<shift < most && least<<shift>>shift == least {
		wait = least << shift
	}
	return time.Duration(float64(wait) * (0.8 + 0.4*random))
}
