package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// batchBytes is the size of a batch's record from which on no more commits
// join it.
const batchBytes = 1 << 20

const (
	// briefHistory is how long versions are kept under load, so that a client
	// that committed one can read at it.
	briefHistory = 50 * time.Millisecond
	// historyBurst is how many times Options.HistoryVersions may be kept for
	// that.
	historyBurst = 64
)

// request is a commit on its way through the sequencer.
type request struct {
	work *workspace
	// readVersion is what the transaction read at, noVersion if it read
	// nothing that counts.
	readVersion kv.Version
	noSync      bool

	committed kv.Committed
	// conflict is the version of the commit that this one conflicts with.
	conflict kv.Version
	err      error
	// done is sent one value when the request has its answer.
	done chan struct{}
}

func (r *request) finish(err error) {
	r.err = err
	r.done <- struct{}{}
}

// commitBatch is commits that become durable and visible together. It is reused.
type commitBatch struct {
	// body is their mutations as the log holds them.
	body []byte
	last kv.Version
	// large are the large values in it, file and place where it is in the log.
	large []loggedValue
	file  uint64
	place int64
	// number counts the batches of this run of the store.
	number  uint64
	waiters []*request
	touched []*watch
}

func (b *commitBatch) empty() bool { return b.last == 0 }

// reset empties the batch, which keeps its memory.
func (b *commitBatch) reset() {
	clear(b.waiters)
	clear(b.touched)
	*b = commitBatch{body: b.body[:0], large: b.large[:0], waiters: b.waiters[:0], touched: b.touched[:0]}
}

// sequencer gives commits their order. Whoever uses it holds the store's
// commit lock.
type sequencer struct {
	index  *index
	line   *timeline
	ranges writtenRanges
	watch  *watchTable

	last kv.Version
	// recorded says that batches need a body.
	recorded bool
	history  int

	commits, conflicts uint64
	key, value         []byte
	// loaded are values that lie in files, of keys that atomic operations change.
	loaded map[string][]byte
	// number is where atomic operations make small values.
	number [64]byte
}

// check returns the version of a commit that wrote what r read after r read
// it, or zero.
func (q *sequencer) check(r *request) kv.Version {
	for i := range r.work.reads {
		s := &r.work.reads[i]
		if v := q.written(s, r.readVersion, r.work); v != 0 {
			return v
		}
	}
	return 0
}

func (q *sequencer) written(s *span, since kv.Version, work *workspace) kv.Version {
	if s.end == nil {
		if v := q.index.changedKey(s.begin, since); v != 0 {
			return v
		}
		if q.ranges.newest <= since {
			return 0
		}
		return q.ranges.written(s.begin, work.after(s.begin), since)
	}
	if v := q.index.changed(s.begin, s.end, since); v != 0 {
		return v
	}
	return q.ranges.written(s.begin, s.end, since)
}

// admit reports whether r may be applied, and makes ready what that needs.
func (q *sequencer) admit(r *request) error {
	if err := q.load(r.work.ops); err != nil {
		return err
	}
	if len(r.work.reads) == 0 {
		return nil
	}
	if r.readVersion < q.line.lowest() {
		return kv.ErrTooOld
	}
	if conflict := q.check(r); conflict != 0 {
		r.conflict = conflict
		q.conflicts++
		return kv.ErrConflict
	}
	return nil
}

// load reads the values that atomic operations change and memory does not have.
func (q *sequencer) load(ops []op) error {
	clear(q.loaded)
	x := q.index
	if len(x.valueFiles) == 0 && len(x.base.tables) == 0 {
		return nil
	}
	for i := range ops {
		o := &ops[i]
		if o.kind != opAtomic {
			continue
		}
		s, err := x.elsewhere(o.key)
		if err != nil {
			return err
		}
		if !s.exists() {
			continue
		}
		value, err := s.read(o.key, nil)
		if err != nil {
			return err
		}
		if value != nil {
			q.loaded[string(o.key)] = value
		}
	}
	return nil
}

// run takes the requests in order into b, until the batch is large enough. It
// answers those that fail, and returns how many it took.
func (q *sequencer) run(b *commitBatch, requests []*request) int {
	for i, r := range requests {
		if i > 0 && len(b.body) >= batchBytes {
			return i
		}
		if err := q.admit(r); err != nil {
			r.finish(err)
			continue
		}
		q.apply(b, r)
		b.waiters = append(b.waiters, r)
	}
	return len(requests)
}

// apply writes the mutations of r at the next version.
func (q *sequencer) apply(b *commitBatch, r *request) {
	v := q.last + 1
	binary.BigEndian.PutUint64(r.committed.Stamp[:], uint64(v))
	r.committed.Version = v
	x := q.index
	for ops := r.work.ops; len(ops) > 0; {
		n := min(len(ops), lockedRows)
		x.mu.Lock()
		// A watch that is armed after this question sees what this part writes.
		x.watched = q.watch.live.Load() > 0
		for i := range ops[:n] {
			q.mutate(b, &ops[i], r.committed)
		}
		x.mu.Unlock()
		ops = ops[n:]
	}
	for _, s := range r.work.writes {
		if s.end == nil {
			q.ranges.addKey(s.begin, v)
		} else {
			q.ranges.add(s.begin, s.end, v)
		}
	}
	if len(x.touched) > 0 {
		b.touched = q.watch.touched(b.touched, x.touched)
		clear(x.touched)
		x.touched = x.touched[:0]
	}
	q.last, b.last = v, v
	q.commits++
}

