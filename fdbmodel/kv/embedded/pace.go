package embedded

import (
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// pace keeps the log from growing faster than a checkpoint is written: by the
// time that all rows were passed, it has 2.1 times the size that a checkpoint
// begins at, or a tenth of that more than it began with. Then the checkpoint
// waits for commits that were applied meanwhile, as many as may wait for the disk
// and a batch, and the log may grow by twice that.
type pace struct {
	// from is the size of the log at the beginning, due that from which on a
	// checkpoint is due.
	from, due int64
	// total is how many rows there are, passed how many of them were looked at, and
	// are in the file if they have changed.
	total   int64
	passed  atomic.Int64
	settles atomic.Bool
	// backlog is how many bytes of commits may wait for the disk, or those of the largest batch if that is more.
	backlog int64
	over    atomic.Bool
	moved   broadcast
}

// batchMost is more than a batch takes in the log: what counts as one byte of a commit takes three there at most.
const batchMost = batchBytes + 4*kv.MaxTxSize

// allowed is the size that the log may have now. What settles waits for always finds room.
func (p *pace) allowed() int64 {
	share := 1.0
	if passed := p.passed.Load(); passed < p.total {
		share = float64(passed) / float64(p.total)
	}
	size := p.from + p.due/10 + int64(share*float64(max(2*p.due-p.from, 0)))
	if p.settles.Load() {
		size += 2 * p.backlog
	}
	return size
}

// settle says that all rows are written.
func (p *pace) settle() {
	p.settles.Store(true)
	p.moved.fire()
}

// advance counts rows that were passed.
func (p *pace) advance(rows int) {
	p.passed.Add(int64(rows))
	p.moved.fire()
}

// end lets the log grow again.
func (p *pace) end() {
	p.over.Store(true)
	p.moved.fire()
}

// wait returns when the log may grow.
func (p *pace) wait(log *atomic.Int64) {
	free := func() bool { return p.over.Load() || log.Load() <= p.allowed() }
	for !free() {
		if moved := p.moved.wait(); !free() {
			<-moved
		}
	}
}

// beginPace begins to hold back commits for a checkpoint.
func (s *Store) beginPace() *pace {
	p := &pace{from: s.disk.journal.logBytes.Load(), due: s.options.CheckpointBytes, total: s.index.rows(),
		backlog: max(s.options.backlog(), batchMost)}
	s.pacing.Store(p)
	return p
}

// keepPace returns when the log may grow.
func (s *Store) keepPace() {
	if p := s.pacing.Load(); p != nil {
		p.wait(&s.disk.journal.logBytes)
	}
}
