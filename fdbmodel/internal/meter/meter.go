// Package meter counts what the attempts of a worker use, and how they end, until the store has it.
package meter

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Meter counts for one start of a worker. It may be used from many goroutines. The zero
// value is ready to use.
type Meter struct {
	mu      sync.Mutex
	days    map[string]*total[Metered]
	minutes map[int64]*total[Activity]
}

// total is what was added up of a day or a minute.
type total[T any] struct {
	of T
	marks
}

// marks say how much of a sum the store has.
type marks struct {
	change int64 // counts what was added
	stored int64 // change that the store has
}

// Use adds what was used on a day.
func (m *Meter) Use(on string, use *Metered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sumOf(&m.days, on).Add(use)
}

// End adds the end of an attempt in a minute.
func (m *Meter) End(minute int64, e *Ended) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sumOf(&m.minutes, minute).Count(e)
}

// sumOf returns the sum at a key, which is about to change.
func sumOf[K comparable, T any](sums *map[K]*total[T], at K) *T {
	if *sums == nil {
		*sums = map[K]*total[T]{}
	}
	s := (*sums)[at]
	if s == nil {
		s = &total[T]{}
		(*sums)[at] = s
	}
	s.change++
	return &s.of
}

// Record is what the store is to have of one day or minute.
type Record struct {
	key, value []byte
	of         *marks
	change     int64
}

// Unwritten returns what the store does not have yet of a worker: nothing if there was nothing
// since, and mostly one day and one minute. Minutes that are closed by then are forgotten, with
// what the store does not have of them: a janitor may fold their records.
func (m *Meter) Unwritten(keys layout.Keyspace, info *layout.WorkerInfo, now time.Time) (records []Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.minutes, func(at int64, _ *total[Activity]) bool { return MinuteIsClosed(at, now) })
	records = unwritten(records, m.days, func(on string, use *Metered) ([]byte, []byte) {
		return Keys(keys).Metered(meteredBy(info, on)), layout.Encode(use)
	})
	return unwritten(records, m.minutes, func(at int64, a *Activity) ([]byte, []byte) {
		key := ActivityKey{Step: Minutes, At: at, Membership: info.ID}
		return Keys(keys).Activity(key), layout.Encode(a)
	})
}

func unwritten[K cmp.Ordered, T any](records []Record, sums map[K]*total[T], encode func(K, *T) (key, value []byte),
) []Record {
	for _, at := range slices.Sorted(maps.Keys(sums)) {
		if s := sums[at]; s.change != s.stored {
			key, value := encode(at, &s.of)
			records = append(records, Record{key, value, &s.marks, s.change})
		}
	}
	return records
}

// Write sets sums, so that an attempt which follows one that committed changes nothing. The
// conflict keeps the late twin of an attempt from restoring what it has.
func Write(tx kv.Tx, records []Record) {
	for i := range records {
		tx.AddReadConflictKey(records[i].key)
		tx.Set(records[i].key, records[i].value)
	}
}

// Wrote notes what the store has. Sums stay, so that a clock that is set back goes on with
// them.
func (m *Meter) Wrote(records []Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range records {
		of := records[i].of
		of.stored = max(of.stored, records[i].change)
	}
}
