// Package steps records what the steps of functions returned, so that a later attempt goes on
// from there.
package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Limits of steps.
const (
	// Max is the maximum number of steps of a future.
	Max = step.Max
	// MaxName is the maximum length of the name of a step, in bytes, with its number.
	MaxName = step.MaxName
	// MaxInline is the largest value that is stored in the record of a step; larger ones, up to
	// layout.MaxPut, are written ahead with Store.
	MaxInline = fdbmodel.MaxResultInline
	// MaxWrite is how many steps one Write records.
	MaxWrite = 500
	// MaxUnused is how many unused steps are named at the end of an attempt.
	MaxUnused = step.MaxUnused
)

// ErrLost is returned for a step that is not recorded because its worker holds the claim of the
// future no more: the attempt has ended, or the worker was declared dead.
var ErrLost = errors.New("the claim of the future is lost, so the step is not recorded")

// Key is the kind of key of steps, in package keyspace.
const Key = step.KeyStep

// Record is what a step returned.
type Record = step.Record

// Step is a recorded step.
type Step struct {
	Name string
	Record
	// Unused is set if the last attempt that returned did not ask for it.
	Unused bool
}

// Steps are the steps of futures of one cluster. Its methods may be called from many goroutines.
type Steps struct {
	cluster *fdbmodel.Cluster
	keys    step.Keys
}

// Of returns the steps of a cluster.
func Of(c *fdbmodel.Cluster) *Steps { return &Steps{cluster: c, keys: step.Keys(c.Keys())} }

// CheckName returns ErrBadName unless a function may ask for a step with that name: 1 to 194 bytes
// of printable characters that do not end in # and a number, which is how repeated names are told
// apart.
func CheckName(name string) error {
	const longestNumber = len("#10000")
	if len(name) > MaxName-longestNumber || isNumbered(name) || step.CheckName(name) != nil {
		return fmt.Errorf("%w: step %.80q: use 1 to %d bytes of printable characters, not ending in # and a number",
			layout.ErrBadName, name, MaxName-longestNumber)
	}
	return nil
}

// Store writes a large value of a step of the attempt that holds token. It counts once a Record of
// that name and token refers to it; otherwise it is swept. It returns ErrTooLarge beyond
// layout.MaxPut. An unknown commit is retried and harmless: only the holder of the token writes there.
// While the store can only be read, Store waits until ctx ends.
func (s *Steps) Store(ctx context.Context, id layout.ID, token layout.Token, name string, value []byte,
) (layout.ChunkRef, error) {
	return pieces.PutValue(ctx, fdbmodel.Patient{Cluster: s.cluster}, s.cluster.Keys(), id, step.Ref(name, token), value)
}

// Value returns what a step returned, wherever that is stored. ErrNotFound says that the step was
// removed meanwhile.
func (s *Steps) Value(ctx context.Context, id layout.ID, r *Record) ([]byte, error) {
	if r.ValueRef != nil {
		return pieces.ReadValue(ctx, s.cluster, s.cluster.Keys(), id, *r.ValueRef)
	}
	return r.Value, nil
}

// Entry is a step that is to be recorded.
type Entry struct {
	Future *fdbmodel.ClaimedFuture
	Name   string
	Record Record
	// First is set until a step of the future is known to be recorded.
	First bool
	// Ended reports whether the worker has begun to end the claim.
	Ended func() bool
	// Again says that an earlier WriteTx of the same name, number and claim may have committed.
	Again bool
}

// Write records steps of futures that the worker holds, at most MaxWrite of them, each one under
// the fence of its claim, in one transaction that waits for the disk. It reads nothing but the
// claims, and writes one key for each step, and another one for the first step of a future. A poison candidate
// that has recorded a step is none any more in this run; see Registration.Begin. It
// reports which are recorded: the claims of others are lost. The numbers and names of the
// steps of a claim must differ from each other and from those that were recorded before it. An
// unknown commit is retried, and recognised even if the claim has ended meanwhile. It returns the version of
// the commit.
func (s *Steps) Write(ctx context.Context, r *fdbmodel.Registration, entries []Entry,
) (recorded []bool, version kv.Version, err error) {
	for i := range entries {
		if err := entries[i].check(); err != nil {
			return nil, kv.NoVersion, err
		}
	}
	futures := func() []*fdbmodel.ClaimedFuture {
		all := make([]*fdbmodel.ClaimedFuture, len(entries))
		for i := range entries {
			if e := &entries[i]; e.Ended == nil || !e.Ended() {
				all[i] = e.Future
			}
		}
		return all
	}
	version, err = r.Under(ctx, kv.Options{Tag: "futura-step"}, false, futures,
		func(ctx context.Context, tx kv.Attempt, held []bool) error {
			recorded = held
			for i := range entries {
				if held[i] {
					s.write(tx, r, &entries[i])
				}
			}
			if !tx.MaybeCommitted {
				return nil
			}
			return s.recognise(ctx, tx, entries, recorded)
		})
	if err != nil {
		return nil, kv.NoVersion, err
	}
	return recorded, version, nil
}

