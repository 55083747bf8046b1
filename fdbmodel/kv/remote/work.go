package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// work is a client's transaction as the server runs it: one batch after the
// other, on the goroutine that has read the first of them.
type work struct {
	peer   *peer
	number uint64
	tx     kv.Tx
	ctx    context.Context
	cancel context.CancelFunc
	// readsAtOnce says that its reads wait for nothing but the disk.
	readsAtOnce bool

	mu      sync.Mutex
	queue   []batch
	running bool
	ended   bool
	left    bool // by the client
	used    time.Time
	charged int64 // what the connection holds for it

	// What follows belongs to the goroutine that runs it.
	answers []byte
	input   reading // of the connection, until it is passed on
	reading bool    // it has memory to read into
	credit  int64   // what is left of charged
}

// batch is operations that wait for their transaction, and the memory that their
// frame takes: its size, of which shared is a part of the common memory.
type batch struct {
	ops    []byte
	size   int
	shared int64
}

func newWork(p *peer, number uint64, o kv.Options) *work {
	ctx, cancel := context.WithCancel(p.ctx)
	atOnce := p.server.traits.ReadsAtOnce
	return &work{peer: p, number: number, tx: p.server.db.Begin(o), ctx: ctx, cancel: cancel, used: time.Now(),
		readsAtOnce: atOnce != nil && atOnce(o), charged: transactionMemory, credit: transactionMemory / 2}
}

// push adds a batch, unless the transaction has ended, and reports whether the
// caller has to run the transaction.
func (t *work) push(b batch) (taken, idle bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false, false
	}
	t.queue = append(t.queue, b)
	idle = !t.running
	t.running = true
	return true, idle
}

// usedAt is when the transaction was last at work, or now.
func (t *work) usedAt() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running {
		return time.Now()
	}
	return t.used
}

// giveUp ends the transaction for a reason if it is not at work. A commit that comes in between is not taken: the
// client hears that there was none.
func (t *work) giveUp(reason error) {
	t.mu.Lock()
	left := !t.running && !t.ended
	t.ended = t.ended || left
	t.mu.Unlock()
	if left {
		t.abandon(reason)
	}
}

// abandon ends the transaction, and tells the client the reason unless it is
// nil. A commit that is under way may still happen. The number is forgotten
// last: what the client sends in between must not be answered before the reason.
func (t *work) abandon(reason error) {
	defer t.peer.forget(t.number)
	t.cancel()
	t.tx.Cancel()
	t.mu.Lock()
	t.ended = true
	queue, charged := t.queue, t.charged
	t.queue, t.charged = nil, 0
	t.mu.Unlock()
	t.peer.release(queue...)
	t.peer.letGo(charged)
	if reason != nil {
		t.peer.failTx(t.number, reason)
	}
}

// leave ends the transaction for a client that has given it up. A read that is under way may wait for a disk, and the
// end of the transaction for that read: the next frames don't.
func (t *work) leave() {
	t.mu.Lock()
	running, again := t.running, t.left
	t.left = true
	t.mu.Unlock()
	switch {
	case again:
	case running:
		t.peer.running.Go(func() { t.abandon(nil) })
	default:
		t.abandon(nil)
	}
}

// charge counts the memory of one more operation of n bytes. It ends the
// transaction if there is none left.
func (t *work) charge(n int) {
	if t.credit -= operationMemory + operationFactor*int64(n); t.credit >= 0 {
		return
	}
	more := max(-t.credit, chargeStep)
	t.credit += more
	t.mu.Lock()
	charged, ended := t.charged, t.ended
	t.mu.Unlock()
	if ended {
		return
	}
	if err := t.peer.hold(charged, more); err != nil {
		t.abandon(err)
		return
	}
	t.mu.Lock()
	if ended = t.ended; !ended {
		t.charged += more
	}
	t.mu.Unlock()
	if ended {
		t.peer.letGo(more)
	}
}

// next returns the next batch, or false if there is none.
func (t *work) next() (batch, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		t.running, t.used = false, time.Now()
		return batch{}, false
	}
	b := t.queue[0]
	t.queue = t.queue[1:]
	return b, true
}

// run does batches until there are no more.
func (t *work) run(r reading) {
	t.input = r
	for b, ok := t.next(); ok; b, ok = t.next() {
		err := t.execute(&decoder{b: b.ops})
		t.flush()
		t.peer.release(b)
		if err != nil {
			t.peer.server.log.Warn("a client was cut off", "connection", t.peer.id, "error", err)
			t.abandon(nil)
			_ = t.peer.conn.Close()
			return
		}
	}
}

