// Package claim finds ready futures that fit a worker, and keeps the claims of one process
// apart, so that its workers never compete for a future.
package claim

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Limits of one look at one queue in one shard.
const (
	MaxPages      = 6                // pages after the first, or classes skipped
	crowdPages    = 24               // pages behind what was passed before
	pageGrowth    = 8                // times as many entries after each page without a find
	scanBlocks    = 8                // blocks of a page among which a contended claim chooses
	crowdBlocks   = 16               // the same, if that did not suffice
	MaxPage       = 1024             // entries of a page
	maxClasses    = 64               // classes remembered per queue
	classRefresh  = time.Second      // how often a look searches for classes it has not met
	classLifetime = 10 * time.Second // how long a class is remembered after it was last met
	passLifetime  = time.Minute      // how long looks go past what they found nothing in
)

// Scanner finds ready futures that fit a worker. It belongs to one goroutine.
type Scanner struct {
	keys       layout.Keyspace
	pick       func(n int) int         // a random number below n
	classes    map[string][]knownClass // by queue, in key order
	lookAt     time.Time               // when to search for classes next
	losses     float64                 // moving share of claims that met a conflict
	unreadable unreadable
	passed     map[string]passed // what looks from a key have gone past

	// NoRoom is set by looks that pass over a future which does not fit into what is free.
	NoRoom bool
	// Refused is set by those that pass over one whose function is not wanted.
	Refused bool
	// Unseen is set by those that give up before the end.
	Unseen bool
}

// Begin forgets what earlier looks have passed over.
func (s *Scanner) Begin() { s.NoRoom, s.Refused, s.Unseen = false, false, false }

// passed is where the looks from a key go on that have found nothing before it, so
// that any number of futures that no worker here can run keeps none behind them
// waiting.
type passed struct {
	next  []byte
	since time.Time
}

// RecordConflicts records how often other workers beat the last claim.
func (s *Scanner) RecordConflicts(conflicts int) {
	s.losses *= 0.97
	if conflicts > 0 {
		s.losses += 0.1
	}
}

// Page is how many entries a claim of up to n reads in a shard. If other
// processes were faster lately, or in the last attempt (again), the claim is
// crowded: the entries after the first n let it choose another place, the more
// often they were faster, the more entries.
func (s *Scanner) Page(n int, again bool) (entries int, crowded bool) {
	switch {
	case s.losses > 0.05:
		return max(n+1, min(n*crowdBlocks, MaxPage)), true
	case s.losses > 0.005 || again:
		return n * scanBlocks, true
	default:
		return n + 1, false
	}
}

// Turn begins found at a random aligned block, if there is more than one, so
// that workers that look at the same place at the same time take different
// futures.
func (s *Scanner) Turn(found []layout.ReadyEntry, block int) []layout.ReadyEntry {
	if block == 0 || len(found) < 2*block {
		return found
	}
	at := block * s.pick(len(found)/block)
	return append(slices.Clone(found[at:]), found[:at]...)
}

// knownClass is the place of a class within the queue in the ready index.
type knownClass struct {
	suffix []byte
	seen   time.Time
}

// NewScanner returns a scanner that has met nothing. pick returns a random number below n.
func NewScanner(keys layout.Keyspace, pick func(n int) int) Scanner {
	return Scanner{keys: keys, pick: pick, classes: map[string][]knownClass{}, passed: map[string]passed{}}
}

// Want describes the entries that a look searches for.
type Want struct {
	Queue string
	Free  layout.Resources
	Runs  func(function string) bool
	Skip  func(owner string) bool
	// NoObjects passes over futures whose results are to be objects.
	NoObjects bool
	Gone      func(layout.ID) bool // reports whether another claim has the future; nil for none
	Labels    layout.LabelSet
	// Elsewhere reports whether another worker should have the future; nil for no.
	Elsewhere func(*layout.ReadyEntry) bool
	Page      int // entries to read at a time
}

