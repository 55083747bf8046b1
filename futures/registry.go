package futures

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// registry holds the futures whose ends a client waits for. An entry is removed
// when its end is known; its handles then keep it.
type registry struct {
	mu      sync.Mutex
	pending map[ID]*entry
	wanted  []ID  // to be subscribed
	closed  error // why nothing ends any more
}

// entry is the end of one future, as known to this client.
type entry struct {
	id       ID
	function string        // empty if it is not known
	settled  *Settled      // set once
	done     chan struct{} // made when it is asked for
	waiters  *waiter
	submits  int32 // those under way that may make it
	// told is set once a submit of this client has created the future: a notice
	// will come.
	told bool
	// subscribed is set if the notice was asked for explicitly, not only by a
	// submit of this client.
	subscribed bool
	// joined is set if some handles of the entry did not come from a submit.
	joined bool
	// missed is set if the future was once not found although it was created.
	missed bool
}

// awaited reports whether a caller waits for the end. It is called under the
// registry's lock.
func (e *entry) awaited() bool { return e.waiters != nil || e.done != nil }

// wantsValue reports whether the value is waited for, or may be: a caller that submits and
// waits later finds it here. It is called under the registry's lock.
func (e *entry) wantsValue() bool {
	for w := e.waiters; w != nil; w = w.next {
		if !w.group.light {
			return true
		}
	}
	return e.done != nil || e.waiters == nil
}

// unread reports whether the entry has ended without its value: a handle that wants it
// needs another one. It is called under the registry's lock.
func (e *entry) unread() bool { return e.settled != nil && e.settled.unread }

func (r *registry) init() { r.pending = map[ID]*entry{} }

// entryOf returns a handle's entry. A future without an entry is one to
// subscribe to. It is called under mu.
func (r *registry) entryOf(f *Future) (e *entry, fresh bool) {
	if f.entry != nil && !f.entry.unread() {
		return f.entry, false
	}
	if f.entry = r.pending[f.id]; f.entry != nil {
		f.entry.joined = true
		return f.entry, false
	}
	f.entry = &entry{id: f.id, subscribed: true, joined: true}
	if r.closed != nil {
		f.entry.settled = r.abandoned(f.id)
		return f.entry, false
	}
	r.pending[f.id] = f.entry
	r.wanted = append(r.wanted, f.id)
	return f.entry, true
}

// join adds waiters to futures. It calls wake if there is something to
// subscribe to.
func (r *registry) join(fs []*Future, waiters []waiter, wake func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := false
	for i, f := range fs {
		e, fresh := r.entryOf(f)
		wanted = wanted || fresh
		if e.settled != nil {
			waiters[i].group.end(waiters[i].index)
			continue
		}
		waiters[i].next, e.waiters = e.waiters, &waiters[i]
	}
	if wanted {
		wake()
	}
}

// leave removes the waiters that are left.
func (r *registry) leave(fs []*Future, waiters []waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, f := range fs {
		at := &f.entry.waiters
		for *at != nil && *at != &waiters[i] {
			at = &(*at).next
		}
		if *at != nil {
			*at = waiters[i].next
		}
	}
}

// doneOf returns the channel that is closed at the end of a future.
func (r *registry) doneOf(f *Future, wake func()) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, fresh := r.entryOf(f)
	if e.done == nil {
		e.done = make(chan struct{})
		if e.settled != nil {
			close(e.done)
		}
	}
	if fresh {
		wake()
	}
	return e.done
}

// settledOf returns nil while the end is not known.
func (r *registry) settledOf(f *Future) *Settled {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.entry == nil || f.entry.unread() {
		return nil
	}
	return f.entry.settled
}

// finish ends an entry. It is called under mu.
func (r *registry) finish(e *entry, o *Settled) {
	if e.settled != nil {
		return
	}
	e.settled = o
	delete(r.pending, e.id)
	if e.done != nil {
		close(e.done)
	}
	for w := e.waiters; w != nil; w = w.next {
		w.group.end(w.index)
	}
	e.waiters = nil
}

// end ends a future if it has an entry. It does nothing and returns false if the value is
// unread, and wanted.
func (r *registry) end(id ID, o Settled) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.pending[id]
	if e == nil {
		return true
	}
	if o.unread && e.wantsValue() {
		return false
	}
	r.finish(e, &o)
	return true
}

