package peerhead

import (
	"math"
	"time"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// bill notes what an item has used, as its peer says, and no more than the head saw: the
// time since it sent the order, on the processors and in the memory that the peer offers. A
// peer that says nothing of the time leaves it to the worker, which counts that since the
// call. Results of earlier memberships, of which the head saw nothing, are not billed so.
func (m *member) bill(out *workers.RemoteOutcome, o *order, said *protocol.Usage) {
	seen := max(m.peer.head.clock.Now().Sub(o.begun), 0)
	out.RunTime = min(time.Duration(max(said.WallClock, 0)), seen)
	most := bounds(seen, m.offer.capacity.CPUMillis)
	user := min(time.Duration(max(said.CPUUser, 0)), most)
	out.Usage.CPUUser, out.Usage.CPUSys = user, min(time.Duration(max(said.CPUSystem, 0)), most-user)
	const kib = 1 << 10
	out.Usage.Memory = min(min(max(said.MemoryMaxKB, 0), math.MaxInt64/kib)*kib, max(m.offer.capacity.RAMBytes, 0))
}

// bounds is the most time that processors can give in a time: those of an offer in
// thousandths, or one.
func bounds(within time.Duration, millis int64) time.Duration {
	const one = 1000
	share := float64(max(millis, one)) / one
	if most := float64(within) * share; most < math.MaxInt64/2 {
		return time.Duration(most)
	}
	return math.MaxInt64 / 2
}
