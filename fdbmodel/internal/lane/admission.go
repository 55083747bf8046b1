package lane

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

const (
	// maxAdmit is how many futures of one lane a transaction admits at most.
	maxAdmit = 128
	// rateStep is how far ahead of its rate a lane admits futures, so that those of a
	// high rate are admitted together.
	rateStep = 50 * time.Millisecond
	// unreadablePause is how long a lane waits that has room, and in line only futures
	// that can't be read.
	unreadablePause = time.Second
)

// admission is the part of a transaction that admits futures to lanes. It reads
// before it writes: what is put in line can't be read again in the same transaction.
// A transaction that puts futures in line reads the record of the lane; one that frees a
// slot changes that record, or takes the first in line. So no lane with room has futures in
// line, and those that get in line of a full lane don't conflict.
type admission struct {
	*Index
	now     time.Time
	lanes   []*state
	byLane  map[layout.Lane]*state
	ordered []*Kind
}

// state is one lane.
type state struct {
	*Change
	key         []byte // of the record
	kind        *Kind
	record, was layout.LaneRecord
	// line are the next futures in line. more says that there are others behind them,
	// skipped that some before them could not be read.
	line          []inLine
	more, skipped bool
	asked         bool // page is requested and not read yet
	page          kv.Pending[kv.Page]
	next          []byte // where the others begin
	quota         int    // how many it may admit
	turn          []byte // the key of its turn, if that was read
	again         bool   // the lanes that take turns with it are to be looked at again at once
}

// inLine is a future in line, as requested.
type inLine struct {
	key      []byte
	priority int64
	row      read.Pending
}

// Flush implements index.Index. It admits the first futures in line to the slots that are free once the
// transaction has done everything else, and puts in line what gets no slot.
func (x *Index) Flush(ctx context.Context) error {
	if len(x.changes) == 0 {
		return nil
	}
	a := admission{Index: x, now: x.Model.Now(), byLane: make(map[layout.Lane]*state, len(x.changes)),
		lanes: make([]*state, 0, len(x.changes))}
	if err := a.read(ctx); err != nil {
		return err
	}
	if err := a.readLines(ctx); err != nil {
		return err
	}
	for _, l := range a.lanes {
		if l.kind.Settings.Total > 0 {
			continue
		}
		for more := true; more; {
			var err error
			if more, _, err = a.admit(ctx, l); err != nil {
				return err
			}
		}
	}
	for _, k := range a.ordered {
		if err := a.takeTurns(ctx, k); err != nil {
			return err
		}
	}
	if err := a.refuse(ctx); err != nil {
		return err
	}
	for _, l := range a.lanes {
		a.write(l)
	}
	return nil
}

// read reads the lanes that the transaction changes, and their kinds.
func (a *admission) read(ctx context.Context) error {
	records := make([]asked, len(a.changes))
	settings := map[string]kv.Pending[[]byte]{}
	for i, c := range a.changes {
		records[i] = a.ask(c.lane)
		if c.slots < 0 && !a.shared && a.Known.wasLined(c.lane) {
			records[i].line, records[i].lined = a.askLine(c.lane, nil, -c.slots), true
		}
		name := c.lane.Kind
		if _, is := settings[name]; !is && a.kinds[name] == nil {
			settings[name] = a.Tx.Get(a.Keys.LaneKind(name))
		}
	}
	damaged := &DamagedError{}
	for i, c := range a.changes {
		k, err := a.Kind(ctx, c.lane.Kind, settings[c.lane.Kind])
		if err == nil && !slices.Contains(a.ordered, k) {
			err = a.readTotal(ctx, k)
		}
		if err == nil {
			_, err = a.readLane(ctx, c, k, records[i])
		}
		switch {
		case layout.IsUnreadable(err):
			damaged.Lanes, damaged.Err = append(damaged.Lanes, c.lane), cmp.Or(damaged.Err, err)
		case err != nil:
			return err
		}
	}
	if len(damaged.Lanes) > 0 {
		return damaged
	}
	return nil
}

// asked is the record of a lane, as requested, and its key.
type asked struct {
	key   []byte
	value kv.Pending[[]byte]
	lined bool // the first futures in line are requested too
	line  kv.Pending[kv.Page]
}

func (a *admission) ask(l layout.Lane) asked {
	key := a.Keys.Lane(l)
	return asked{key: key, value: a.Tx.Get(key)}
}

