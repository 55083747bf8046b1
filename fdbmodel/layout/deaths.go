package layout

import (
	"encoding/json"
)

// maxDeaths is how many deaths of its workers a future remembers.
const maxDeaths = 4

// Death is the death of a worker that held the future.
type Death struct {
	Worker WorkerID `msgpack:"w" json:"worker"`
	// Crash is set if the death counts as a crash: the future was known to have
	// begun, and nothing more suspicious ran beside it.
	Crash bool `msgpack:"c,omitempty" json:"crash,omitempty"`
}

// Deaths are the last deaths of workers that held a future, oldest first; those
// after the last one are empty. Two lists are equal by ==.
type Deaths [maxDeaths]Death

// Len returns how many deaths there are.
func (d Deaths) Len() int {
	n := 0
	for n < len(d) && d[n] != (Death{}) {
		n++
	}
	return n
}

// Of returns the death of a worker, and false if it is not among them.
func (d Deaths) Of(worker WorkerID) (Death, bool) {
	for _, death := range d[:d.Len()] {
		if death.Worker == worker {
			return death, true
		}
	}
	return Death{}, false
}

// With returns the deaths with one more. If there is no room, the oldest that
// does not count as a crash is forgotten, or else the oldest.
func (d Deaths) With(death Death) Deaths {
	n := d.Len()
	if n == len(d) {
		oldest := 0
		for i := range d {
			if !d[i].Crash {
				oldest = i
				break
			}
		}
		d = d.Without(d[oldest].Worker)
		n--
	}
	d[n] = death
	return d
}

// Without returns the deaths without that of a worker.
func (d Deaths) Without(worker WorkerID) Deaths {
	var left Deaths
	n := 0
	for _, death := range d[:d.Len()] {
		if death.Worker != worker {
			left[n] = death
			n++
		}
	}
	return left
}

// MarshalJSON implements json.Marshaler: a list without empty entries.
func (d Deaths) MarshalJSON() ([]byte, error) { return json.Marshal(d[:d.Len()]) }

// SuspectRecord is the record of a poison candidate that a worker is about to run, or runs.
type SuspectRecord struct {
	Sequence int64 `msgpack:"s" json:"sequence"`         // of the claim
	Deaths   int   `msgpack:"d,omitempty" json:"deaths"` // of its workers before
}
