package embedded

import (
	"bytes"
	"errors"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Get implements kv.Reader.
func (t *transaction) Get(key []byte) kv.Pending[[]byte] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return kv.Ready(t.get(key, true))
}

// GetRange implements kv.Reader.
func (t *transaction) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return kv.Ready(t.getRange(r, o, true))
}

// Snapshot implements kv.Tx.
func (t *transaction) Snapshot() kv.Reader { return snapshot{t} }

// snapshot reads without adding read conflicts.
type snapshot struct{ t *transaction }

// Get implements kv.Reader.
func (s snapshot) Get(key []byte) kv.Pending[[]byte] {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	return kv.Ready(s.t.get(key, false))
}

// GetRange implements kv.Reader.
func (s snapshot) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	return kv.Ready(s.t.getRange(r, o, false))
}

// own returns what the transaction wrote, nil where it wrote nothing.
func (t *transaction) own() *overlay {
	if len(t.work.ops) == 0 {
		return nil
	}
	o := &t.work.overlay
	o.catchUp(t.work.ops)
	return o
}

func (t *transaction) get(key []byte, serializable bool) ([]byte, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	if err := kv.CheckLegal(key); err != nil {
		return nil, err
	}
	if len(key) > kv.MaxKeySize {
		return nil, nil
	}
	var mine *point
	if o := t.own(); o != nil {
		mine = o.find(key)
	}
	if mine != nil {
		switch mine.kind {
		case unreadable:
			t.fail(kv.ErrUnreadable)
			return nil, kv.ErrUnreadable
		case written:
			return append([]byte{}, mine.value...), nil
		case cleared:
			return nil, nil
		}
	}
	value, err := t.store.index.lookup(key, t.version, &t.store.line)
	if err != nil {
		return nil, err
	}
	if serializable {
		t.work.addRead(span{begin: t.work.keep(key)})
	}
	if mine == nil {
		return value, nil
	}
	if result, present := mine.resolve(value, value != nil); present {
		return append([]byte{}, result...), nil
	}
	return nil, nil
}

func (t *transaction) getRange(r kv.Range, o kv.RangeOptions, serializable bool) (kv.Page, error) {
	if err := t.enter(); err != nil {
		return kv.Page{}, err
	}
	if err := kv.CheckRange(r); err != nil {
		return kv.Page{}, err
	}
	r = cutRange(r)
	if r.Empty() {
		return kv.Page{}, nil
	}
	var page kv.Page
	var err error
	own := t.own()
	if own != nil && !own.touches(r.Begin, r.End) {
		own = nil
	}
	if own == nil {
		page, err = t.plainRange(r, o)
	} else {
		page, err = t.mergedRange(own, r, o)
	}
	if errors.Is(err, kv.ErrUnreadable) {
		t.fail(err)
	}
	if err != nil {
		return kv.Page{}, err
	}
	if serializable {
		t.addRangeRead(own, r, o, page)
	}
	return page, nil
}

// addRangeRead adds the part of the range that the page covers to the read
// conflicts, without what the transaction itself set or cleared.
func (t *transaction) addRangeRead(own *overlay, r kv.Range, o kv.RangeOptions, page kv.Page) {
	w := t.work
	begin, end := r.Begin, r.End
	if page.More {
		last := page.Items[len(page.Items)-1].Key
		if o.Reverse {
			begin = last
		} else {
			end = w.after(last)
		}
	}
	if own == nil {
		w.addRead(span{begin: w.keep(begin), end: w.keep(end)})
		return
	}
	own.foreign(begin, end, func(begin, end []byte) {
		w.addRead(span{begin: w.keep(begin), end: w.keep(end)})
	})
}

// cursor returns the transaction's cursor, at the beginning of a range.
func (t *transaction) cursor(r kv.Range, reverse bool) *cursor {
	c := &t.work.cursor
	*c = cursor{index: &t.store.index, version: t.version, line: &t.store.line, reverse: reverse,
		begin: r.Begin, end: r.End, mark: c.mark}
	return c
}

// plainRange reads a range of a transaction that has written nothing.
func (t *transaction) plainRange(r kv.Range, o kv.RangeOptions) (kv.Page, error) {
	c, rows := t.cursor(r, o.Reverse), &t.work.rows
	var items []kv.KeyValue
	for size := 0; ; {
		more, err := c.fetch(rows, o.Limit-len(items), o.Bytes-size)
		at := len(items)
		if err == nil {
			items, err = rows.appendTo(items)
		}
		if err != nil {
			return kv.Page{}, err
		}
		// Some rows of the buffer may not have been there, or have had a value of a size that nobody knew.
		for ; at < len(items); at++ {
			if size += len(items[at].Key) + len(items[at].Value); isFull(o, at+1, size) {
				return kv.Page{Items: items[:at+1], More: true}, nil
			}
		}
		if !more {
			return kv.Page{Items: items}, nil
		}
	}
}

