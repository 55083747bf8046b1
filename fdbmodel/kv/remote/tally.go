package remote

import (
	"log/slog"
	"sync"
	"time"
)

// tally logs each kind of event once in a while, with the number of those that
// were left out, so that strangers can't fill a log.
type tally struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*tallied
}

// tallied is the events of a kind since it was last logged.
type tallied struct {
	logged  time.Time
	omitted int
}

// tallyInterval is the time between two lines of a kind.
const tallyInterval = 10 * time.Second

// warn logs an event, or counts it.
func (t *tally) warn(kind string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[kind]
	if k == nil {
		k = &tallied{}
		t.kinds[kind] = k
	}
	now := time.Now()
	if !k.logged.IsZero() && now.Sub(k.logged) < tallyInterval {
		k.omitted++
		return
	}
	if k.omitted > 0 {
		args = append(args, "omitted", k.omitted)
	}
	k.logged, k.omitted = now, 0
	t.log.Warn(kind, args...)
}

// close logs what was left out.
func (t *tally) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for kind, k := range t.kinds {
		if k.omitted > 0 {
			t.log.Warn(kind, "omitted", k.omitted)
		}
	}
}