// Fits reports whether an entry can be taken, by its class and by its function.
func (w *Want) Fits(e *layout.ReadyEntry) (class, function bool) {
	q := e.Class.Requirements()
	return w.Free.Fit(q) && w.Labels.Have(e.Class.Labels) && (w.Skip == nil || !w.Skip(e.Owner)),
		w.Runs == nil || w.Runs(e.Function)
}

// Look is the first page of a look, requested before it is waited for, so that
// looks at many shards run concurrently.
type Look struct {
	shard   int
	want    Want
	from    []byte
	pending kv.Pending[kv.Page]
}

// Ask begins a look at one shard. Half of the looks start at a class chosen
// among those that were seen lately, so that no class starves behind another.
func (s *Scanner) Ask(tx kv.Reader, shard int, w Want) Look {
	prefix := s.keys.ReadyQueue(shard, w.Queue)
	from := prefix
	if known := s.classes[w.Queue]; len(known) > 1 && s.pick(2) == 0 {
		from = append(slices.Clone(prefix), known[s.pick(len(known))].suffix...)
	}
	r := kv.Range{Begin: from, End: kv.AfterPrefix(prefix)}
	return Look{shard, w, from, tx.GetRange(r, kv.RangeOptions{Limit: w.Page})}
}

// Leave says what is left of the worker's resources, and whether it has room for objects.
func (l *Look) Leave(free layout.Resources, noObjects bool) {
	l.want.Free, l.want.NoObjects = free, noObjects
}

// Collect ends a look: it returns up to limit entries that fit, in the order of
// the index from where the look began.
func (s *Scanner) Collect(ctx context.Context, tx kv.Reader, a Look, now time.Time, limit int,
) ([]layout.ReadyEntry, error) {
	prefix := s.keys.ReadyQueue(a.shard, a.want.Queue)
	end := kv.AfterPrefix(prefix)
	var found []layout.ReadyEntry
	page, err := a.pending.Wait(ctx)
	wrapped := bytes.Equal(a.from, prefix)
	at, most, jumped := a.from, MaxPages, false
	for n := 0; ; n++ {
		if err != nil {
			return nil, err
		}
		next := []byte(nil)
		found, next = s.sift(found, page, prefix, &a.want, now, limit)
		if len(found) >= limit || n >= most && len(found) > 0 {
			return found, nil
		}
		if next == nil || bytes.Compare(next, end) >= 0 {
			if wrapped {
				return found, nil
			}
			wrapped, next, end, at = true, prefix, a.from, prefix
		}
		if n >= most {
			if next = s.pass(at, next, now); jumped || bytes.Compare(next, end) >= 0 {
				s.Unseen = s.Unseen || bytes.Compare(next, end) < 0
				return found, nil
			}
			n, most, jumped = 0, crowdPages, true
		}
		if len(found) == 0 {
			a.want.Page = max(a.want.Page, min(a.want.Page*pageGrowth, MaxPage))
		}
		page, err = tx.GetRange(kv.Range{Begin: next, End: end}, kv.RangeOptions{Limit: a.want.Page}).Wait(ctx)
	}
}

// pass returns where a look from a key goes on that has found nothing before next,
// and notes it for later ones.
func (s *Scanner) pass(from, next []byte, now time.Time) []byte {
	maps.DeleteFunc(s.passed, func(_ string, p passed) bool { return now.Sub(p.since) > passLifetime })
	before, known := s.passed[string(from)]
	if !known {
		before.since = now
	}
	if bytes.Compare(before.next, next) < 0 {
		before.next = next
	}
	s.passed[string(from)] = before
	return before.next
}

// Available reports whether a future can be claimed as far as this process
// knows: the worker can read it, no other claim has it, and no other worker should.
func (s *Scanner) Available(e *layout.ReadyEntry, w *Want) bool {
	if w.NoObjects && e.AsObject() {
		s.NoRoom = true
		return false
	}
	return !s.unreadable.has(e.ID) && (w.Gone == nil || !w.Gone(e.ID)) && (w.Elsewhere == nil || !w.Elsewhere(e))
}

