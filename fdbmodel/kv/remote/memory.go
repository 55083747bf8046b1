package remote

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/budget"
)

// What things count as, in bytes. Each number is at least what the server
// allocates for one of them.
const (
	// connectionMemory is a connection's buffers when its answers are not read:
	// twice what may wait to be written, the buffer for reading, and ownQueue.
	connectionMemory = 1 << 20
	// ownQueue is what may wait for its transactions without a share of the
	// common memory, so that small frames always come through.
	ownQueue = 64 << 10
	// readMemory is what a batch takes while it reads: a page, and its answers.
	readMemory = 320 << 10
	// transactionMemory is an open transaction, operationMemory each of its
	// operations beside operationFactor times its bytes.
	transactionMemory = 16 << 10
	operationMemory   = 256
	operationFactor   = 3
	// chargeStep is what a transaction that grows takes at a time, at least.
	chargeStep = 64 << 10
	// watchMemory is a watch beside its key.
	watchMemory = 3 << 10
)

const (
	// maxReads bounds the batches of a connection that read at a time.
	maxReads = 2
	// maxQueued bounds the bytes of a connection that wait for their
	// transactions, apart from one frame.
	maxQueued = 2 << 20
	// maxUnread bounds the bytes that wait for a client to read them before no
	// more is read for it.
	maxUnread = 32 << 10
)

// memory is what the connections of a server may hold together, apart from
// their buffers: seven sixteenths of it all for open transactions, two for watches, so
// that a connection may have the 10,000 of the contract by default, and one each for
// frames that wait and for batches that read. The rest is for connectionMemory.
type memory struct {
	transactions, watches, frames, reads *budget.Bytes
}

func newMemory(o ServerOptions) memory {
	return memory{
		transactions: budget.New(o.MaxMemory / 16 * 7),
		watches:      budget.New(o.MaxMemory / 8),
		frames:       budget.New(max(o.MaxMemory/16, int64(o.MaxFrame))),
		reads:        budget.New(max(o.MaxMemory/16, readMemory)),
	}
}

// memoryConnections is how many connections fit in their part of the memory.
func memoryConnections(total int64) int { return max(1, int(total/16*5/connectionMemory)) }

// admit waits until a frame of that size may wait for its transaction.
func (p *peer) admit(size int) (batch, error) {
	p.waiting.Store(true)
	defer p.waiting.Store(false)
	p.mu.Lock()
	for p.queued > 0 && p.queued+size > maxQueued && !p.closed {
		p.room.Wait()
	}
	b := batch{size: size}
	if p.queued+size > ownQueue {
		b.shared = int64(size)
	}
	p.queued += size
	p.mu.Unlock()
	if b.shared == 0 {
		return b, nil
	}
	if err := p.server.memory.frames.Acquire(p.ctx, b.shared); err != nil {
		p.release(batch{size: size})
		return batch{}, err
	}
	return b, nil
}

// release gives back the memory of frames.
func (p *peer) release(frames ...batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range frames {
		p.queued -= f.size
		if f.shared > 0 {
			p.server.memory.frames.Release(f.shared)
		}
	}
	p.room.Signal()
}

// hold takes n bytes more for a transaction that has some already. A connection
// has at most half of what all have.
func (p *peer) hold(has, n int64) error {
	all := p.server.memory.transactions
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case has+n > all.Total()/2:
		return fmt.Errorf("%w: it would take %d bytes of the server's memory, which has %d for a connection; split it",
			kv.ErrTxTooLarge, has+n, all.Total()/2)
	case p.held+n > all.Total()/2 || !all.TryAcquire(n):
		return fmt.Errorf("%w: the server's memory for open transactions is in use, %d bytes in all: try again, or raise "+
			"ServerOptions.MaxMemory", kv.ErrUnavailable, all.Total())
	}
	p.held += n
	return nil
}

// holdWatch takes the memory of a watch. A connection has at most half of what all have, so
// that one which never ends its watches leaves others theirs.
func (p *peer) holdWatch(n int64) error {
	all := p.server.memory.watches
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.watched+n > all.Total()/2:
		return fmt.Errorf("%w: those of this connection have %d bytes of the server's memory, of %d for a connection: "+
			"cancel some, or raise ServerOptions.MaxMemory", kv.ErrTooManyWatches, p.watched, all.Total()/2)
	case !all.TryAcquire(n):
		return fmt.Errorf("%w: the server's memory for watches is in use, %d bytes in all: try again, or raise "+
			"ServerOptions.MaxMemory", kv.ErrTooManyWatches, all.Total())
	}
	p.watched += n
	return nil
}

// letWatchGo gives back what holdWatch took.
func (p *peer) letWatchGo(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched -= n
	p.server.memory.watches.Release(n)
}

// letGo gives back what hold took.
func (p *peer) letGo(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= n
	p.server.memory.transactions.Release(n)
}

// tryReads is beginReads for a batch that does not wait.
func (p *peer) tryReads() bool {
	select {
	case p.reads <- struct{}{}:
	default:
		return false
	}
	if p.out.hasRoom() && p.server.memory.reads.TryAcquire(readMemory) {
		return true
	}
	<-p.reads
	return false
}

// beginReads waits until a batch may read: the client takes what is read for it,
// and there is memory. It must be followed by endReads unless it fails.
func (p *peer) beginReads(ctx context.Context) error {
	select {
	case p.reads <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := p.out.await()
	if err == nil {
		err = p.server.memory.reads.Acquire(ctx, readMemory)
	}
	if err != nil {
		<-p.reads
	}
	return err
}

func (p *peer) endReads() {
	p.server.memory.reads.Release(readMemory)
	<-p.reads
}
