package workers

import (
	"bytes"
	"time"
)

// observer detects unchanged values. It trusts only the times that it is given,
// and counts little of a long gap between two observations: an observer that
// was stopped, perhaps with the whole machine, has not observed anything
// meanwhile.
type observer[K comparable] struct {
	// gap is the most time that counts between two observations.
	gap  time.Duration
	seen map[K]sighting
}

type sighting struct {
	value []byte
	last  time.Time
	still time.Duration
}

// look records key's value and returns for how long it has been unchanged.
func (o *observer[K]) look(key K, value []byte, now time.Time) time.Duration {
	if o.seen == nil {
		o.seen = map[K]sighting{}
	}
	s, known := o.seen[key]
	if !known || !bytes.Equal(s.value, value) {
		o.seen[key] = sighting{value: value, last: now}
		return 0
	}
	s.still += max(0, min(now.Sub(s.last), o.gap))
	s.last = now
	o.seen[key] = s
	return s.still
}

// keep forgets keys that are not in present.
func (o *observer[K]) keep(present map[K]bool) {
	for k := range o.seen {
		if !present[k] {
			delete(o.seen, k)
		}
	}
}