// isFull reports whether a page has come to a bound of its size.
func isFull(o kv.RangeOptions, rows, size int) bool {
	return o.Limit > 0 && rows >= o.Limit || o.Bytes > 0 && size >= o.Bytes
}

// merge reads a range as the store has it together with what the transaction
// wrote there.
type merge struct {
	own     *overlay
	points  []*point
	base    *cursor
	rows    *rowBuffer
	fetched []kv.KeyValue
	reverse bool
	// at is where the walk has come to; what lies before it was read.
	at      []byte
	options kv.RangeOptions
	items   []kv.KeyValue
	size    int // of the items
}

// mergedRange reads a range of a transaction that has written.
func (t *transaction) mergedRange(own *overlay, r kv.Range, o kv.RangeOptions) (kv.Page, error) {
	m := &merge{own: own, points: own.between(r.Begin, r.End, o.Reverse), base: t.cursor(r, o.Reverse),
		rows: &t.work.rows, reverse: o.Reverse, at: r.Begin, options: o}
	bound := r.End
	if o.Reverse {
		m.at, bound = r.End, r.Begin
	}
	for {
		base, found, err := m.peek()
		if err != nil {
			return kv.Page{}, err
		}
		if !found && len(m.points) == 0 {
			if m.crossesUnreadable(bound) {
				return kv.Page{}, kv.ErrUnreadable
			}
			return kv.Page{Items: m.items}, nil
		}
		if err := m.step(base, found); err != nil {
			return kv.Page{}, err
		}
		if isFull(o, len(m.items), m.size) {
			return kv.Page{Items: m.items, More: true}, nil
		}
	}
}

// step takes the nearer of the store's next row and the transaction's.
func (m *merge) step(base kv.KeyValue, found bool) error {
	order := -1
	if len(m.points) > 0 {
		order = 1
		if found {
			order = bytes.Compare(base.Key, m.points[0].key)
			if m.reverse {
				order = -order
			}
		}
	}
	key := base.Key
	if order >= 0 {
		key = m.points[0].key
	}
	if m.crossesUnreadable(key) || m.own.unreadable.contains(key) {
		return kv.ErrUnreadable
	}
	m.at = key
	if !m.reverse {
		m.at = kv.After(key)
	}
	if order <= 0 {
		m.fetched = m.fetched[1:]
	}
	if order < 0 {
		m.take(base)
		return nil
	}
	p := m.points[0]
	m.points = m.points[1:]
	if p.kind == unreadable {
		return kv.ErrUnreadable
	}
	var value []byte
	if order == 0 {
		value = base.Value
	}
	if result, present := p.resolve(value, order == 0); present {
		m.take(kv.KeyValue{Key: bytes.Clone(key), Value: append([]byte{}, result...)})
	}
	return nil
}

func (m *merge) take(item kv.KeyValue) {
	m.items, m.size = append(m.items, item), m.size+len(item.Key)+len(item.Value)
}

// crossesUnreadable reports whether the way from the last row to key passes over
// keys that the transaction can't read.
func (m *merge) crossesUnreadable(key []byte) bool {
	begin, end := m.at, key
	if m.reverse {
		begin, end = key, m.at
	}
	return bytes.Compare(begin, end) < 0 && len(m.own.unreadable.overlapping(begin, end)) > 0
}

// peek returns the store's next row that the transaction has not cleared.
func (m *merge) peek() (kv.KeyValue, bool, error) {
	for {
		if len(m.fetched) == 0 {
			if m.base.done {
				return kv.KeyValue{}, false, nil
			}
			if err := m.fetch(); err != nil {
				return kv.KeyValue{}, false, err
			}
			continue
		}
		next := m.fetched[0]
		i := m.own.cleared.from(next.Key)
		if i == len(m.own.cleared.ranges) || !m.own.cleared.ranges[i].Contains(next.Key) {
			return next, true, nil
		}
		hole := m.own.cleared.ranges[i]
		m.fetched = nil
		if m.reverse {
			m.base.end = hole.Begin
		} else {
			m.base.begin = hole.End
		}
		m.base.done = false
	}
}

// fetch copies some rows out of the store.
func (m *merge) fetch() error {
	want := 0
	if m.options.Limit > 0 {
		want = m.options.Limit - len(m.items) + 1
	}
	_, err := m.base.fetch(m.rows, want, m.options.Bytes)
	if err == nil {
		m.fetched, err = m.rows.appendTo(nil)
	}
	return err
}
