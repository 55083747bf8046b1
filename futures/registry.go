package futures

import (
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// registry holds the futures whose ends a client waits for. An entry leaves it
// when its end is known; the handles keep it then.
type registry struct {
	mu      sync.Mutex
	pending map[ID]*entry
	wanted  []ID  // to be subscribed
	closed  error // why nothing ends any more
	early   early
}

// entry is the end of one future, as known here.
type entry struct {
	id      ID
	outcome *Outcome      // set once
	done    chan struct{} // made when somebody asks for it
	waiters *waiter
	// subscribed is set if the notice was asked for, not brought about by a
	// submit of this client.
	subscribed bool
}

// awaited tells whether somebody waits for the end. It is called under the
// registry's lock.
func (e *entry) awaited() bool { return e.waiters != nil || e.done != nil }

// waiter is a group's interest in one entry.
type waiter struct {
	next  *waiter
	group *group
	index int
}

// group is one call that awaits futures.
type group struct {
	signal chan struct{} // sent a value when all have ended, or, with each, some

	mu    sync.Mutex
	left  int
	each  bool
	ended []int // not taken yet, in the order of their ends
}

func newGroup(n int, each bool) *group {
	return &group{signal: make(chan struct{}, 1), left: n, each: each}
}

func (g *group) end(index int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left--
	if g.each {
		g.ended = append(g.ended, index)
	}
	if g.each || g.left == 0 {
		select {
		case g.signal <- struct{}{}:
		default:
		}
	}
}

func (g *group) over() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.left == 0
}

func (g *group) take() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	ended := g.ended
	g.ended = nil
	return ended
}

func (r *registry) init() { r.pending = map[ID]*entry{} }

// entryOf returns a handle's entry. A future that this client has no entry of
// is one to subscribe to. It is called under mu.
func (r *registry) entryOf(f *Future) (e *entry, fresh bool) {
	if f.entry != nil {
		return f.entry, false
	}
	if f.entry = r.pending[f.id]; f.entry != nil {
		return f.entry, false
	}
	f.entry = &entry{id: f.id, subscribed: true}
	if r.closed != nil {
		f.entry.outcome = &Outcome{Err: r.closed}
		return f.entry, false
	}
	r.pending[f.id] = f.entry
	r.wanted = append(r.wanted, f.id)
	return f.entry, true
}

// join makes waiters wait for futures. It calls wake if there is something to
// subscribe to.
func (r *registry) join(fs []*Future, waiters []waiter, wake func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := false
	for i, f := range fs {
		e, fresh := r.entryOf(f)
		wanted = wanted || fresh
		if e.outcome != nil {
			waiters[i].group.end(waiters[i].index)
			continue
		}
		waiters[i].next, e.waiters = e.waiters, &waiters[i]
	}
	if wanted {
		wake()
	}
}

// leave ends the wait of those that still wait.
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
		if e.outcome != nil {
			close(e.done)
		}
	}
	if fresh {
		wake()
	}
	return e.done
}

// outcomeOf returns nil while the end is not known.
func (r *registry) outcomeOf(f *Future) *Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.entry == nil {
		return nil
	}
	return f.entry.outcome
}

// finish ends an entry. It is called under mu.
func (r *registry) finish(e *entry, o *Outcome) {
	if e.outcome != nil {
		return
	}
	e.outcome = o
	delete(r.pending, e.id)
	if e.done != nil {
		close(e.done)
	}
	for w := e.waiters; w != nil; w = w.next {
		w.group.end(w.index)
	}
	e.waiters = nil
}

// end ends a future if anybody here waits for it.
func (r *registry) end(id ID, o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.pending[id]; e != nil {
		r.finish(e, &o)
	}
}

// close ends everything with err, also what is asked for later. The first one
// counts.
func (r *registry) close(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return
	}
	r.closed = err
	for _, e := range r.pending {
		r.finish(e, &Outcome{Err: err})
	}
	r.wanted = nil
}

// takeWanted returns what is to be subscribed.
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

// awaited returns what somebody waits for.
func (r *registry) awaited() []ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []ID
	for id, e := range r.pending {
		if e.awaited() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

// beginSubmit must come before the commit of futures that are registered by
// endSubmit.
func (r *registry) beginSubmit() (generation int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.early.begin()
}

// endSubmit registers the futures that were submitted. It returns the notices
// that came before, for those whose end has to be fetched.
func (r *registry) endSubmit(generation int, made []*Future) (fetch []ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range made {
		f.entry = &entry{id: f.id}
		if r.closed != nil {
			f.entry.outcome = &Outcome{Err: r.closed}
			continue
		}
		r.pending[f.id] = f.entry
		if notice, came := r.early.find(f.id); came {
			fetch = r.take(&notice, fetch)
		}
	}
	r.early.end(generation)
	return fetch
}

// noticeChunk is how many notices are delivered while the registry is locked.
const noticeChunk = 256

// deliver ends what notices tell of. It returns those whose end has to be
// fetched.
func (r *registry) deliver(notices []layout.Notice) (fetch []ID) {
	for len(notices) > 0 {
		n := min(len(notices), noticeChunk)
		fetch = r.deliverChunk(notices[:n], fetch)
		notices = notices[n:]
	}
	return fetch
}

func (r *registry) deliverChunk(notices []layout.Notice, fetch []ID) []ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range notices {
		if e := r.pending[notices[i].ID]; e == nil || e.subscribed {
			r.early.keep(&notices[i])
		}
		fetch = r.take(&notices[i], fetch)
	}
	return fetch
}

// deliverPresent is deliver for notices that were made from the records just
// now.
func (r *registry) deliverPresent(notices []layout.Notice) (fetch []ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range notices {
		n := &notices[i]
		if e := r.pending[n.ID]; e != nil && n.Exception != nil {
			r.finish(e, &Outcome{Err: failedError(n.ID, n.Exception, n.Exception.Stderr)})
		} else {
			fetch = r.take(n, fetch)
		}
	}
	return fetch
}

// take ends the entry of a notice, or adds it to those that are to be fetched.
// It is called under mu.
func (r *registry) take(n *layout.Notice, fetch []ID) []ID {
	e := r.pending[n.ID]
	switch {
	case e == nil:
	case n.Result != nil:
		r.finish(e, &Outcome{Result: resultOf(n.Result, n.Result.Value, n.Result.Stderr)})
	case n.Exception != nil && !e.subscribed:
		r.finish(e, &Outcome{Err: failedError(n.ID, n.Exception, n.Exception.Stderr)})
	default:
		// The failure of a future that was subscribed to may be that of a life
		// before its retry: the record decides.
		fetch = append(fetch, n.ID)
	}
	return fetch
}
