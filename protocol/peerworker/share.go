package peerworker

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Heads share what the worker takes. One may have all of it while no other asks. A head that
// asks gets at least its share: at once, beside what another one has already, so that all have
// at most twice the worker's bounds. A head with more than its share gets no more while one with
// less asks.
//
// Only heads that have work here, or were refused of late, count. Those that the worker does not
// name, which may be any number of keys of one person, have one share together, and each of
// them a part of it.

const (
	// askedFor is for how long a head that was refused counts as one that asks.
	askedFor = 30 * time.Second
	// maxParts bounds the parts of what heads have together that the worker does not name.
	maxParts = 16
	// maxOvercommit is how many times its bounds the worker takes, for heads within their shares.
	maxOvercommit = 2
)

// use is what a head has of the worker. Its zero value is a head without work.
type use struct {
	chunks, items int
	bytes         int64
	unsent        int64     // bytes of what a head may take at any time, with those of its orders
	results       int64     // those of them that results have
	asked         time.Time // when it was last refused; zero once it was not
	refused       int64     // orders that had no room
}

func (u *use) add(v use) {
	u.chunks, u.items, u.bytes = u.chunks+v.chunks, u.items+v.items, u.bytes+v.bytes
	u.unsent, u.results, u.refused = u.unsent+v.unsent, u.results+v.results, u.refused+v.refused
}

// within reports whether a part of some bounds takes a use.
func (u use) within(most use, part int) bool {
	return u.chunks <= max(most.chunks/part, 1) && u.items <= most.items/part && u.bytes <= most.bytes/int64(part)
}

// of is which part of some bounds a use is, by what it has most of.
func (u use) of(most use) float64 {
	return max(float64(u.chunks)/float64(most.chunks), float64(u.items)/float64(most.items),
		float64(u.bytes)/float64(most.bytes))
}

// most are the bounds of the worker, of which maxOvercommit times as much is a number still.
func (w *Worker) most() use {
	return use{chunks: min(w.options.MaxChunks, math.MaxInt/maxOvercommit),
		items: min(w.options.MaxItems, math.MaxInt/maxOvercommit),
		bytes: min(w.options.MaxBytes, math.MaxInt64/maxOvercommit)}
}

// isNamed reports whether a head is one of Options.Heads.
func (w *Worker) isNamed(head string) bool {
	return slices.ContainsFunc(w.heads, func(h headAddress) bool { return h.peer == head })
}

// party has a share: a head that the worker names, or "" for all others together.
func (w *Worker) party(head string) string {
	if w.isNamed(head) {
		return head
	}
	return ""
}

// crowd are the heads that count, as one of them sees them.
type crowd struct {
	heads     int
	parties   int // that have a share each
	strangers int // among which one is divided
	// all is what everyone has, and together what strangers have.
	all, together use
}

// crowdWith counts heads, with one more that asks. It is called under mu.
func (w *Worker) crowdWith(head string, now time.Time) (c crowd) {
	parties, counted := map[string]bool{}, false
	count := func(name string) {
		party := w.party(name)
		parties[party] = true
		c.heads++
		if party == "" {
			c.strangers++
		}
	}
	for name, u := range w.uses {
		c.all.add(*u)
		if !w.isNamed(name) {
			c.together.add(*u)
		}
		if u.chunks > 0 || name == head || now.Sub(u.asked) < askedFor {
			count(name)
			counted = counted || name == head
		}
	}
	if !counted {
		count(head)
	}
	c.parties = len(parties)
	return c
}

// couldTake reports whether a head may give an order of one item.
func (w *Worker) couldTake(head string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mayTake(head, use{chunks: 1, items: 1}, w.options.clock.Now())
}

// hasRoom reports whether a head may give an order of so many items and bytes of arguments, and
// remembers that it asks if not.
func (w *Worker) hasRoom(head string, items int, size int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takes(head, use{chunks: 1, items: items, bytes: size})
}

// takes is hasRoom, under mu.
func (w *Worker) takes(head string, order use) bool {
	now := w.options.clock.Now()
	may := w.mayTake(head, order, now)
	u := w.useOf(head)
	if may {
		u.asked = time.Time{}
		w.forgetUse(head, now)
		return true
	}
	u.asked = now
	u.refused++
	w.dropUses(now)
	return false
}

func (w *Worker) mayTake(head string, order use, now time.Time) bool {
	most, c := w.most(), w.crowdWith(head, now)
	after, all := use{}, c.all
	if u := w.uses[head]; u != nil {
		after = *u
	}
	after.add(order)
	all.add(order)
	if after.isWithin(w, c, head, order) {
		return all.within(most, 1) || c.heads > 1 && all.within(use{chunks: maxOvercommit * most.chunks,
			items: maxOvercommit * most.items, bytes: maxOvercommit * most.bytes}, 1)
	}
	if !all.within(most, 1) {
		return false
	}
	for name, u := range w.uses {
		if name != head && now.Sub(u.asked) < askedFor && w.hasLess(name, head, after, c) {
			return false
		}
	}
	return true
}

