package fdbmodel

import (
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// lostListeners are told of futures that this process has failed without a worker
// that holds them.
type lostListeners struct {
	mu  sync.Mutex
	all []*func([]layout.Row)
}

// OnLost has hear called with the futures that this process fails because too
// many workers died while they ran them, whatever in this process notices the
// death, or because no worker could run them. If several ask, the one that asked first and did not stop is called.
func (c *Cluster) OnLost(hear func([]layout.Row)) (stop func()) {
	l := &c.lost
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, &hear)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = slices.DeleteFunc(l.all, func(h *func([]layout.Row)) bool { return h == &hear })
	}
}

func (l *lostListeners) tell(rows []layout.Row) {
	if len(rows) == 0 {
		return
	}
	l.mu.Lock()
	var first *func([]layout.Row)
	if len(l.all) > 0 {
		first = l.all[0]
	}
	l.mu.Unlock()
	if first != nil {
		(*first)(rows)
	}
}
