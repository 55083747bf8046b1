package futures

import (
	"bytes"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// early keeps notices of futures whose submit has not returned yet. A notice is
// kept until every submit that was under way when it came has ended. Submits
// count in two generations: the older one only shrinks, and when it is empty,
// its notices go and the younger one takes its place.
type early struct {
	young       int // index of the younger generation
	generations [2]generation
}

type generation struct {
	submits int
	notices map[ID]layout.Notice
}

func (e *early) begin() (generation int) {
	e.generations[e.young].submits++
	return e.young
}

func (e *early) end(generation int) {
	e.generations[generation].submits--
	for range e.generations {
		old := &e.generations[1-e.young]
		if old.submits > 0 {
			return
		}
		old.notices = nil
		e.young = 1 - e.young
	}
}

// keep keeps a notice if it may be that of a future whose submit is under way.
func (e *early) keep(n *layout.Notice) {
	if e.generations[0].submits+e.generations[1].submits == 0 {
		return
	}
	g := &e.generations[e.young]
	if g.notices == nil {
		g.notices = map[ID]layout.Notice{}
	}
	g.notices[n.ID] = *n
}

func (e *early) find(id ID) (layout.Notice, bool) {
	for i := range e.generations {
		if n, found := e.generations[i].notices[id]; found {
			return n, true
		}
	}
	return layout.Notice{}, false
}

func compareIDs(a, b ID) int { return bytes.Compare(a[:], b[:]) }