// sift takes the suitable entries from a page. next is where the scan
// continues, nil if the range is exhausted. A class that doesn't fit is skipped
// whole.
func (s *Scanner) sift(found []layout.ReadyEntry, page kv.Page, prefix []byte, w *Want, now time.Time, limit int,
) (_ []layout.ReadyEntry, next []byte) {
	s.unreadable.forget(now)
	for i := 0; i < len(page.Items) && len(found) < limit; i++ {
		e, classEnd, err := layout.ParseReady(page.Items[i], prefix, w.Queue)
		if err != nil {
			continue // an audit reports it
		}
		s.remember(w.Queue, e.Key[len(prefix):classEnd], now)
		fitsClass, runs := w.Fits(&e)
		if !fitsClass {
			s.NoRoom = true
			behind := kv.AfterPrefix(e.Key[:classEnd])
			for i+1 < len(page.Items) && bytes.Compare(page.Items[i+1].Key, behind) < 0 {
				i++
			}
			if i+1 == len(page.Items) && page.More {
				return found, behind
			}
			continue
		}
		if s.Refused = s.Refused || !runs; runs && s.Available(&e, w) {
			found = append(found, e)
		}
	}
	if page.More {
		return found, kv.After(page.Items[len(page.Items)-1].Key)
	}
	return found, nil
}

// remember records a class.
func (s *Scanner) remember(queue string, suffix []byte, now time.Time) {
	known := s.classes[queue]
	at, found := slices.BinarySearchFunc(known, suffix, func(k knownClass, b []byte) int {
		return bytes.Compare(k.suffix, b)
	})
	if found {
		known[at].seen = now
	} else if len(known) < maxClasses {
		s.classes[queue] = slices.Insert(known, at, knownClass{bytes.Clone(suffix), now})
	}
}

// SearchesClasses reports whether it is time to Discover classes, and then puts the next time
// off.
func (s *Scanner) SearchesClasses(now time.Time) bool {
	if now.Before(s.lookAt) {
		return false
	}
	s.lookAt = now.Add(classRefresh)
	return true
}

// Discover searches one shard for the classes of a queue, by skipping over
// each. It reads as many keys as there are classes, at most maxClasses.
func (s *Scanner) Discover(ctx context.Context, tx kv.Reader, shard int, queue string, now time.Time) error {
	s.classes[queue] = slices.DeleteFunc(s.classes[queue], func(k knownClass) bool {
		return now.Sub(k.seen) > classLifetime
	})
	prefix := s.keys.ReadyQueue(shard, queue)
	r := kv.Prefix(prefix)
	for range maxClasses {
		page, err := tx.GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil || len(page.Items) == 0 {
			return err
		}
		e, classEnd, err := layout.ParseReady(page.Items[0], prefix, queue)
		if err != nil {
			r.Begin = kv.After(page.Items[0].Key)
			continue // an audit reports it
		}
		s.remember(queue, e.Key[len(prefix):classEnd], now)
		r.Begin = kv.AfterPrefix(e.Key[:classEnd])
	}
	return nil
}

// Limits of a worker's memory of futures that it can't read.
const (
	maxUnreadable = 10_000
	// ForgetUnreadable is how long a future stays in it; then the worker tries it again.
	ForgetUnreadable = time.Minute
)

// unreadable holds the futures that a worker can't read and does not claim again.
type unreadable struct {
	ids   map[layout.ID]struct{}
	until time.Time
}

// AddUnreadable has looks pass over a future for a while.
func (s *Scanner) AddUnreadable(id layout.ID, now time.Time) { s.unreadable.add(id, now) }

func (f *unreadable) add(id layout.ID, now time.Time) {
	f.forget(now)
	if f.ids == nil {
		f.ids, f.until = map[layout.ID]struct{}{}, now.Add(ForgetUnreadable)
	}
	if len(f.ids) < maxUnreadable {
		f.ids[id] = struct{}{}
	}
}

func (f *unreadable) forget(now time.Time) {
	if f.ids != nil && !now.Before(f.until) {
		f.ids = nil
	}
}

func (f *unreadable) has(id layout.ID) bool {
	_, found := f.ids[id]
	return found
}
