package remote

import (
	"errors"
	"fmt"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// exchange is the questions of a transaction that wait for answers. Its lock is
// never held while something is sent, so that answers always find their way.
type exchange struct {
	mu      sync.Mutex
	last    uint64
	pending []*request
	err     error // what everything fails with from now on
	// doubt is set while a commit may be under way.
	doubt bool
}

// request is one question. The answer belongs to the caller once done is
// closed.
type request struct {
	number  uint64
	commit  bool
	done    chan struct{}
	err     error
	value   []byte
	page    kv.Page
	version kv.Version
	stamp   kv.Stamp
}

// ask makes a question.
func (x *exchange) ask(commit bool) (*request, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return nil, x.err
	}
	x.last++
	q := &request{number: x.last, commit: commit, done: make(chan struct{})}
	x.pending = append(x.pending, q)
	return q, nil
}

// setDoubt says that a commit may be under way from now on.
func (x *exchange) setDoubt() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.doubt = true
}

// fail ends all questions, now and later. A commit that may be under way has an
// unknown result, unless the server says that it did not take place.
func (x *exchange) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return
	}
	x.err = err
	var said *answered
	for _, q := range x.pending {
		q.err = err
		if q.commit && x.doubt && !errors.As(err, &said) {
			q.err = fmt.Errorf("%w: %w", kv.ErrUnknownResult, err)
		}
		close(q.done)
	}
	x.pending = nil
}

// find returns a question that waits, and its place.
func (x *exchange) find(number uint64) (*request, int) {
	for i, q := range x.pending {
		if q.number == number {
			return q, i
		}
	}
	return nil, 0
}

// answer takes one answer from d.
func (x *exchange) answer(d *decoder) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q, at := x.find(d.uvarint())
	if q == nil {
		if x.err == nil {
			d.fail()
		}
		d.b = nil
		return
	}
	if last := q.take(d); last && d.err == nil {
		x.pending = append(x.pending[:at], x.pending[at+1:]...)
		close(q.done)
	}
}

// take reads the answer, and reports whether nothing follows.
func (q *request) take(d *decoder) bool {
	kind := d.byte()
	if kind != answerError && q.commit != (kind == answerCommitted) {
		d.fail() // nothing else says that a commit was made
		return true
	}
	switch kind {
	case answerError:
		q.err = d.error()
	case answerAbsent:
	case answerValue:
		q.value = d.bytes()
	case answerRows, answerLastRows:
		if kind == answerLastRows {
			q.page.More = d.byte() != 0
		}
		q.takeRows(d)
		return kind == answerLastRows
	case answerVersion:
		q.version = kv.Version(d.varint())
	case answerCommitted:
		q.version = kv.Version(d.varint())
		for i := range q.stamp {
			q.stamp[i] = d.byte()
		}
	default:
		d.fail()
	}
	return true
}

func (q *request) takeRows(d *decoder) {
	n := d.count(2)
	if q.page.Items == nil && n > 0 {
		q.page.Items = make([]kv.KeyValue, 0, n)
	}
	for range n {
		key := d.bytes()
		q.page.Items = append(q.page.Items, kv.KeyValue{Key: key, Value: d.bytes()})
	}
}
