package peerhead

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/workers"
)

// Kinds of transfers.
const (
	transferModule = "module" // to the peer
	transferResult = "result" // of the peer
)

// Transfer is a large value on its way between a head and a peer.
type Transfer struct {
	// What is module or result.
	What string `json:"what"`
	// Name is the content id of a module, or the id of the future.
	Name string `json:"name"`
	// Done of Total bytes have come. A transfer that waits for its turn has none.
	Done  int64     `json:"done"`
	Total int64     `json:"total"`
	Since time.Time `json:"since"`
}

// transfer is a Transfer under way.
type transfer struct {
	peer       *peer
	what, name string
	total      int64
	since      time.Time
	done       atomic.Int64
}

// transferring begins a transfer, which the caller ends.
func (p *peer) transferring(what, name string, done, total int64) *transfer {
	t := &transfer{peer: p, what: what, name: name, total: total, since: p.head.clock.Now()}
	t.done.Store(done)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.transfers == nil {
		p.transfers = map[*transfer]struct{}{}
	}
	p.transfers[t] = struct{}{}
	return t
}

func (t *transfer) at(done int64) { t.done.Store(done) }

// end ends a transfer. What is silent from then on is silent since then.
func (t *transfer) end() {
	p := t.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.transfers, t)
	p.heard = p.head.clock.Now()
}

// Preparing implements workers.Preparer: while the peer takes its module, a function has not
// begun.
func (m *member) Preparing(function string) bool {
	cid, _ := (&call{RemoteCall: workers.RemoteCall{Info: workers.Info{Function: function}}}).module()
	p := m.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := range p.transfers {
		if cid != "" && t.what == transferModule && t.name == cid {
			return true
		}
	}
	return false
}

// moving returns the transfers of a peer, the oldest first. It is called under mu.
func (p *peer) moving() (all []Transfer) {
	for t := range p.transfers {
		all = append(all, Transfer{What: t.what, Name: t.name, Done: t.done.Load(), Total: t.total, Since: t.since})
	}
	slices.SortFunc(all, func(a, b Transfer) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})
	return all
}
