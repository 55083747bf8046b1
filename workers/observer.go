package workers

import (
	"bytes"
	"time"
)

// observer sees what stands still. It trusts no clock but that of the times that
// it is given, and not much of a long time between two looks: an observer that
// was stopped, perhaps with the whole machine, has not seen anything stand still
// meanwhile.
type observer[K comparable] struct {
	// gap is the most time that counts between two looks.
	gap  time.Duration
	seen map[K]sighting
}

type sighting struct {
	value []byte
	last  time.Time
	still time.Duration
}

// look takes note of key's value and returns for how long it has not changed.
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

// keep forgets what is not in present.
func (o *observer[K]) keep(present map[K]bool) {
	for k := range o.seen {
		if !present[k] {
			delete(o.seen, k)
		}
	}
}
