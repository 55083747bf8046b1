package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// groupBytes is the size of a group's record from which on no more commits
// join it.
const groupBytes = 1 << 20

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

// group is commits that become durable and visible together. It is reused.
type group struct {
	// body is their mutations as the log holds them.
	body []byte
	last kv.Version
	// large are the large values in it, file and place where it is in the log.
	large []loggedValue
	file  uint64
	place int64
	// number counts the groups of this run of the store.
	number  uint64
	waiters []*request
	touched []*watch
}

func (g *group) empty() bool { return g.last == 0 }

// reset empties the group, which keeps its memory.
func (g *group) reset() {
	clear(g.waiters)
	clear(g.touched)
	*g = group{body: g.body[:0], large: g.large[:0], waiters: g.waiters[:0], touched: g.touched[:0]}
}

// sequencer gives commits their order. Whoever uses it holds the store's
// commit lock.
type sequencer struct {
	index  *index
	line   *timeline
	ranges writtenRanges
	watch  *watchTable

	last kv.Version
	// recorded says that groups need a body.
	recorded bool
	// early says that commits are answered before they are durable.
	early   bool
	history int

	commits, conflicts uint64
	key, value         []byte
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
		if v := q.index.changedKey(s.begin); v > since {
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
	if len(q.index.shelves) > 0 {
		for i := range r.work.ops {
			if o := &r.work.ops[i]; o.kind == opAtomic {
				if err := q.index.unshelve(o.key); err != nil {
					return err
				}
			}
		}
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

// run takes the requests in order into g, until the group is large enough. It
// answers those that fail, and returns how many it took.
func (q *sequencer) run(g *group, batch []*request) int {
	for i, r := range batch {
		if i > 0 && len(g.body) >= groupBytes {
			return i
		}
		if err := q.admit(r); err != nil {
			r.finish(err)
			continue
		}
		q.apply(g, r)
		g.waiters = append(g.waiters, r)
	}
	return len(batch)
}

// apply writes the mutations of r at the next version.
func (q *sequencer) apply(g *group, r *request) {
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
			q.mutate(g, &ops[i], r.committed)
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
		g.touched = q.watch.touched(g.touched, x.touched)
		clear(x.touched)
		x.touched = x.touched[:0]
	}
	q.last, g.last = v, v
	q.commits++
}

func (q *sequencer) mutate(g *group, o *op, c kv.Committed) {
	switch o.kind {
	case opSet:
		q.set(g, o.key, o.value, c.Version)
	case opStampKey:
		q.key = stamped(q.key, o.key, o.offset, c.Stamp)
		q.set(g, q.key, o.value, c.Version)
	case opStampValue:
		q.value = stamped(q.value, o.value, o.offset, c.Stamp)
		q.set(g, o.key, q.value, c.Version)
	case opClear:
		q.clear(g, o.key, c.Version)
	case opClearRange:
		if q.index.clearRange(o.key, o.value, c.Version) > 0 && q.recorded {
			g.body = appendClearRange(g.body, o.key, o.value)
		}
		q.ranges.add(o.key, o.value, c.Version)
	case opAtomic:
		q.atomic(g, o, c.Version)
	default:
		panic(fmt.Sprintf("embedded: unknown mutation %d", o.kind))
	}
}

func (q *sequencer) set(g *group, key, value []byte, v kv.Version) {
	r := q.index.set(key, value, v)
	if !q.recorded {
		return
	}
	g.body = appendSet(g.body, key, value)
	if len(value) >= q.index.largeValue {
		at := len(g.body) - len(value)
		g.large = append(g.large, loggedValue{revision: r, version: v, at: at, size: len(value)})
	}
}

func (q *sequencer) clear(g *group, key []byte, v kv.Version) {
	if !q.index.clear(key, v) {
		q.ranges.addKey(key, v)
		return
	}
	if q.recorded {
		g.body = appendClear(g.body, key)
	}
}

func (q *sequencer) atomic(g *group, o *op, v kv.Version) {
	value, present := q.index.newest(o.key)
	result, stays := applyAtomic(o.atomic, value, present, o.value, q.number[:])
	switch {
	case stays && present && bytes.Equal(result, value), !stays && !present:
		q.ranges.addKey(o.key, v)
	case stays:
		q.set(g, o.key, result, v)
	default:
		q.clear(g, o.key, v)
	}
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
		floor := q.line.lowest()
		q.index.collect(floor)
		q.ranges.forget(floor)
		if len(q.index.retired) > 0 {
			q.index.closeShelves(floor)
		}
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