func (a *admission) readLane(ctx context.Context, c *Change, k *Kind, r asked) (*state, error) {
	l := &state{Change: c, key: r.key, kind: k, asked: r.lined, page: r.line}
	value, err := r.value.Wait(ctx)
	if err == nil && value != nil {
		err = layout.Decode(r.key, value, &l.record)
	}
	if l.was = l.record; err != nil {
		return nil, err
	}
	a.lanes, a.byLane[c.lane] = append(a.lanes, l), l
	if l.Pause != nil {
		l.record.Paused = *l.Pause
	}
	if l.Due != nil {
		a.Tx.Clear(l.Due)
	}
	if due := l.record.Due; due != 0 && due <= layout.Millis(a.now) {
		a.Tx.Clear(a.Keys.LaneDue(l.lane, due))
		l.record.Due = 0
	}
	slices.SortStableFunc(l.joining, func(x, y joining) int {
		return cmp.Compare(y.row.Spec.Priority, x.row.Spec.Priority)
	})
	l.record.Open += l.slots
	l.record.Called += l.called
	k.total.Open += l.slots
	if l.Sweep || l.spentAhead(a.now) {
		a.forgetRate(l)
	}
	if l.quota, l.more = l.room(a.now), l.record.Lined; l.more {
		l.quota = min(maxAdmit, l.quota)
	}
	if a.shared && l.more {
		l.quota = 0 // whoever is in line is not to be overtaken, and may not be read
	}
	if k.Settings.Bundle != "" {
		l.quota = min(l.quota, max(0, 1-l.record.Called))
	}
	if k.Settings.Total > 0 && !l.record.Turn && l.quota > 0 && (l.more || len(l.joining) > 0) {
		k.back = append(k.back, l)
	}
	return l, nil
}

// room returns how many futures the settings of its kind let a lane admit now, the
// total width aside.
func (l *state) room(now time.Time) int {
	k := &l.kind.Settings
	if k.Paused || l.record.Paused || l.record.Open >= k.Width {
		return 0
	}
	room := k.Width - l.record.Open
	if k.Rate == 0 {
		return room
	}
	free, spent := now.UnixMicro(), l.record.Spent
	allowed := int((free + rateStep.Microseconds() - max(free, spent)) / spacing(k))
	if spent <= free {
		allowed = max(1, allowed)
	}
	return min(room, max(0, allowed))
}

// clockSkew is by how much a clock may be ahead of the others.
const clockSkew = time.Minute

// spentAhead reports whether the rate was used up to a time that only a wrong clock, or one
// that was set back since, can have written.
func (l *state) spentAhead(now time.Time) bool {
	k := &l.kind.Settings
	return k.Rate > 0 && l.record.Spent > now.Add(clockSkew+rateStep).UnixMicro()+spacing(k)
}

// forgetRate has a lane forget what it used of a slower rate than the present one, or by a
// wrong clock.
func (a *admission) forgetRate(l *state) {
	used := int64(0)
	if k := &l.kind.Settings; k.Rate > 0 {
		used = a.now.UnixMicro() + max(rateStep.Microseconds(), spacing(k))
	}
	l.record.Spent = min(l.record.Spent, used)
	if due := l.record.Due; due != 0 && due*1000 > used {
		a.Tx.Clear(a.Keys.LaneDue(l.lane, due))
		l.record.Due = 0
	}
}

// spacing is the time between two admissions, in microseconds.
func spacing(k *layout.LaneKind) int64 { return max(1, k.Every.Microseconds()/int64(k.Rate)) }

