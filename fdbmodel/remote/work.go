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

	mu      sync.Mutex
	queue   [][]byte
	running bool
	ended   bool
	used    time.Time

	// What follows belongs to whoever runs it.
	asked   []asked
	answers []byte
	written int
}

// asked is a read that was asked and not answered yet.
type asked struct {
	number uint64
	value  kv.Pending[[]byte]
	page   *rangeRead
}

// maxWritten is what a transaction may write, in bytes as they travel: more
// than fits in kv.MaxTxSize, whatever it is made of.
const maxWritten = 4 * kv.MaxTxSize

func newWork(p *peer, number uint64, o kv.Options) *work {
	ctx, cancel := context.WithCancel(p.ctx)
	return &work{peer: p, number: number, tx: p.server.db.Begin(o), ctx: ctx, cancel: cancel, used: time.Now()}
}

// push adds a batch, and tells whether the caller has to run the transaction.
func (t *work) push(batch []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		t.peer.release(len(batch))
		return false
	}
	t.queue = append(t.queue, batch)
	idle := !t.running
	t.running = true
	return idle
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

// giveUp ends the transaction if it is not at work, and tells whether it did.
func (t *work) giveUp() bool {
	t.mu.Lock()
	if t.running || t.ended {
		t.mu.Unlock()
		return false
	}
	t.mu.Unlock()
	t.abandon()
	return true
}

// abandon ends the transaction. A commit that is under way may still happen.
func (t *work) abandon() {
	t.peer.forget(t.number)
	t.cancel()
	t.tx.Cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, batch := range t.queue {
		t.peer.release(len(batch))
	}
	t.queue = nil
}

// next returns the next batch, or nil if there is none.
func (t *work) next() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		t.running, t.used = false, time.Now()
		return nil
	}
	batch := t.queue[0]
	t.queue = t.queue[1:]
	return batch
}

// run does batches until there are no more.
func (t *work) run() {
	for batch := t.next(); batch != nil; batch = t.next() {
		err := t.execute(&decoder{b: batch})
		t.peer.release(len(batch))
		if err != nil {
			t.peer.server.options.Logger.Warn("a client was cut off", "connection", t.peer.id, "error", err)
			t.abandon()
			_ = t.peer.conn.Close()
			return
		}
	}
}

// execute does a batch. Reads are all asked before the first is waited for. An
// error means that the batch is malformed.
func (t *work) execute(d *decoder) error {
	for d.more() {
		code := d.byte()
		if code < opSetReadVersion {
			t.write(d, code)
			continue
		}
		t.do(d, code)
	}
	if err := d.end(); err != nil {
		return err
	}
	t.answerAsked()
	t.flush()
	return nil
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
	if t.written += before - len(d.b); t.written > maxWritten {
		t.written = 0
		t.abandon()
		t.peer.failTx(t.number, fmt.Errorf("%w: it has far more; split it", kv.ErrTxTooLarge))
	}
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
	number := d.uvarint()
	if d.err != nil {
		return
	}
	switch code {
	case opWatch:
		if key := d.bytes(); d.err == nil {
			t.peer.addWatch(number, t.tx.Watch(key))
		}
	case opGet:
		flags := d.byte()
		if key := d.bytes(); d.err == nil {
			t.asked = append(t.asked, asked{number: number, value: t.reader(flags).Get(key)})
		}
	case opGetRange:
		flags := d.byte()
		r, limit := d.span(), d.limit()
		if d.err == nil {
			t.askRange(number, newRangeRead(t.reader(flags), r, limit, flags&readReverse != 0))
		}
	case opReadVersion:
		t.answerAsked()
		version, err := t.tx.ReadVersion(t.ctx)
		if t.answer(number, answerVersion, err) {
			t.answers = binary.AppendVarint(t.answers, int64(version))
		}
	case opCommit:
		t.answerAsked()
		t.commit(number)
	default:
		d.fail()
	}
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
	if waiter, ok := t.peer.server.db.(kv.ConflictWaiter); ok && errors.Is(err, kv.ErrConflict) {
		// Here the wait costs the client no round trip.
		ctx, cancel := context.WithTimeout(t.ctx, conflictWait)
		if waiter.WaitConflict(ctx, t.tx) == nil {
			err = fmt.Errorf("%w (%w)", err, errWaited)
		}
		cancel()
	}
	if t.answer(number, answerCommitted, err) {
		t.answers = binary.AppendVarint(t.answers, int64(done.Version))
		t.answers = append(t.answers, done.Stamp[:]...)
	}
	t.flush()
	t.abandon()
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

// answerAsked waits for the reads that were asked, and answers them.
func (t *work) answerAsked() {
	for _, a := range t.asked {
		if a.page != nil {
			t.answerRange(a.number, a.page)
			continue
		}
		value, err := a.value.Wait(t.ctx)
		kind := answerValue
		if value == nil {
			kind = answerAbsent
		}
		if t.answer(a.number, kind, err) && value != nil {
			t.answers = appendBytes(t.answers, value)
		}
		t.flushIfLong()
	}
	clear(t.asked)
	t.asked = t.asked[:0]
}

func (t *work) flushIfLong() {
	if len(t.answers) >= chunkSize {
		t.flush()
	}
}

// flush sends the answers that there are.
func (t *work) flush() {
	if len(t.answers) == 0 {
		return
	}
	var head [binary.MaxVarintLen64]byte
	_ = t.peer.out.send(frameAnswers, binary.AppendUvarint(head[:0], t.number), t.answers)
	t.answers = t.answers[:0]
}