func (q *sequencer) mutate(b *commitBatch, o *op, c kv.Committed) {
	switch o.kind {
	case opSet:
		q.set(b, o.key, o.value, c.Version)
	case opStampKey:
		q.key = stamped(q.key, o.key, o.offset, c.Stamp)
		q.set(b, q.key, o.value, c.Version)
	case opStampValue:
		q.value = stamped(q.value, o.value, o.offset, c.Stamp)
		q.set(b, o.key, q.value, c.Version)
	case opClear:
		q.clear(b, o.key, c.Version)
	case opClearRange:
		removed, below := q.index.clearRange(o.key, o.value, c.Version)
		if (removed > 0 || below) && q.recorded {
			b.body = appendClearRange(b.body, o.key, o.value)
		}
		if below && q.index.watched {
			b.touched = q.watch.within(b.touched, o.key, o.value)
		}
		q.ranges.add(o.key, o.value, c.Version)
	case opAtomic:
		q.atomic(b, o, c.Version)
	default:
		panic(fmt.Sprintf("embedded: unknown mutation %d", o.kind))
	}
}

func (q *sequencer) set(b *commitBatch, key, value []byte, v kv.Version) {
	r := q.index.set(key, value, v)
	if !q.recorded {
		return
	}
	b.body = appendSet(b.body, key, value)
	if len(value) >= q.index.largeValue {
		at := len(b.body) - len(value)
		b.large = append(b.large, loggedValue{revision: r, version: v, at: at, size: len(value)})
	}
}

func (q *sequencer) clear(b *commitBatch, key []byte, v kv.Version) {
	if !q.index.clear(key, v) {
		q.ranges.addKey(key, v)
		return
	}
	if q.recorded {
		b.body = appendClear(b.body, key)
	}
}

func (q *sequencer) atomic(b *commitBatch, o *op, v kv.Version) {
	value, present := q.newest(o.key)
	result, stays := applyAtomic(o.atomic, value, present, o.value, q.number[:])
	switch {
	case stays && present && bytes.Equal(result, value), !stays && !present:
		q.ranges.addKey(o.key, v)
	case stays:
		q.set(b, o.key, result, v)
	default:
		q.clear(b, o.key, v)
	}
}

// newest returns the row's last value, published or not.
func (q *sequencer) newest(key []byte) ([]byte, bool) {
	x := q.index
	r := x.tree.getNear(key)
	if r == 0 {
		value, below := q.loaded[string(key)]
		return value, below && !x.cold.holes.contain(key, math.MaxInt64)
	}
	if x.at(r).absent() {
		return nil, false
	}
	if x.at(r).spilled() {
		return q.loaded[string(key)], true
	}
	return x.at(r).value(), true
}

// stamped copies b into to with the stamp at offset.
func stamped(to, b []byte, offset int32, s kv.Stamp) []byte {
	to = append(to[:0], b...)
	copy(to[offset:], s[:])
	return to
}

// collect drops what no transaction can read any more.
func (q *sequencer) collect(now time.Time) {
	kept, raised := q.index.kept(), false
	enough := q.history
	if kept > q.history+q.history/4 {
		// Once it is worth the lock, more goes at a time.
		enough = q.history / 2
	}
	for q.line.advance(now, keepFor(kept, enough, q.history)) {
		raised = true
		kept = q.index.newer(q.line.lowest())
	}
	if raised {
		q.forget()
	}
	if x := q.index; x.most > 0 {
		x.over.Store(x.resident() > x.most+x.most/8)
	}
}

// raise makes a version the lowest that can be read, as far as no reader keeps it from
// that and older ones were superseded for keep, except some that were published before the
// last one. It returns which one is.
func (q *sequencer) raise(v kv.Version, now time.Time, keep time.Duration, except int) kv.Version {
	for q.line.lowest() < v && q.line.readable() > except+1 && q.line.advance(now, keep) {
	}
	q.forget()
	return q.line.lowest()
}

// forget drops what no transaction can read at the versions that are left.
func (q *sequencer) forget() {
	floor := q.line.lowest()
	q.index.collect(floor)
	q.ranges.forget(floor)
	if len(q.index.retired) > 0 {
		q.index.closeFiles(floor)
	}
}

// keepFor returns for how long versions without readers are kept while
// there are so many.
func keepFor(kept, enough, history int) time.Duration {
	switch {
	case kept <= enough:
		return math.MaxInt64
	case kept <= history*historyBurst:
		return briefHistory
	}
	return 0
}
