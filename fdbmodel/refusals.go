package fdbmodel

import (
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// maxRefusals is how many futures a worker passes over at a time because it rejected them:
// its looks at the ready index read them all. Further ones wait for their backoff, away from
// the index.
const maxRefusals = 1024

// refusals are the times until when a worker passes over the futures that it rejected.
type refusals []time.Time

// room returns for how many more there is room.
func (r *refusals) room(now time.Time) int {
	*r = slices.DeleteFunc(*r, func(until time.Time) bool { return !until.After(now) })
	return maxRefusals - len(*r)
}

// name is what a rejection of the worker is remembered by.
func (r *Registration) name() string { return notify.NameOf(r.info.ID, r.info.Labels) }

// refuseEvents completes the events of rejections. Two transactions at a time may go beyond
// the bound by as many as one of them ends.
func (r *Registration) refuseEvents(events []state.Event) {
	room := -1
	for i := range events {
		e := &events[i]
		if e.Kind != state.EventReject {
			continue
		}
		if room < 0 {
			r.mu.Lock()
			room = max(0, r.refused.room(e.Now))
			r.mu.Unlock()
		}
		e.Peer, e.Crowded = r.info.Labels[layout.LabelPeer], room == 0
		room = max(0, room-1)
	}
}

// noteRefused keeps what the worker has rejected and passes over.
func (r *Registration) noteRefused(completions []Completion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range completions {
		if until := completions[i].After.refusedUntil; !until.IsZero() {
			r.refused = append(r.refused, until)
		}
	}
}
