package fit

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/pauses"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Limits of one call of EndInfeasible.
const (
	walkPages   = 4           // pages of the ready index, and the last one of each shard
	walkPage    = 1024        // entries of a page
	maxEnded    = 64          // futures that one transaction ends
	maxKinds    = 1024        // kinds of unschedulable futures remembered
	walkPause   = time.Second // until the next one if nothing was ended
	maxUnlooked = time.Minute // between two calls, or what was observed before counts no more
)

// Unschedulable is what an observer remembers of futures that no worker can run. The
// zero value has observed nothing. It belongs to one goroutine.
type Unschedulable struct {
	since  map[unschedulableKind]*sighted
	looked time.Time // the last call
	lap    int       // walks over the whole index that have begun
	shard  int       // where the walk goes on,
	next   []byte    // nil for the beginning of the shard
}

// unschedulableKind is what futures that no worker can run have in common: the queue, or
// also the class, or also the function.
type unschedulableKind struct {
	class    layout.Class
	level    int // how many of them it is
	function string
}

// Levels of a kind.
const (
	lacksQueue = iota + 1
	lacksClass
	lacksFunction
)

// sighted is when futures of a kind were first seen, and in which lap last.
type sighted struct {
	first time.Time
	lap   int
}

// EndInfeasible fails futures that wait in the pool and that no registered worker
// could ever run: it looks at a part of the ready index, and ends at most a batch
// in one transaction. A future ends once its kind (queue, requirements and
// function) was found impossible in each call for Config.InfeasibleAfter, by the
// caller's own clock, and it was submitted, and last tried, that long ago. Nothing
// is ended while no worker is registered, or while records of one can't be read,
// and nothing ever with an InfeasibleAfter of 0. A future of a paused queue or function waits: the time that
// it has begins when the queue is resumed.
//
// It returns how many futures it ended, and when to call it again to go on with
// the index; the zero time if it has seen all of it. It must be called at least
// once a minute. A future that is claimed, cancelled or assigned meanwhile stays as
// it is: its row is read serializably. A worker that registers meanwhile is too
// late. An unknown commit is retried and harmless.
func EndInfeasible(ctx context.Context, c *fdbmodel.Cluster, m *Unschedulable) (ended int, next time.Time, err error) {
	if c.Config().InfeasibleAfter == 0 {
		return 0, time.Time{}, nil
	}
	members, err := c.Workers(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	now := c.Now()
	able := abilitiesOf(members)
	m.review(able, now)
	if !able.known() {
		return 0, time.Time{}, nil
	}
	var look unschedulableWalk
	_, err = c.Change(ctx, kv.Options{Tag: "futura-nofit"}, func(tx kv.Attempt, w *fdbmodel.WriteSet) (err error) {
		look = unschedulableWalk{cluster: c, unschedulable: m, able: able, now: now, shard: m.shard, next: m.next}
		if err := look.walk(ctx, tx.Snapshot()); err != nil {
			return err
		}
		if len(look.met) > 0 {
			if look.paused, err = pauses.Of(c).In(ctx, tx.Snapshot()); err != nil {
				return err
			}
		}
		ended, err = failInfeasible(ctx, c, w, &look, members)
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	m.settle(&look)
	if look.lapped {
		return ended, time.Time{}, nil
	}
	if ended == 0 {
		now = now.Add(walkPause)
	}
	return ended, now, nil
}

// failInfeasible ends those of some futures that no member can run, and returns
// how many.
func failInfeasible(ctx context.Context, c *fdbmodel.Cluster, w *fdbmodel.WriteSet, look *unschedulableWalk,
	members []fdbmodel.Member,
) (ended int, err error) {
	limit := layout.Millis(look.now.Add(-c.Config().InfeasibleAfter))
	for _, p := range read.Records(w.Tx, w.Keys, look.over) {
		row, found, err := p.Wait(ctx)
		switch {
		case layout.IsUnreadable(err):
			continue
		case err != nil:
			return 0, err
		case !found || row.Spec == nil || w.Skips(&row) || row.Spec.SubmittedAt > limit ||
			row.Exception != nil && row.Exception.At > limit:
			continue
		}
		fit := Of(row.Needs(), members)
		if _, paused := pauses.Find(look.paused, row.Spec.Queue, row.Spec.Function); paused || fit.Lack == "" {
			continue
		}
		message := "no worker could run it for " + c.Config().InfeasibleAfter.String() + ": " + fit.Text
		cause := layout.Exception{Message: layout.Shorten(message, fdbmodel.MaxMessage)}
		event := state.Event{Kind: state.EventInfeasible, Exception: &cause, Now: look.now}
		if after, outcome := state.Next(row, event); outcome == fdbmodel.Applied {
			w.Apply(&row, &after)
			w.Lost(&after)
			ended++
		}
		if row.Spec.Bundle {
			if err := failFirstMember(ctx, w, row.Spec.Lane, members, limit, event); err != nil {
				return 0, err
			}
		}
	}
	return ended, nil
}

// failFirstMember ends the first in line for a bundle that no worker can run: the bundle
// requires what that one requires, and the next would do so too. One that has come since
// waits as long.
func failFirstMember(ctx context.Context, w *fdbmodel.WriteSet, lane layout.Lane, members []fdbmodel.Member,
	limit int64,
	e state.Event,
) error {
	page, err := w.Tx.GetRange(w.Keys.InLine(lane), kv.RangeOptions{Limit: 1}).Wait(ctx)
	if err != nil || len(page.Items) == 0 {
		return err
	}
	var entry layout.LineEntry
	if layout.Decode(page.Items[0].Key, page.Items[0].Value, &entry) != nil {
		return nil // an audit reports it
	}
	row, _, err := read.Record(w.Tx, w.Keys, entry.ID).Wait(ctx)
	if layout.IsUnreadable(err) {
		return nil
	}
	if err != nil || row.Spec == nil || limit < row.Spec.SubmittedAt || Of(row.Needs(), members).Lack == "" {
		return err
	}
	if after, outcome := state.Next(row, e); outcome == fdbmodel.Applied {
		w.Apply(&row, &after)
		w.Lost(&after)
	}
	return nil
}

// review forgets the kinds that a worker could run by now, and everything after
// too long a time without a look.
func (m *Unschedulable) review(able abilities, now time.Time) {
	if now.Sub(m.looked) > maxUnlooked || !able.known() {
		clear(m.since)
	}
	m.looked = now
	for kind := range m.since {
		if able.fit(kind) {
			delete(m.since, kind)
		}
	}
}

// settle takes over what a look found out.
func (m *Unschedulable) settle(look *unschedulableWalk) {
	if m.since == nil {
		m.since = map[unschedulableKind]*sighted{}
	}
	for kind := range look.met {
		if _, paused := pauses.Find(look.paused, kind.class.Queue, kind.function); paused {
			delete(m.since, kind)
		} else if s := m.since[kind]; s != nil {
			s.lap = m.lap
		} else if len(m.since) < maxKinds {
			m.since[kind] = &sighted{first: look.now, lap: m.lap}
		}
	}
	if m.shard, m.next = look.shard, look.next; !look.lapped {
		return
	}
	for kind, s := range m.since {
		if s.lap < m.lap {
			delete(m.since, kind) // none of them is left
		}
	}
	m.lap++
}

// unschedulableWalk is a walk over a part of the ready index.
type unschedulableWalk struct {
	cluster       *fdbmodel.Cluster
	unschedulable *Unschedulable
	able          abilities
	now           time.Time

	shard  int
	next   []byte
	met    map[unschedulableKind]bool
	over   []layout.ID // of kinds whose time is over
	paused []pauses.Pause
	lapped bool // the end of the index was reached
}

func (l *unschedulableWalk) walk(ctx context.Context, tx kv.Reader) error {
	l.met = map[unschedulableKind]bool{}
	for pages := walkPages; pages > 0; {
		prefix := l.cluster.Keys().Shard(l.shard, layout.SubReady)
		r := kv.Prefix(prefix)
		if l.next != nil {
			r.Begin = l.next
		}
		page, err := tx.GetRange(r, kv.RangeOptions{Limit: walkPage}).Wait(ctx)
		if err != nil {
			return err
		}
		l.next = nil
		if page.More {
			l.next = kv.After(page.Items[len(page.Items)-1].Key)
		}
		if full := l.sift(page.Items, prefix); full {
			return nil
		}
		if l.next != nil {
			pages--
			continue
		}
		if l.shard = (l.shard + 1) % l.cluster.Keys().Shards; l.shard == 0 {
			l.lapped = true
			return nil
		}
	}
	return nil
}

// sift looks at the entries of a page, and goes past whole queues and classes
// whose time is not over. It reports whether there are enough futures to end.
func (l *unschedulableWalk) sift(items []kv.KeyValue, prefix []byte) (full bool) {
	after := l.cluster.Config().InfeasibleAfter
	for len(items) > 0 {
		e, queueEnd, classEnd, err := layout.ParseAnyReady(items[0], prefix)
		if err != nil {
			items = items[1:] // an audit reports it
			continue
		}
		kind := l.able.kindOf(&e)
		if kind.level == 0 {
			items = items[1:]
			continue
		}
		l.met[kind] = true
		s := l.unschedulable.since[kind]
		switch {
		case s != nil && l.now.Sub(s.first) >= after && e.ID.Time().After(l.now.Add(-after)):
			items = items[1:]
		case s != nil && l.now.Sub(s.first) >= after:
			l.over = append(l.over, e.ID)
			if len(l.over) == maxEnded {
				l.next = kv.After(e.Key)
				return true
			}
			items = items[1:]
		case kind.level == lacksFunction:
			items = items[1:]
		default:
			end := classEnd
			if kind.level == lacksQueue {
				end = queueEnd
			}
			behind := kv.AfterPrefix(e.Key[:end])
			at, _ := slices.BinarySearchFunc(items, behind, func(item kv.KeyValue, key []byte) int {
				return bytes.Compare(item.Key, key)
			})
			if items = items[at:]; len(items) == 0 && l.next != nil {
				l.next = behind
			}
		}
	}
	return false
}

// abilities are what the workers of a cluster could run.
type abilities struct {
	members []fdbmodel.Member
	labels  []layout.LabelSet
	fits    map[unschedulableKind]bool // by class and function
}

func abilitiesOf(members []fdbmodel.Member) abilities {
	alive := slices.DeleteFunc(slices.Clone(members), func(m fdbmodel.Member) bool { return !m.Alive })
	a := abilities{alive, make([]layout.LabelSet, len(alive)), map[unschedulableKind]bool{}}
	for i := range alive {
		a.labels[i] = alive[i].LabelSet()
	}
	return a
}

// known reports whether there are workers, and all of them can be read.
func (a abilities) known() bool {
	return len(a.members) > 0 &&
		!slices.ContainsFunc(a.members, func(m fdbmodel.Member) bool { return m.Unreadable != "" })
}

// kindOf returns why no worker could run a future, with the level 0 if one
// could.
func (a abilities) kindOf(e *layout.ReadyEntry) unschedulableKind {
	kind := unschedulableKind{class: layout.Class{Queue: e.Class.Queue}, level: lacksQueue}
	if !a.fit(kind) {
		return kind
	}
	kind = unschedulableKind{class: e.Class, level: lacksClass}
	if !a.fit(kind) {
		return kind
	}
	kind.level, kind.function = lacksFunction, e.Function
	if !a.fit(kind) {
		return kind
	}
	return unschedulableKind{}
}

// fit reports whether a worker could run futures of a kind, as far as that says.
func (a abilities) fit(kind unschedulableKind) bool {
	fits, known := a.fits[kind]
	if known {
		return fits
	}
	c := kind.class
	for i := range a.members {
		m := &a.members[i]
		fits = fits || slices.Contains(m.Queues, c.Queue) &&
			(kind.level < lacksClass || m.FitsClass(&c, a.labels[i])) &&
			(kind.level < lacksFunction || m.Runs(kind.function))
	}
	a.fits[kind] = fits
	return fits
}