func (e *Entry) check() error {
	if err := step.CheckName(e.Name); err != nil {
		return err
	}
	if n := len(e.Record.Value); n > MaxInline {
		return fmt.Errorf("%w: step %s of future %s: %d bytes: more than %d go into chunks", fdbmodel.ErrTooLarge, e.Name,
			e.Future.ID, n, MaxInline)
	}
	return e.Record.Check()
}

func (s *Steps) write(tx kv.Tx, r *fdbmodel.Registration, e *Entry) {
	r.Trust(tx, e.Future)
	tx.Set(s.keys.Step(e.Future.ID, e.Name), layout.Encode(&e.Record))
	if e.First {
		tx.Set(s.cluster.Keys().State(e.Future.ID, layout.StateSteps), layout.Mark())
	}
}

// recognise finds what an earlier attempt with an unknown result has recorded of claims that
// have ended since.
func (s *Steps) recognise(ctx context.Context, tx kv.Reader, entries []Entry, recorded []bool) error {
	for i := range entries {
		if recorded[i] {
			continue
		}
		value, err := s.recorded(ctx, tx, &entries[i])
		if err != nil {
			return err
		}
		recorded[i] = value != nil
	}
	return nil
}

// Unused returns what is to be written beside the result of an attempt: which recorded steps it did
// not ask for; see fdbmodel.Beside. Of more than MaxUnused, the first by name are kept; all says that it
// asked for none.
func (s *Steps) Unused(f *fdbmodel.ClaimedFuture, names []string, all bool) kv.KeyValue {
	unused := kv.KeyValue{Key: s.keys.Unused(f.ID)}
	if len(names) > 0 || all {
		names = slices.Sorted(slices.Values(names))
		unused.Value = layout.Encode(&step.UnusedRecord{Attempt: f.Attempt(), Names: names[:min(len(names), MaxUnused)],
			All: all})
	}
	return unused
}

// page is how many steps are read at a time.
const page = 250

// Recorded are the steps that a future had when it was claimed.
type Recorded struct {
	Steps map[string]*Record
	// Last is the highest number.
	Last int
	// Unused is set if steps are marked as unused.
	Unused bool
}

// maxHeld is how many bytes of values Load keeps in memory.
const maxHeld = 1 << 20

// Load returns the steps of a claimed future: all that earlier claims have recorded. Values beyond
// the first 1 MiB are left out: their records have a size and no value, and Reload reads them.
// It returns ErrNewerRecord and ErrBadRecord.
func (s *Steps) Load(ctx context.Context, r *fdbmodel.Registration, f *fdbmodel.ClaimedFuture) (Recorded, error) {
	all := Recorded{Steps: map[string]*Record{}}
	held := 0
	view := func(fn func(kv.Attempt) error) error { return r.View(ctx, f, kv.NoVersion, fn) }
	unused, err := s.each(ctx, f.ID, view, func(one Step) {
		if held += len(one.Value); held > maxHeld {
			one.Value = nil
		}
		all.Steps[one.Name], all.Last = &one.Record, max(all.Last, one.Number)
	})
	all.Unused = unused != nil
	return all, err
}

// Reload returns a step with its value.
func (s *Steps) Reload(ctx context.Context, id layout.ID, name string) (record Record, err error) {
	err = s.cluster.View(ctx, func(tx kv.Attempt) error {
		key := s.keys.Step(id, name)
		value, err := tx.Snapshot().Get(key).Wait(ctx)
		if err == nil && value == nil {
			err = fmt.Errorf("%w: step %s of future %s", fdbmodel.ErrNotFound, name, id)
		}
		if err == nil {
			err = layout.Decode(key, value, &record)
		}
		return err
	})
	return record, err
}

