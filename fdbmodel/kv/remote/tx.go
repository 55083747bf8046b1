package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// tx implements kv.Tx. Operations are kept until an answer is waited for.
type tx struct {
	db      *Database
	options kv.Options
	talk    exchange

	mu     sync.Mutex
	stage  stage
	link   *link // nil before the first frame
	number uint64
	begun  bool     // the first frame was sent
	chunks [][]byte // operations that fill a frame each
	ops    []byte   // operations behind them

	mistake error // what the commit fails with
	reading bool  // set by the first read and by SetReadVersion
	wrote   bool  // set by the first write and write conflict
	written int   // bytes of operations that write
	watches []*watch
	waited  bool // the server waited for what the commit conflicted with
}

// stage is how far a transaction has come.
type stage uint8

const (
	stageOpen stage = iota
	stageCommitting
	stageCommitted
	stageOver
)

// usable returns why nothing can be done with the transaction.
func (t *tx) usable() error {
	if t.db.ctx.Err() != nil {
		return t.db.ending()
	}
	if t.stage != stageOpen {
		return kv.ErrUsed
	}
	return nil
}

// fail makes the commit fail with the first of the transaction's mistakes.
func (t *tx) fail(err error) {
	if t.mistake == nil {
		t.mistake = err
	}
}

// added closes a chunk that is long enough.
func (t *tx) added() {
	if len(t.ops) >= chunkSize {
		t.chunks = append(t.chunks, t.ops)
		t.ops = nil
	}
}

// send sends what is kept. It waits for a connection if there is none.
func (t *tx) send(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.link == nil && t.stage != stageOver {
		t.mu.Unlock()
		l, err := t.db.acquire(ctx)
		t.mu.Lock()
		if err != nil {
			return err
		}
		if err := t.bind(l); err != nil {
			return err
		}
	}
	t.flush()
	return nil
}

// bind makes the transaction one of the connection's.
func (t *tx) bind(l *link) error {
	if t.link != nil || t.stage == stageOver {
		return nil
	}
	number, err := l.add(&t.talk)
	if err != nil {
		return err
	}
	t.link, t.number = l, number
	return nil
}

// flush sends what is kept on the transaction's connection. If that breaks, all
// that wait are told, a commit among them that it is in doubt.
func (t *tx) flush() {
	if t.stage == stageOver || t.link == nil {
		return
	}
	if t.stage == stageCommitting {
		t.talk.setDoubt()
	}
	for _, chunk := range t.chunks {
		t.sendBatch(chunk)
	}
	t.chunks = nil
	if len(t.ops) > 0 {
		t.sendBatch(t.ops)
		t.ops = t.ops[:0]
	}
}

func (t *tx) sendBatch(ops []byte) {
	var buffer [64]byte
	head := binary.AppendUvarint(buffer[:0], t.number)
	if t.begun {
		head = append(head, 0)
	} else {
		flags := byte(flagBegin)
		if t.options.NoSync {
			flags |= flagNoSync
		}
		if t.options.Turns {
			flags |= flagTurns
		}
		tag := t.options.Tag
		head = appendBytes(append(head, flags), tag[:min(len(tag), kv.MaxTag)])
	}
	t.begun = true
	t.link.send(frameBatch, head, ops)
}

// await sends what is kept and waits for an answer.
func (t *tx) await(ctx context.Context, q *request) error {
	select {
	case <-q.done:
		return q.err
	default:
	}
	if err := t.send(ctx); err != nil {
		return err
	}
	if l := t.link; l != nil { // without it the transaction is over
		l.out.busy.Add(1)
		defer l.out.busy.Add(-1)
	}
	select {
	case <-q.done:
		return q.err
	default:
	}
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ReadVersion implements kv.Tx.
func (t *tx) ReadVersion(ctx context.Context) (kv.Version, error) {
	t.mu.Lock()
	q, err := t.ask(opReadVersion)
	t.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if err := t.await(ctx, q); err != nil {
		return 0, err
	}
	return q.version, nil
}

// SetReadVersion implements kv.Tx.
func (t *tx) SetReadVersion(v kv.Version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.usable() != nil {
		return
	}
	if t.reading {
		t.fail(fmt.Errorf("%w: SetReadVersion after the read version was fixed", kv.ErrUsed))
		return
	}
	t.reading = true
	t.ops = binary.AppendVarint(append(t.ops, opSetReadVersion), int64(v))
}

// Commit implements kv.Tx.
func (t *tx) Commit(ctx context.Context) (kv.Committed, error) {
	none := kv.Committed{Version: kv.NoVersion}
	q, err := t.askCommit(ctx)
	if q == nil {
		return none, err
	}
	err = t.await(ctx, q)
	if err == nil {
		t.settle()
		return kv.Committed{Version: q.version, Stamp: q.stamp}, nil
	}
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) && !errors.Is(err, kv.ErrUnknownResult) {
		err = fmt.Errorf("%w: %w", kv.ErrUnknownResult, err)
	}
	t.mu.Lock()
	t.waited = errors.Is(err, errWaited)
	t.mu.Unlock()
	t.end(err)
	return none, err
}

// askCommit makes the question of a commit, or decides it without the server.
func (t *tx) askCommit(ctx context.Context) (*request, error) {
	t.mu.Lock()
	err := t.usable()
	if err != nil {
		t.mu.Unlock()
		return nil, err
	}
	err = t.mistake
	if err == nil && (t.wrote || len(t.watches) > 0) {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", kv.ErrUnknownResult, ctx.Err())
		} else {
			var q *request
			if q, err = t.ask(opCommit); err == nil {
				t.stage = stageCommitting
				t.mu.Unlock()
				return q, nil
			}
		}
	}
	t.mu.Unlock()
	t.end(err)
	return nil, err
}

// settle ends a transaction that the server has committed.
func (t *tx) settle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage = stageCommitted
	t.free()
	t.link.drop(t.number)
	for _, w := range t.watches {
		if w.hasEnded() {
			t.link.cancelWatch(w.id)
		}
	}
}

// Cancel implements kv.Tx.
func (t *tx) Cancel() {
	t.mu.Lock()
	open := t.stage == stageOpen
	t.mu.Unlock()
	if open {
		t.end(kv.ErrCancelled)
	}
}

// end ends a transaction and its watches for that reason, nil if it only read.
func (t *tx) end(reason error) {
	t.mu.Lock()
	if t.stage == stageOver || t.stage == stageCommitted {
		t.mu.Unlock()
		return
	}
	t.stage = stageOver
	t.free()
	watches := t.watches
	t.watches = nil
	l, number, begun := t.link, t.number, t.begun
	t.mu.Unlock()
	for _, w := range watches {
		w.link.dropWatch(w.id) // the server may never have heard of it
		w.settle(reason)
	}
	if reason == nil {
		reason = kv.ErrUsed
	}
	t.talk.fail(reason)
	switch {
	case l == nil:
	case begun:
		l.cancelTx(number)
		if errors.Is(reason, kv.ErrUnknownResult) { // a commit that took place has left them
			for _, w := range watches {
				l.cancelWatch(w.id)
			}
		}
	default:
		l.drop(number)
	}
}

// free gives back the memory of a transaction that sends nothing more.
func (t *tx) free() {
	if t.ops != nil {
		t.db.buffers.Put(t.ops[:0])
	}
	t.ops, t.chunks = nil, nil
}

func (t *tx) hasWaited() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waited
}
