// Package nearby looks for the workers that a future is best left to: those that have the
// objects that it takes.
package nearby

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// MaxWeighed is how many inputs of a future are worth asking for.
const MaxWeighed = 64

const (
	// rate is at how many bytes a second an object is assumed to go from one worker to
	// another. Others leave a future to the worker that has its inputs for as long as it
	// would take them to get those, and for MaxWait at most: such a wait costs no
	// more than half of the time. Below minWait it is not worth a look.
	rate    = 100 << 20
	minWait = time.Millisecond
	// MaxWait is for how long others leave a future at most.
	MaxWait = 2 * time.Second
)

// Search looks for workers in one transaction, and reads each of them once. It belongs to
// one goroutine.
type Search struct {
	tx    kv.Reader
	keys  layout.Keyspace
	known map[layout.WorkerID]*layout.WorkerInfo
}

// NewSearch returns a search that reads by tx.
func NewSearch(tx kv.Reader, keys layout.Keyspace) *Search {
	return &Search{tx: tx, keys: keys, known: map[layout.WorkerID]*layout.WorkerInfo{}}
}

// Worker returns the info of a worker, nil if it is not registered.
func (s *Search) Worker(ctx context.Context, id layout.WorkerID) (*layout.WorkerInfo, error) {
	if info, known := s.known[id]; known {
		return info, nil
	}
	key := s.keys.Worker(id, layout.WorkerAlive)
	value, err := s.tx.Get(key).Wait(ctx)
	if err != nil {
		return nil, err
	}
	var info *layout.WorkerInfo
	if value != nil {
		info = &layout.WorkerInfo{}
		if layout.Decode(key, value, info) != nil {
			info = &layout.WorkerInfo{} // of a newer version: it is there, and runs what it knows
		}
	}
	s.known[id] = info
	return info, nil
}

// Future is a future for which workers are looked for.
type Future struct {
	Row    *layout.Row
	search *Search
	near   read.Pending // what it must be near
	copies []kv.Pending[kv.Page]
}

// Ask requests where inputs of a future are. For one that must be near an object, that is the
// only input.
func (s *Search) Ask(row *layout.Row, inputs ...layout.ID) Future {
	f := Future{Row: row, search: s}
	if row.Spec.MustBeNear {
		f.near = read.Record(s.tx, s.keys, row.Spec.Near)
	}
	for _, id := range inputs {
		f.copies = append(f.copies, s.tx.GetRange(kv.Prefix(s.keys.CopiesOf(id)), kv.RangeOptions{Limit: read.MaxCopies}))
	}
	return f
}

// Prefer returns the worker that a future which may run anywhere is left to, and for how
// long, both zero if it is as good anywhere.
func (f *Future) Prefer(ctx context.Context) (layout.WorkerID, time.Duration, error) {
	held, err := weigh(ctx, f.copies)
	if err != nil {
		return "", 0, err
	}
	for _, h := range held {
		wait := min(MaxWait, time.Duration(float64(h.bytes)/rate*float64(time.Second)))
		if !f.Row.Spec.Near.IsZero() {
			wait = MaxWait // it was asked for
		}
		if wait < minWait {
			break
		}
		info, err := f.search.Worker(ctx, h.worker)
		if err != nil {
			return "", 0, err
		}
		if info != nil && info.CanRun(f.Row.Needs()) == nil {
			return h.worker, wait.Truncate(time.Millisecond), nil
		}
	}
	return "", 0, nil
}

// Near returns the future that one must be near.
func (f *Future) Near(ctx context.Context) (layout.Row, error) {
	row, _, err := f.near.Wait(ctx)
	return row, err
}

// Holders returns the registered workers that have the object which a future must be near,
// and those of them that could run the future. If a copy can't be read, and none can that is
// of use, it returns the error: another worker may have it.
func (f *Future) Holders(ctx context.Context, object string) (alive, able []layout.WorkerID, err error) {
	page, err := f.copies[0].Wait(ctx)
	if err != nil {
		return nil, nil, err
	}
	var unreadable error
	for _, item := range page.Items {
		var record layout.CopyRecord
		if err := layout.Decode(item.Key, item.Value, &record); err != nil {
			unreadable = err
			continue
		}
		if record.Object != object || slices.Contains(alive, record.Worker) {
			continue
		}
		info, err := f.search.Worker(ctx, record.Worker)
		if err != nil {
			return nil, nil, err
		}
		if info == nil {
			continue
		}
		alive = append(alive, record.Worker)
		if info.CanRun(f.Row.Spec.Needing(&layout.Attempts{RAM: f.Row.Attempts.RAM})) == nil {
			able = append(able, record.Worker)
		}
	}
	if len(alive) == 0 {
		return nil, nil, unreadable
	}
	return alive, able, nil
}

// Placeable reports whether an unplaceable future need not stay so: a worker that has what it
// must be near could run it, or none has it, or it is not an object.
func (f *Future) Placeable(ctx context.Context) (bool, error) {
	near, err := f.Near(ctx)
	switch {
	case layout.IsUnreadable(err):
		return false, nil
	case err != nil:
		return false, err
	case near.Spec == nil || near.State() != layout.Realized || near.Object() == "":
		return true, nil
	}
	alive, able, err := f.Holders(ctx, near.Object())
	return len(alive) == 0 || len(able) > 0, err
}

// holding is how many bytes of some objects a worker has.
type holding struct {
	worker layout.WorkerID
	bytes  int64
}

// weigh returns the workers that have copies, the one with the most bytes first.
func weigh(ctx context.Context, copies []kv.Pending[kv.Page]) ([]holding, error) {
	var held []holding
	for _, p := range copies {
		page, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			var record layout.CopyRecord
			if layout.Decode(item.Key, item.Value, &record) != nil {
				continue // an audit reports it
			}
			at := slices.IndexFunc(held, func(h holding) bool { return h.worker == record.Worker })
			if at < 0 {
				at, held = len(held), append(held, holding{worker: record.Worker})
			}
			held[at].bytes += record.Size
		}
	}
	slices.SortFunc(held, func(a, b holding) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.worker, b.worker))
	})
	return held, nil
}