// List returns the steps of a future in the order in which they were recorded. It returns
// ErrNotFound for an unknown future.
func (s *Steps) List(ctx context.Context, id layout.ID) ([]Step, error) {
	var row layout.Row
	err := s.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		row, err = read.Existing(ctx, tx.Snapshot(), s.cluster.Keys(), id)
		return err
	})
	if err != nil || !row.Steps {
		return []Step{}, err
	}
	all := []Step{}
	view := func(fn func(kv.Attempt) error) error { return s.cluster.View(ctx, fn) }
	unused, err := s.each(ctx, id, view, func(one Step) { all = append(all, one) })
	if unused != nil {
		for i := range all {
			all[i].Unused = unused.All || slices.Contains(unused.Names, all[i].Name)
		}
	}
	slices.SortFunc(all, func(a, b Step) int { return a.Number - b.Number })
	return all, err
}

// Summary is what the steps of a future come to.
type Summary struct {
	Count int
	Last  Step // without its value
	// Unused are the steps that the last attempt which returned did not ask for, at most MaxUnused;
	// AllUnused is set instead if it asked for none.
	Unused    []string
	AllUnused bool
}

// Summary reads the steps of a future, of which it keeps no value. The summary of a future that has none, or
// is unknown, is empty.
func (s *Steps) Summary(ctx context.Context, id layout.ID) (sum Summary, err error) {
	view := func(fn func(kv.Attempt) error) error { return s.cluster.View(ctx, fn) }
	unused, err := s.each(ctx, id, view, func(one Step) {
		sum.Count++
		if one.Number > sum.Last.Number {
			one.Value = nil
			sum.Last = one
		}
	})
	if unused != nil {
		sum.Unused, sum.AllUnused = unused.Names, unused.All
	}
	return sum, err
}

// each calls fn for each step of a future, read in pages at different versions, and returns the
// record of those that are unused, nil if there is none.
func (s *Steps) each(ctx context.Context, id layout.ID, view func(func(kv.Attempt) error) error, fn func(Step),
) (unused *step.UnusedRecord, err error) {
	r, last := kv.Prefix(s.keys.Of(id)), s.keys.Unused(id)
	for more := true; more; {
		var items kv.Page
		err := view(func(tx kv.Attempt) (err error) {
			items, err = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: page}).Wait(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, item := range items.Items {
			if bytes.Equal(item.Key, last) {
				unused = &step.UnusedRecord{}
				if err := layout.Decode(item.Key, item.Value, unused); err != nil {
					return nil, err
				}
				continue
			}
			one := Step{}
			if one.Name, err = s.keys.Name(item.Key, id); err != nil {
				return nil, fmt.Errorf("step of future %s: %w: %w", id, layout.ErrBadRecord, err)
			}
			if err := layout.Decode(item.Key, item.Value, &one.Record); err != nil {
				return nil, err
			}
			fn(one)
		}
		if more = items.More; more {
			r.Begin = kv.After(items.Items[len(items.Items)-1].Key)
		}
	}
	return unused, nil
}

// StartOver is Retry of a cluster for a future that has failed, without the steps that it has
// recorded: all of it runs again. It returns what Retry returns. An unknown commit is retried; if
// the future is then no longer failed, the retry has committed.
func (s *Steps) StartOver(ctx context.Context, id layout.ID) error {
	_, err := s.cluster.Change(ctx, kv.Options{Tag: "futura-startover"},
		func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
			row, err := read.Existing(ctx, tx, s.cluster.Keys(), id)
			if err != nil {
				return err
			}
			if row.Spec.Held() || row.State() != layout.Failed {
				if tx.MaybeCommitted {
					return nil
				}
				return fmt.Errorf("future %s is %s: starting over is %w", id, row.State(), state.ErrTransition)
			}
			outcome, err := w.Retry(ctx, &row)
			if err == nil && outcome != fdbmodel.Applied {
				err = fmt.Errorf("future %s is %s: starting over is %w", id, row.State(), state.ErrTransition)
			}
			if err != nil || !row.Steps {
				return err
			}
			tx.Clear(s.cluster.Keys().State(id, layout.StateSteps))
			tx.ClearRange(kv.Prefix(s.keys.Of(id)))
			return nil
		})
	return err
}

// Numbered returns the name of the nth step of an attempt that asks for one with this name: the
// name itself for the first one, then name#2 and so on.
func Numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s#%d", name, n)
}

// isNumbered reports whether a name ends as a numbered one does.
func isNumbered(name string) bool {
	at := strings.LastIndexByte(name, '#')
	return at >= 0 && at < len(name)-1 && strings.Trim(name[at+1:], "0123456789") == ""
}
