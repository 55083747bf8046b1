package lane

import (
	"sync"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// maxLined is how many lanes a process remembers that had futures in line.
const maxLined = 4096

// Known is what a process remembers of lanes between transactions. The zero value is ready for use, also by many
// goroutines.
type Known struct {
	// Order tells futures apart that get in line with one transaction, in order.
	Order atomic.Int64

	mu    sync.Mutex
	lined map[layout.Lane]struct{}
}

// wasLined reports whether a transaction that this process began left futures of a lane in line. It may be
// wrong.
func (k *Known) wasLined(l layout.Lane) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, was := k.lined[l]
	return was
}

// note says whether a transaction leaves futures of a lane in line.
func (k *Known) note(l layout.Lane, lined bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, was := k.lined[l]; was == lined {
		return
	}
	if !lined {
		delete(k.lined, l)
		return
	}
	if k.lined == nil || len(k.lined) >= maxLined {
		k.lined = map[layout.Lane]struct{}{}
	}
	k.lined[l] = struct{}{}
}