// readLines reads the lines of all lanes that admit some whoever else does, so that none
// waits for the lanes before it.
func (a *admission) readLines(ctx context.Context) error {
	var asked []*state
	for _, l := range a.lanes {
		if k := &l.kind.Settings; l.quota > 0 && l.more && k.Total == 0 && k.Bundle == "" {
			a.askNext(l)
			asked = append(asked, l)
		}
	}
	for _, l := range asked {
		if err := a.readLine(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// askLine requests the first futures in line, or those from a key on.
func (a *admission) askLine(l layout.Lane, from []byte, limit int) kv.Pending[kv.Page] {
	line := a.Keys.InLine(l)
	if from != nil {
		line.Begin = from
	}
	return a.Tx.GetRange(line, kv.RangeOptions{Limit: limit})
}

// askNext requests the next futures in line, unless it has.
func (a *admission) askNext(l *state) {
	limit := l.quota
	if l.skipped {
		limit = maxAdmit
	}
	if !l.asked {
		l.page, l.asked = a.askLine(l.lane, l.next, limit), true
	}
}

// readLine reads what was requested, or requests it.
func (a *admission) readLine(ctx context.Context, l *state) error {
	a.askNext(l)
	page, err := l.page.Wait(ctx)
	if l.asked = false; err != nil {
		return err
	}
	prefix := a.Keys.LineOf(l.lane)
	l.more = page.More
	var ids []layout.ID
	for _, item := range page.Items {
		l.next = kv.After(item.Key)
		var entry layout.LineEntry
		if layout.Decode(item.Key, item.Value, &entry) != nil {
			l.skipped = true // an audit reports it
			continue
		}
		if slices.Contains(a.Stamped, entry.ID) {
			a.Tx.Clear(item.Key) // it was in line by mistake
			continue
		}
		rest := tuple.NewReader(item.Key[len(prefix):])
		l.line = append(l.line, inLine{key: item.Key, priority: layout.MaxPriority - rest.Int()})
		ids = append(ids, entry.ID)
	}
	for i, p := range read.Records(a.Tx, a.Keys, ids, a.Stamped...) {
		l.line[i].row = p
	}
	return nil
}

// admit admits the next future of a lane, in line or joining. It returns false for more
// if the lane has no room, or no future in line any more.
func (a *admission) admit(ctx context.Context, l *state) (more, admitted bool, err error) {
	for l.quota > 0 && len(l.line) == 0 && l.more {
		if err := a.readLine(ctx, l); err != nil {
			return false, false, err
		}
	}
	switch {
	case l.quota == 0 || len(l.line)+len(l.joining) == 0:
		return false, false, nil
	case len(l.line) == 0 || len(l.joining) > 0 && int64(l.joining[0].row.Spec.Priority) > l.line[0].priority:
		if spec := l.joining[0].row.Spec; spec.Member {
			return a.call(l, spec)
		}
		a.admitJoining(l)
		return true, true, nil
	}
	first := l.line[0]
	row, _, err := first.row.Wait(ctx)
	if err == nil && row.Spec != nil && row.Spec.Member && row.Line != nil {
		return a.call(l, row.Spec)
	}
	l.line = l.line[1:]
	switch {
	case layout.IsUnreadable(err):
		l.skipped = true
		return true, false, nil
	case err != nil:
		return false, false, err
	case row.Spec == nil || row.Line == nil || !bytes.Equal(a.Keys.Line(&row), first.key):
		a.Tx.Clear(first.key) // of no future in line; an audit would report it
		return true, false, nil
	}
	after := row
	if !a.Model.Admit(&after, a.now) {
		l.skipped = true
		return true, false, nil
	}
	a.Model.Apply(&row, &after)
	l.take(a.now)
	return true, true, nil
}

// admitJoining admits the first of those that get in line with the transaction.
func (a *admission) admitJoining(l *state) {
	next := l.joining[0]
	l.joining = l.joining[1:]
	next.row.Line = nil
	a.Model.Place(next.row)
	if !next.submitted && next.row.InPool() {
		a.Model.Offer(next.row)
	}
	l.take(a.now)
}

// take counts a future that was admitted.
func (l *state) take(now time.Time) {
	l.quota--
	l.record.Open++
	l.kind.total.Open++
	if k := &l.kind.Settings; k.Rate > 0 {
		l.record.Spent = max(l.record.Spent, now.UnixMicro()) + spacing(k)
	}
}

// write writes the record of a lane, and puts in line what it has not admitted.
func (a *admission) write(l *state) {
	for i := range l.joining {
		a.putInLine(l.joining[i].row)
	}
	l.record.Lined = l.more || l.skipped || len(l.line)+len(l.joining) > 0
	a.Known.note(l.lane, l.record.Lined)
	a.holdBack(l)
	switch {
	case l.record == l.was:
	case l.record.Idle(a.now.UnixMicro()):
		a.Tx.Clear(l.key)
	default:
		a.Tx.Set(l.key, layout.Encode(&l.record))
	}
}

// putInLine puts a future at the end of the line of its priority.
func (a *admission) putInLine(row *layout.Row) {
	row.Line.Incarnation = a.Model.Incarnation()
	at := a.Keys.LineAt(row.Spec.Lane, row.Spec.Priority, row.Line.Incarnation)
	row.Line.Order = a.stampKey(at, layout.Encode(&layout.LineEntry{ID: row.ID}))
	a.Tx.SetVersionstampedValue(a.Keys.State(row.ID, layout.StateLine), layout.EncodeStamped(row.Line),
		layout.StampOffset)
	if a.Lined != nil {
		a.Lined[row.ID] = row
	}
}

// stampKey writes a key behind all that have the same prefix: with the stamp of the
// commit, and with a number that is larger than those before it in one transaction.
func (a *admission) stampKey(prefix, value []byte) (order int64) {
	order = a.Known.Order.Add(1)
	key, offset := tuple.AppendIncompleteStamp(prefix, 0)
	a.Tx.SetVersionstampedKey(tuple.AppendInt(key, order), offset, value)
	return order
}

// holdBack has a janitor look at a lane later that could admit futures but for its
// rate, or that has more of them than a transaction admits.
func (a *admission) holdBack(l *state) {
	k, r, now := &l.kind.Settings, &l.record, a.now.UnixMicro()
	waits := r.Lined && !r.Paused && !k.Paused && !r.Turn && r.Open < k.Width && r.Called == 0
	due := int64(0)
	if l.again && r.Due != 0 { // for the others: by then it is held back again
		a.Tx.Clear(a.Keys.LaneDue(l.lane, r.Due))
		r.Due = 0
	}
	switch {
	case r.Due != 0:
		return
	case l.again:
		due = layout.Millis(a.now)
	case waits && k.Rate > 0 && r.Spent > now, r.Open == 0 && !r.Lined && r.Spent > now:
		due = (min(r.Spent, math.MaxInt64-999) + 999) / 1000
	case waits && (len(l.line) > 0 || l.more || !l.skipped):
		due = layout.Millis(a.now)
	case waits:
		due = layout.Millis(a.now.Add(unreadablePause))
	default:
		return
	}
	r.Due = max(1, due)
	if a.Due == 0 || r.Due < a.Due {
		a.Due = r.Due
	}
	a.Tx.Set(a.Keys.LaneDue(l.lane, r.Due), nil)
}