// wantsValue reports whether the end of a future is of use with its value alone.
func (r *registry) wantsValue(id ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.pending[id]
	return e != nil && e.wantsValue()
}

// close ends all entries with err, including later ones. The first error
// counts.
func (r *registry) close(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return
	}
	r.closed = err
	for _, e := range r.pending {
		r.finish(e, r.abandoned(e.id))
	}
	r.wanted = nil
}

// abandoned is how a future ends for the awaits of a closed registry. It is called under mu.
func (r *registry) abandoned(id ID) *Settled {
	return &Settled{Err: fmt.Errorf("await of future %s: %w", id, r.closed), abandoned: true}
}

// takeWanted returns the futures to subscribe to.
func (r *registry) takeWanted() []ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := r.wanted
	r.wanted = nil
	return ids
}

// want asks for subscriptions.
func (r *registry) want(ids []ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = append(r.wanted, ids...)
}

// open returns those of ids that have not ended.
func (r *registry) open(ids []ID) []ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id ID) bool { return r.pending[id] == nil })
}

// awaited returns the awaited futures, except for those that are being
// submitted.
func (r *registry) awaited() []ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []ID
	for id, e := range r.pending {
		if e.awaited() && e.submits == 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

// expect registers futures that are about to be submitted, so that a notice may
// come before the submit returns. confirm must follow.
func (r *registry) expect(fs []*Future, subs []fdbmodel.Submission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, f := range fs {
		if subs[i].Spec.Session == "" {
			continue
		}
		e := r.pending[f.id]
		if e == nil {
			e = &entry{id: f.id, function: subs[i].Spec.Function}
			if r.closed != nil {
				e.settled = r.abandoned(f.id)
			} else {
				r.pending[f.id] = e
			}
		}
		e.submits++
		f.entry = e
	}
}

// confirm records the outcome of expected futures, the first of which have
// answers. Futures that were not created, or by others, send no notice to this
// client: they are subscribed to when they are awaited. It calls wake if some
// are.
func (r *registry) confirm(fs []*Future, answers []fdbmodel.Submitted, wake func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := false
	for i, f := range fs {
		e := f.entry
		if e == nil {
			continue
		}
		e.submits--
		if i < len(answers) && !answers[i].Existed {
			e.told = true
			continue
		}
		f.entry = nil
		switch {
		case e.submits > 0 || e.told || e.settled != nil:
		case e.joined:
			e.subscribed, wanted = true, true
			r.wanted = append(r.wanted, e.id)
		default:
			delete(r.pending, e.id)
		}
	}
	if wanted {
		wake()
	}
}

// missing ends a future that does not exist. The read may have come before the
// commit that creates it.
func (r *registry) missing(id ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := r.pending[id]; {
	case e == nil || e.submits > 0:
	case e.told && !e.missed:
		e.missed = true
		r.wanted = append(r.wanted, id)
	default:
		r.finish(e, &Settled{Err: errNotFound(id)})
	}
}

// noticeChunk is how many notices are delivered while the registry is locked.
const noticeChunk = 256

// deliver ends the futures of notices. It returns those whose end has to be
// fetched.
func (r *registry) deliver(notices []layout.Notice) (fetch []ID) {
	for part := range slices.Chunk(notices, noticeChunk) {
		fetch = r.deliverChunk(part, fetch)
	}
	return fetch
}

func (r *registry) deliverChunk(notices []layout.Notice, fetch []ID) []ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range notices {
		n := &notices[i]
		e := r.pending[n.ID]
		if e == nil {
			continue
		}
		ending := n.Ending()
		// Mail may be older than a retry if the future was subscribed to, and the
		// record decides; a notice with the function was just built from it.
		stale := ending.Failure != nil && e.subscribed && n.Function == ""
		if stale || !ending.Whole() {
			fetch = append(fetch, n.ID)
			continue
		}
		o := settled(&ending, cmp.Or(n.Function, e.function))
		r.finish(e, &o)
	}
	return fetch
}

func compareIDs(a, b ID) int { return bytes.Compare(a[:], b[:]) }
