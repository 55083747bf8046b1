// Package meter counts what the attempts of a worker use until the store has it.
package meter

import (
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Meter counts what one start of a worker uses. It may be used from many goroutines. The zero
// value is ready to use.
type Meter struct {
	mu   sync.Mutex
	days map[string]*day
}

// day is what was used on a day.
type day struct {
	use    layout.Metered
	change int64 // counts what was added
	stored int64 // change that the store has
}

// Add adds what was used on a day.
func (m *Meter) Add(on string, use *layout.Metered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.days[on]
	if d == nil {
		d = &day{}
		if m.days == nil {
			m.days = map[string]*day{}
		}
		m.days[on] = d
	}
	d.use.Add(use)
	d.change++
}

// Record is what the store is to have of one day.
type Record struct {
	day        string
	key, value []byte
	change     int64
}

// Unwritten returns what the store does not have yet of a worker: nothing if it has used
// nothing since, and mostly one day.
func (m *Meter) Unwritten(keys layout.Keyspace, info *layout.WorkerInfo) (records []Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for on, d := range m.days {
		if d.change != d.stored {
			records = append(records, Record{on, keys.Metered(info.MeteredBy(on)), layout.Encode(&d.use), d.change})
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

// Wrote notes what the store has. Days stay, so that a clock that is set back goes on with
// their sums.
func (m *Meter) Wrote(records []Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range records {
		d := m.days[records[i].day]
		d.stored = max(d.stored, records[i].change)
	}
}

// Attempt is one that ended with a result, or failed with an exception.
type Attempt struct {
	Spec      *layout.Spec // nil if it is unknown
	Inline    []byte       // its arguments, if they are in the spec
	RunTime   time.Duration
	Result    *layout.Result
	Exception *layout.Exception
}

// Used is what an attempt has used. The call of a bundle is no item of its own.
func (a *Attempt) Used() layout.Metered {
	m := layout.Metered{RunTime: max(a.RunTime, 0)}
	usage := (*layout.Usage)(nil)
	if v := a.Result; v != nil {
		m.Items, m.Out, usage = 1, v.Size, v.Usage
		m.Out += streamSize(v.Stderr, v.StderrRef)
	} else {
		e := a.Exception
		m.Failed, m.Out, usage = 1, int64(len(e.Stdout)), e.Usage
		m.Out += streamSize(e.Stderr, e.StderrRef)
	}
	if usage != nil {
		m.CPU, m.Memory = max(usage.CPUUser+usage.CPUSys, 0), max(usage.Memory, 0)
	}
	m.In = a.argsSize()
	if a.Spec != nil && a.Spec.Bundle {
		m.Items, m.Failed, m.In, m.Out = 0, 0, 0, 0
	}
	return m
}

// argsSize is how many bytes of arguments the future has, those of its argv included.
func (a *Attempt) argsSize() int64 {
	n := int64(len(a.Inline))
	if a.Spec == nil {
		return n
	}
	if a.Spec.ArgsRef != nil {
		n = a.Spec.ArgsRef.Size
	}
	for _, arg := range a.Spec.Argv {
		n += int64(len(arg))
	}
	return n
}

func streamSize(inline []byte, ref *layout.ChunkRef) int64 {
	if ref != nil {
		return ref.Size
	}
	return int64(len(inline))
}