// execute does a batch. An error means that the batch is malformed.
func (t *work) execute(d *decoder) error {
	for d.more() && t.ctx.Err() == nil {
		code := d.byte()
		if code < opSetReadVersion {
			t.write(d, code)
			continue
		}
		t.do(d, code)
	}
	if t.ctx.Err() != nil {
		return d.err
	}
	return d.end()
}

// write does an operation that has no answer.
func (t *work) write(d *decoder, code byte) {
	before := len(d.b)
	switch code {
	case opSet:
		key := d.bytes()
		t.tx.Set(key, d.bytes())
	case opClear:
		t.tx.Clear(d.bytes())
	case opClearRange:
		t.tx.ClearRange(d.span())
	case opStampKey:
		key, offset := d.bytes(), d.offset()
		t.tx.SetVersionstampedKey(key, offset, d.bytes())
	case opStampValue:
		key, offset := d.bytes(), d.offset()
		t.tx.SetVersionstampedValue(key, d.bytes(), offset)
	case opReadConflictKey:
		t.tx.AddReadConflictKey(d.bytes())
	case opReadConflictRange:
		t.tx.AddReadConflictRange(d.span())
	case opWriteConflictKey:
		t.tx.AddWriteConflictKey(d.bytes())
	case opWriteConflictRange:
		t.tx.AddWriteConflictRange(d.span())
	default:
		if code <= opAtomic {
			d.fail()
			return
		}
		key := d.bytes()
		t.tx.Atomic(kv.AtomicOp(code-opAtomic), key, d.bytes())
	}
	t.charge(before - len(d.b))
}

// do does an operation that has an answer or changes what is read.
func (t *work) do(d *decoder, code byte) {
	switch code {
	case opSetReadVersion:
		t.tx.SetReadVersion(kv.Version(d.varint()))
		return
	case opCancelWatch:
		t.peer.cancelWatch(d.uvarint())
		return
	}
	before := len(d.b)
	number := d.uvarint()
	if d.err != nil {
		return
	}
	switch code {
	case opWatch:
		if key := d.bytes(); d.err == nil && !t.peer.addWatch(number, t.tx, key) {
			d.fail()
		}
	case opGet:
		flags := d.byte()
		if key := d.bytes(); d.err == nil {
			t.get(number, t.reader(flags), key)
		}
	case opGetRange:
		flags := d.byte()
		r, o := d.span(), kv.RangeOptions{Limit: d.limit(), Bytes: d.limit(), Reverse: flags&readReverse != 0}
		if d.err == nil {
			t.getRange(number, t.reader(flags), r, o)
		}
	case opReadVersion:
		version, err := t.tx.ReadVersion(t.ctx)
		if t.answer(number, answerVersion, err) {
			t.answers = binary.AppendVarint(t.answers, int64(version))
		}
	case opCommit:
		t.input.pass()
		t.endReads()
		t.commit(number)
		return
	default:
		d.fail()
	}
	t.charge(before - len(d.b))
	t.flushIfLong()
}

func (t *work) reader(flags byte) kv.Reader {
	if flags&readSnapshot != 0 {
		return t.tx.Snapshot()
	}
	return t.tx
}

// conflictWait bounds the wait for what a commit conflicted with.
const conflictWait = time.Second

func (t *work) commit(number uint64) {
	done, err := t.tx.Commit(t.ctx)
	if wait := t.peer.server.traits.WaitConflict; wait != nil && errors.Is(err, kv.ErrConflict) {
		// Here the wait costs the client no round trip.
		ctx, cancel := context.WithTimeout(t.ctx, conflictWait)
		if wait(ctx, t.tx) == nil {
			err = fmt.Errorf("%w (%w)", err, errWaited)
		}
		cancel()
	}
	if t.answer(number, answerCommitted, err) {
		t.answers = binary.AppendVarint(t.answers, int64(done.Version))
		t.answers = append(t.answers, done.Stamp[:]...)
	}
	t.flush()
	t.abandon(nil)
}

// answer begins an answer of that kind, or gives the error instead and returns
// false.
func (t *work) answer(number uint64, kind byte, err error) bool {
	t.answers = binary.AppendUvarint(t.answers, number)
	if err != nil {
		t.answers = appendError(append(t.answers, answerError), err)
		return false
	}
	t.answers = append(t.answers, kind)
	return true
}
