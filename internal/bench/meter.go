package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Meter is a store that counts the requests of its users.
type Meter struct {
	kv.Database
	counts meterCounts
}

type meterCounts struct {
	watches                                    openWatches
	commits, conflicts, mutations, reads, keys atomic.Int64
}

// count counts the keys of a page once it has arrived.
func (c *meterCounts) count(pending kv.Pending[kv.Page]) kv.Pending[kv.Page] {
	return kv.Later(func(ctx context.Context) (kv.Page, error) {
		page, err := pending.Wait(ctx)
		c.keys.Add(int64(len(page.Items)))
		return page, err
	})
}

// openWatches knows how many watches were open at a time.
type openWatches struct {
	mu   sync.Mutex
	open []kv.Watch
	most int
}

func (o *openWatches) add(w kv.Watch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = append(slices.DeleteFunc(o.open, ended), w)
	o.most = max(o.most, len(o.open))
}

func ended(w kv.Watch) bool {
	select {
	case <-w.Done():
		return true
	default:
		return false
	}
}

// MostWatches returns how many watches were open at a time, at most.
func (m *Meter) MostWatches() int {
	m.counts.watches.mu.Lock()
	defer m.counts.watches.mu.Unlock()
	return m.counts.watches.most
}

// Usage counts the requests to a store between two moments.
type Usage struct {
	// Commits are transactions that wrote and committed, Conflicts those that
	// had to run again.
	Commits, Conflicts int64
	// Mutations are keys set, cleared or changed, and ranges cleared, by
	// committed and conflicting transactions alike.
	Mutations int64
	// Reads are points and ranges asked for, Keys what ranges returned.
	Reads, Keys int64
}

// NewMeter wraps a store.
func NewMeter(db kv.Database) *Meter { return &Meter{Database: db} }

// Usage returns the counts since the meter was made.
func (m *Meter) Usage() Usage {
	return Usage{
		Commits: m.counts.commits.Load(), Conflicts: m.counts.conflicts.Load(),
		Mutations: m.counts.mutations.Load(), Reads: m.counts.reads.Load(), Keys: m.counts.keys.Load(),
	}
}

func (u Usage) minus(v Usage) Usage {
	return Usage{
		u.Commits - v.Commits, u.Conflicts - v.Conflicts, u.Mutations - v.Mutations, u.Reads - v.Reads, u.Keys - v.Keys,
	}
}

func (u Usage) plus(v Usage) Usage {
	return Usage{
		u.Commits + v.Commits, u.Conflicts + v.Conflicts, u.Mutations + v.Mutations, u.Reads + v.Reads, u.Keys + v.Keys,
	}
}

// Begin implements kv.Database.
func (m *Meter) Begin(o kv.Options) kv.Tx {
	return &meteredTx{Tx: m.Database.Begin(o), counts: &m.counts}
}

// Traits returns those of the store below.
func (m *Meter) Traits() kv.Traits {
	traits := kv.TraitsOf(m.Database)
	if wait := traits.WaitConflict; wait != nil {
		traits.WaitConflict = func(ctx context.Context, tx kv.Tx) error { return wait(ctx, tx.(*meteredTx).Tx) }
	}
	return traits
}

// meteredTx adds up at its end. Another goroutine may cancel it, also at its end.
type meteredTx struct {
	kv.Tx
	counts           *meterCounts
	mutations, reads atomic.Int64
}

type meteredReader struct {
	kv.Reader
	tx *meteredTx
}

func (t *meteredTx) Get(key []byte) kv.Pending[[]byte] { t.reads.Add(1); return t.Tx.Get(key) }
func (t *meteredTx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	t.reads.Add(1)
	return t.counts.count(t.Tx.GetRange(r, o))
}
func (t *meteredTx) Snapshot() kv.Reader { return meteredReader{t.Tx.Snapshot(), t} }
func (r meteredReader) Get(key []byte) kv.Pending[[]byte] {
	r.tx.reads.Add(1)
	return r.Reader.Get(key)
}
func (r meteredReader) GetRange(k kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	r.tx.reads.Add(1)
	return r.tx.counts.count(r.Reader.GetRange(k, o))
}
func (t *meteredTx) Set(key, value []byte) { t.mutations.Add(1); t.Tx.Set(key, value) }
func (t *meteredTx) Clear(key []byte)      { t.mutations.Add(1); t.Tx.Clear(key) }
func (t *meteredTx) ClearRange(r kv.Range) { t.mutations.Add(1); t.Tx.ClearRange(r) }
func (t *meteredTx) Watch(key []byte) kv.Watch {
	t.reads.Add(1)
	w := t.Tx.Watch(key)
	t.counts.watches.add(w)
	return w
}
func (t *meteredTx) Atomic(op kv.AtomicOp, key, param []byte) {
	t.mutations.Add(1)
	t.Tx.Atomic(op, key, param)
}
func (t *meteredTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.mutations.Add(1)
	t.Tx.SetVersionstampedKey(key, offset, value)
}
func (t *meteredTx) SetVersionstampedValue(key, value []byte, offset int) {
	t.mutations.Add(1)
	t.Tx.SetVersionstampedValue(key, value, offset)
}

func (t *meteredTx) Commit(ctx context.Context) (kv.Committed, error) {
	committed, err := t.Tx.Commit(ctx)
	switch {
	case errors.Is(err, kv.ErrConflict):
		t.counts.conflicts.Add(1)
	case err == nil && committed.Version != kv.NoVersion:
		t.counts.commits.Add(1)
	}
	t.addUp()
	return committed, err
}

func (t *meteredTx) Cancel() {
	t.addUp()
	t.Tx.Cancel()
}

func (t *meteredTx) addUp() {
	t.counts.mutations.Add(t.mutations.Swap(0))
	t.counts.reads.Add(t.reads.Swap(0))
}
