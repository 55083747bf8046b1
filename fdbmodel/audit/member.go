package audit

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkWorker compares the keys of a worker with each other, and with its
// address.
func (p *page) checkWorker(items []item) {
	id := layout.WorkerID(items[0].Text("worker"))
	var info *layout.WorkerInfo
	var alive, beat, left *item
	for i := range items {
		switch it := &items[i]; it.Kind.Name {
		case layout.WorkerAlive:
			alive, info = it, it.Record.(*layout.WorkerInfo)
		case layout.WorkerHeartbeat:
			beat = it
		case layout.WorkerSuspect:
			left = it
			p.checkCandidate(it, id, alive != nil)
		default:
			left = it
		}
	}
	switch {
	case alive == nil && beat != nil:
		p.broken(InvariantWorker, beat.Raw, "worker %s has a heartbeat and no record", id).by(drop(beat.Raw))
	case alive != nil && beat == nil:
		first := &layout.Heartbeat{Free: info.Capacity, At: info.StartedAt}
		p.broken(InvariantWorker, alive.Raw, "worker %s has a record and no heartbeat", id).
			by(set(p.keys.Worker(id, layout.WorkerHeartbeat), layout.Encode(first)))
	case alive == nil:
		p.note(InvariantWorker, left.Raw, "worker %s is dead; the rest of it is to be reaped", id)
	}
	if alive == nil || alive.err != nil || info.Address == "" {
		return
	}
	key := p.keys.Address(info.Address)
	p.get(key, func(value []byte) {
		owner := layout.WorkerID(value)
		if owner == id {
			return
		}
		of := p.broken(InvariantWorker, key, "worker %s is at the address %s, which belongs to %.40q", id, info.Address,
			owner)
		if owner == "" {
			of.by(set(key, []byte(id)))
			return
		}
		p.worker(owner, func(other *layout.WorkerInfo) {
			if other == nil || other.Address != info.Address {
				of.by(set(key, []byte(id)))
			}
		})
	})
}

// checkCandidate compares the record that a worker runs a poison candidate with the future's
// claim. A dead worker's record stays until all its claims have been taken back.
func (p *page) checkCandidate(it *item, worker layout.WorkerID, alive bool) {
	candidate, readable := it.Record.(*layout.SuspectRecord)
	if !readable || it.err != nil || !alive {
		return
	}
	p.row(it.ID, func(row *layout.Row) {
		token := layout.Token{Worker: worker, Sequence: candidate.Sequence}
		if row.State() != layout.Claimed || row.Claim.Token != token {
			p.broken(InvariantClaim, it.Raw, "worker %s is recorded to run future %s by claim %d, and it is %v", worker, it.ID,
				candidate.Sequence, row.State()).by(p.follow(row, drop(it.Raw))...)
		}
	})
}

// checkAddress compares an address with the worker that it leads to.
func (p *page) checkAddress(it *item) {
	owner := layout.WorkerID(it.stored)
	p.worker(owner, func(info *layout.WorkerInfo) {
		switch {
		case info == nil:
			p.broken(InvariantAddress, it.Raw, "the address leads to worker %.40q, which is not registered", owner).
				by(drop(it.Raw))
		case info.Address != it.Text("address"):
			p.broken(InvariantAddress, it.Raw, "the address leads to worker %s, which is at %.80q", owner, info.Address).
				by(drop(it.Raw))
		}
	})
}

// checkIdle compares a key of the ring of idle workers with the worker.
func (p *page) checkIdle(it *item) {
	id := layout.WorkerID(it.Text("worker"))
	p.worker(id, func(info *layout.WorkerInfo) {
		switch {
		case info == nil:
			p.broken(InvariantIdle, it.Raw, "worker %s is in the ring of the idle and is not registered", id).by(drop(it.Raw))
		case !slices.Contains(info.Queues, it.Text("queue")):
			p.broken(InvariantIdle, it.Raw, "worker %s is in the ring of a queue that it does not serve", id).by(drop(it.Raw))
		}
	})
}

// checkMail checks what a mailbox says, and looks for its wake key.
func (p *page) checkMail(it *item) {
	for _, n := range it.Notices {
		if !n.State.Terminal() {
			p.broken(InvariantMail, it.Raw, "a notice says that future %s is %v", n.ID, n.State)
		}
	}
	session := layout.SessionID(it.Text("session"))
	if wake := p.keys.SessionWake(session); p.first(wake) {
		p.require(wake, func() {
			p.broken(InvariantMail, it.Raw, "session %s has mail and no wake key", session).
				by(stamp(wake, layout.EncodeWake()))
		})
	}
}

// checkSessionWake looks for the session of a wake key.
func (p *page) checkSessionWake(it *item) {
	session := layout.SessionID(it.Text("session"))
	p.require(p.keys.Session(session), func() {
		p.note(InvariantMail, it.Raw, "session %s has no record; its wake key is to be swept", session)
	})
}
