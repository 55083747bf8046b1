package reference

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// tx is a transaction. The store's lock guards it.
type tx struct {
	db *Database

	ended   bool
	pinned  bool
	reading bool
	version kv.Version
	since   time.Time
	broken  error

	mutations  []mutation
	reads      []kv.Range
	writes     []kv.Range
	known      []kv.Range // keys whose value no longer depends on the store
	unreadable []kv.Range // keys that an incomplete stamp may fall on
	watches    []*watch
}

// usable returns why nothing can be done with the transaction.
func (t *tx) usable() error {
	if t.db.closed {
		return kv.ErrClosed
	}
	if t.ended {
		return kv.ErrUsed
	}
	return nil
}

// read begins the first read, and returns why nothing can be read.
func (t *tx) read() error {
	if err := t.usable(); err != nil {
		return err
	}
	if !t.reading {
		t.reading, t.since = true, t.db.now()
		if !t.pinned {
			t.version = t.db.version()
		}
	}
	if t.db.now().Sub(t.since) > kv.TxLifetime || t.pinned && t.db.tooOld(t.version) {
		return kv.ErrTooOld
	}
	if t.version > t.db.version() {
		return kv.ErrFutureVersion
	}
	return nil
}

// ReadVersion implements kv.Tx.
func (t *tx) ReadVersion(ctx context.Context) (kv.Version, error) {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := t.read(); err != nil {
		return 0, err
	}
	return t.version, nil
}

// SetReadVersion implements kv.Tx.
func (t *tx) SetReadVersion(v kv.Version) {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	if t.reading || t.pinned {
		t.fail(kv.ErrUsed)
		return
	}
	t.pinned, t.version = true, v
}

// Get implements kv.Tx.
func (t *tx) Get(key []byte) kv.Pending[[]byte] { return t.get(key, true) }

// GetRange implements kv.Tx.
func (t *tx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return t.getRange(r, o, true)
}

// Snapshot implements kv.Tx.
func (t *tx) Snapshot() kv.Reader { return snapshot{t} }

type snapshot struct{ tx *tx }

// Get implements kv.Reader.
func (s snapshot) Get(key []byte) kv.Pending[[]byte] { return s.tx.get(key, false) }

// GetRange implements kv.Reader.
func (s snapshot) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return s.tx.getRange(r, o, false)
}

func (t *tx) get(key []byte, serializable bool) kv.Pending[[]byte] {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	value, err := t.value(key, serializable)
	return kv.Ready(bytes.Clone(value), err)
}

func (t *tx) value(key []byte, serializable bool) ([]byte, error) {
	if err := t.read(); err != nil {
		return nil, err
	}
	if !everything.Contains(key) {
		return nil, kv.ErrIllegalKey
	}
	page, err := t.page(kv.Single(bytes.Clone(key)), kv.RangeOptions{}, serializable)
	if err != nil || len(page.Items) == 0 {
		return nil, err
	}
	return page.Items[0].Value, nil
}

func (t *tx) getRange(r kv.Range, o kv.RangeOptions, serializable bool) kv.Pending[kv.Page] {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	if err := t.read(); err != nil {
		return kv.Ready(kv.Page{}, err)
	}
	if err := checkRange(r); err != nil {
		return kv.Ready(kv.Page{}, err)
	}
	page, err := t.page(cloneRange(r), o, serializable)
	for i, item := range page.Items {
		page.Items[i].Value = bytes.Clone(item.Value)
	}
	return kv.Ready(page, err)
}