// hasLess reports whether a head has less than another one will have. Those that the worker does
// not name are one head to those that it names.
func (w *Worker) hasLess(name, than string, after use, c crowd) bool {
	has, most := *w.uses[name], w.most()
	switch named := w.isNamed(name); {
	case named == w.isNamed(than):
	case named:
		after = c.together
	default:
		has = c.together
	}
	return has.of(most) < after.of(most)
}

// isWithin reports whether what a head has with one more order is no more than its share. A
// party that has nothing else may always give one order.
func (u use) isWithin(w *Worker, c crowd, head string, order use) bool {
	most := w.most()
	if w.isNamed(head) {
		return u.chunks == 1 || u.within(most, c.parties)
	}
	together := c.together
	together.add(order)
	parts := c.parties * min(max(c.strangers, 1), maxParts)
	return together.chunks == 1 || u.within(most, parts) && together.within(most, c.parties)
}

// useOf returns what a head has, to be changed. It is called under mu.
func (w *Worker) useOf(head string) *use {
	u := w.uses[head]
	if u == nil {
		u = &use{}
		w.uses[head] = u
	}
	return u
}

// forgetUse forgets a head without work that does not ask, unless the worker names it. It is
// called under mu.
func (w *Worker) forgetUse(head string, now time.Time) {
	u := w.uses[head]
	if u != nil && u.chunks == 0 && u.bytes == 0 && now.Sub(u.asked) >= askedFor && !w.isNamed(head) {
		w.forgotten += u.refused
		delete(w.uses, head)
	}
}

// maxUses bounds the heads that are remembered because they were refused.
const maxUses = 1024

// dropUses forgets heads without work, those that asked too long ago, and of more than maxUses
// all. It is called under mu.
func (w *Worker) dropUses(now time.Time) {
	if len(w.uses) <= maxUses {
		return
	}
	for name, u := range w.uses {
		if !w.isNamed(name) {
			u.asked = time.Time{}
		}
		w.forgetUse(name, now)
	}
}

// bytesShare is the share of so many bytes that a head has now.
func (w *Worker) bytesShare(head string, most int64) int64 {
	now := w.options.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.crowdWith(head, now)
	return most / int64(max(c.parties, 1))
}

// fullHeads are those whose items don't begin: once what waits for heads is as much as the worker
// keeps, those with more than their shares of it, and beyond maxOvercommit times that all. A head that has all of its
// results is none: what it has are orders, of which there are fewer once they run.
func (w *Worker) fullHeads() (full map[string]bool) {
	most := w.most().bytes
	w.mu.Lock()
	unsent, by := w.has.unsent, map[string]int64{}
	if unsent > most {
		for head, u := range w.uses {
			if u.results > 0 {
				by[head] = u.unsent
			}
		}
	}
	w.mu.Unlock()
	for head, n := range by {
		if unsent > maxOvercommit*most || n > w.bytesShare(head, most) {
			if full == nil {
				full = map[string]bool{}
			}
			full[head] = true
		}
	}
	if !w.full.Swap(full != nil) && full != nil {
		w.log.Warn("results wait for their heads, and are as much as this worker keeps; it begins nothing of these until "+
			"they are acknowledged", "bytes", unsent, "most", most)
	}
	return full
}

// HeadUse is what a head has of a worker.
type HeadUse struct {
	// Head is its id, or OtherHeads for all those together that the worker does not name.
	Head string `json:"head"`
	// Chunks, Items and Bytes are as in Stats.
	Chunks int   `json:"chunks"`
	Items  int   `json:"items"`
	Bytes  int64 `json:"bytes"`
	// Refused counts orders that had no room beside what it and others have.
	Refused int64 `json:"refused"`
}

// OtherHeads stands for heads that a worker does not name.
const OtherHeads = "others"

// headUses are the uses of heads, by their ids. It is called under mu.
func (w *Worker) headUses() []HeadUse {
	by := map[string]use{}
	for head, u := range w.uses {
		name := cmp.Or(w.party(head), OtherHeads)
		sum := by[name]
		sum.add(*u)
		by[name] = sum
	}
	if w.forgotten > 0 {
		sum := by[OtherHeads]
		sum.refused += w.forgotten
		by[OtherHeads] = sum
	}
	all := make([]HeadUse, 0, len(by))
	for name, u := range by {
		all = append(all, HeadUse{Head: name, Chunks: u.chunks, Items: u.items, Bytes: u.bytes, Refused: u.refused})
	}
	slices.SortFunc(all, func(a, b HeadUse) int { return cmp.Compare(a.Head, b.Head) })
	return all
}
