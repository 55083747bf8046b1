package mailbox

import (
	"sync"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Hear has news called when this process has put mail into the mailbox, until stop is
// called. It is a hint: mail of other processes, and some of this one, comes without. news
// must not wait.
func (m *Mailbox) Hear(news func()) (stop func()) {
	return hearersOf(m.Cluster).hear(m.session, news)
}

// hearers are the functions that are called when this process has put mail into mailboxes.
type hearers struct {
	number atomic.Int64 // of them
	mu     sync.Mutex
	next   int
	by     map[layout.SessionID]map[int]func()
}

// hearersOf returns those of a cluster.
func hearersOf(c *fdbmodel.Cluster) *hearers {
	type key struct{}
	return c.Room(key{}, func() any {
		h := &hearers{by: map[layout.SessionID]map[int]func(){}}
		c.OnNotices(h.tell)
		return h
	}).(*hearers)
}

func (h *hearers) hear(session layout.SessionID, news func()) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by[session] == nil {
		h.by[session] = map[int]func(){}
	}
	own := h.next
	h.next++
	h.by[session][own] = news
	h.number.Add(1)
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(h.by[session], own); len(h.by[session]) == 0 {
			delete(h.by, session)
		}
		h.number.Add(-1)
	})
}

// tell calls the hearers of sessions that got mail.
func (h *hearers) tell(mail map[layout.SessionID][]layout.Notice, _ kv.Version) {
	if h.number.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for session := range mail {
		for _, news := range h.by[session] {
			news()
		}
	}
}