// page builds all of r as the transaction sees it, and cuts it at the limit.
func (t *tx) page(r kv.Range, o kv.RangeOptions, serializable bool) (kv.Page, error) {
	merged := view{scope: r, rows: map[string][]byte{}}
	for _, key := range t.db.keysIn(r) {
		merged.load(key, t.db.at(string(key), t.version))
	}
	for _, m := range t.mutations {
		merged.apply(m)
	}
	page := kv.Page{Items: merged.sorted()}
	if o.Reverse {
		slices.Reverse(page.Items)
	}
	part := r
	if n := rowsWithin(page.Items, o); n > 0 {
		page.More = true
		page.Items = page.Items[:n]
		last := page.Items[n-1].Key
		if o.Reverse {
			part.Begin = last
		} else {
			part.End = kv.After(last)
		}
	}
	for _, u := range t.unreadable {
		if overlap(u, part) {
			t.fail(kv.ErrUnreadable)
			return kv.Page{}, kv.ErrUnreadable
		}
	}
	if serializable && !part.Empty() {
		t.addRead(part)
	}
	return page, nil
}

// rowsWithin returns how many rows come to a bound of o, 0 if they all don't.
func rowsWithin(rows []kv.KeyValue, o kv.RangeOptions) int {
	size := 0
	for i, row := range rows {
		size += len(row.Key) + len(row.Value)
		if o.Limit > 0 && i+1 >= o.Limit || o.Bytes > 0 && size >= o.Bytes {
			return i + 1
		}
	}
	return 0
}

// Watch implements kv.Tx.
func (t *tx) Watch(key []byte) kv.Watch {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	w := &watch{db: t.db, key: bytes.Clone(key), done: make(chan struct{})}
	value, err := t.value(key, true)
	if err == nil && len(t.db.watches) >= kv.MaxWatches {
		err = kv.ErrTooManyWatches
	}
	if err != nil {
		w.end(err)
		return w
	}
	w.seen = value
	t.db.watches[w] = struct{}{}
	t.watches = append(t.watches, w)
	return w
}

// Commit implements kv.Tx.
func (t *tx) Commit(ctx context.Context) (kv.Committed, error) {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	if err := t.usable(); err != nil {
		return kv.Committed{Version: kv.NoVersion}, err
	}
	done, err := t.commit(ctx)
	t.ended = true
	for _, w := range t.watches {
		if err != nil {
			w.end(err)
			continue
		}
		w.armed = true
		w.look()
	}
	return done, err
}

func (t *tx) commit(ctx context.Context) (kv.Committed, error) {
	failed := kv.Committed{Version: kv.NoVersion}
	if t.broken != nil {
		return failed, t.broken
	}
	if len(t.mutations) == 0 && len(t.writes) == 0 {
		return failed, nil
	}
	if t.size() > kv.MaxTxSize {
		return failed, kv.ErrTxTooLarge
	}
	if err := ctx.Err(); err != nil {
		return failed, errors.Join(kv.ErrUnknownResult, err)
	}
	if err := t.read(); err != nil {
		return failed, err
	}
	if t.db.conflicts(t.version, t.reads) {
		return failed, kv.ErrConflict
	}
	return t.db.apply(t.mutations, t.writes), nil
}

// size is what the transaction's limit bounds.
func (t *tx) size() int {
	size := 0
	ranges := slices.Concat(t.reads, t.writes)
	for _, m := range t.mutations {
		size += len(m.key) + len(m.end) + len(m.value)
		ranges = append(ranges, m.writes())
	}
	for _, r := range ranges {
		size += len(r.Begin) + len(r.End)
	}
	return size
}

// Cancel implements kv.Tx.
func (t *tx) Cancel() {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	for _, w := range t.watches {
		w.end(kv.ErrCancelled)
	}
}

// fail makes the commit fail with the first of the transaction's mistakes.
func (t *tx) fail(err error) {
	if t.broken == nil {
		t.broken = err
	}
}

// unreadableRange returns where the commit may put a stamped key.
func (t *tx) unreadableRange(key []byte, offset int) kv.Range {
	var least, most kv.Stamp
	if t.reading {
		binary.BigEndian.PutUint64(least[:8], uint64(t.version))
	}
	for i := range most {
		most[i] = 0xff
	}
	return kv.Range{Begin: withStamp(key, offset, least), End: kv.After(withStamp(key, offset, most))}
}
