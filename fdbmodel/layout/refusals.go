package layout

import (
	"encoding/json"
	"slices"
	"time"
)

// MaxRefusals is how many rejections a future remembers.
const MaxRefusals = 4

// Refusal says that a worker put the future back.
type Refusal struct {
	Worker WorkerID `msgpack:"w" json:"worker"`
	// Peer is the worker's LabelPeer, empty if it has none: a peer is another worker each
	// time that it joins a head.
	Peer string `msgpack:"p,omitempty" json:"peer,omitempty"`
	At   int64  `msgpack:"t" json:"at_ms"`
	// Until is when it may take the future again. Others may before.
	Until int64 `msgpack:"u" json:"until_ms"`
}

// Name is the peer, or the worker if that is none.
func (r *Refusal) Name() string {
	if r.Peer != "" {
		return r.Peer
	}
	return string(r.Worker)
}

// Refusals are the last rejections of a future, one for each worker or peer, oldest first;
// those after the last one are empty. Two lists are equal by ==.
type Refusals [MaxRefusals]Refusal

// Len returns how many there are.
func (r Refusals) Len() int {
	n := 0
	for n < len(r) && r[n] != (Refusal{}) {
		n++
	}
	return n
}

// Passing returns how many workers pass the future over at a time, in milliseconds.
func (r Refusals) Passing(at int64) (n int) {
	for _, one := range r[:r.Len()] {
		if one.Until > at {
			n++
		}
	}
	return n
}

// First returns when the first of those that pass the future over at a time may have it again, in
// milliseconds; 0 if none does.
func (r Refusals) First(at int64) (first int64) {
	for _, one := range r[:r.Len()] {
		if one.Until > at && (first == 0 || one.Until < first) {
			first = one.Until
		}
	}
	return first
}

// PassedOverBy reports whether a worker passes the future over, which it rejected.
func (r *Row) PassedOverBy(w *WorkerInfo, now time.Time) bool {
	by := Refusal{Worker: w.ID, Peer: w.Labels[LabelPeer]}
	return slices.ContainsFunc(r.Attempts.Refused[:], func(one Refusal) bool {
		return one.Until > Millis(now) && one.Name() == by.Name()
	})
}

// With returns the refusals with one more, which replaces an earlier one of the same
// worker or peer, or else the oldest if there is no room.
func (r Refusals) With(one Refusal) Refusals {
	var next Refusals
	n, kept := 0, r[:r.Len()]
	for i := range kept {
		if kept[i].Name() != one.Name() {
			next[n] = kept[i]
			n++
		}
	}
	if n == len(next) {
		copy(next[:], next[1:])
		n--
	}
	next[n] = one
	return next
}

// MarshalJSON implements json.Marshaler: a list without empty entries.
func (r Refusals) MarshalJSON() ([]byte, error) { return json.Marshal(r[:r.Len()]) }
