package anomaly

import "slices"

// pattern is the edges of a kind of cycle: one that is needed, others that are allowed, and one that is counted.
type pattern struct {
	name    string
	needed  kind
	allowed kind
	counted kind
	// least is how many counted edges there are besides the needed one, at least or exactly; at most 2.
	least   int
	exactly bool
}

// patterns are the cycles of what was read and written, the worst first, then those that the order of time closes.
func patterns() []pattern {
	return []pattern{
		{name: G0, needed: ww, allowed: ww},
		{name: G1c, needed: wr, allowed: ww | wr},
		{name: GSingle, needed: rw, allowed: ww | wr},
		{name: G2, needed: rw, allowed: ww | wr, counted: rw, least: 1},
		{name: G0 + Realtime, needed: rt, allowed: ww | rt},
		{name: G1c + Realtime, needed: rt, allowed: ww | rt, counted: wr, least: 1},
		{name: GSingle + Realtime, needed: rt, allowed: ww | wr | rt, counted: rw, least: 1, exactly: true},
		{name: G2 + Realtime, needed: rt, allowed: ww | wr | rt, counted: rw, least: 2},
	}
}

// allows reports whether a cycle of the pattern may have the edge. That a lost append is missed is reported as such,
// and not as a matter of time.
func (p pattern) allows(e edge) bool {
	return e.kind&(p.needed|p.allowed|p.counted) != 0 && !(e.lost && p.needed == rt)
}

// findCycles reports the shortest cycle of each pattern among transactions that reach each other, without those of
// worse cycles. Cycles of time are only looked for among transactions that no other tangle has.
func (c *checker) findCycles() {
	inCycle, inTangle := make([]bool, len(c.txs)), make([]bool, len(c.txs))
	for _, p := range patterns() {
		hidden := inCycle
		if p.needed == rt {
			hidden = inTangle
		}
		for _, members := range c.graph.components(p, hidden) {
			cycle := newSearch(&c.graph, p, members, len(c.txs)).shortest(members)
			if cycle == nil {
				continue
			}
			for _, m := range members {
				inTangle[m] = true
			}
			f := Finding{Name: p.name}
			for _, e := range joinTime(cycle) {
				inCycle[e.from] = true
				f.Txs = append(f.Txs, c.txs[e.from])
				f.Why = append(f.Why, c.why(e))
			}
			c.findings = append(c.findings, f)
		}
	}
}

// joinTime makes one edge of time of each row of them. A cycle begins with one if it has any.
func joinTime(cycle []edge) []edge {
	var joined []edge
	for _, e := range cycle {
		if n := len(joined); n > 0 && e.kind == rt && joined[n-1].kind == rt {
			joined[n-1].to = e.to
			continue
		}
		joined = append(joined, e)
	}
	if n := len(joined); n > 1 && joined[0].kind == rt && joined[n-1].kind == rt {
		joined[0].from = joined[n-1].from
		joined = joined[:n-1]
	}
	return joined
}

// place is a transaction on a path, and how many counted edges lead there.
type place struct{ tx, counted int }

// step is how a path came to a place.
type step struct {
	edge
	before place
	round  int
}

// search looks for cycles of a pattern inside of a component.
type search struct {
	*graph
	pattern
	inside []bool
	steps  [][3]step
	round  int
}

func newSearch(g *graph, p pattern, members []int, nodes int) *search {
	s := &search{graph: g, pattern: p, inside: make([]bool, nodes), steps: make([][3]step, nodes)}
	for _, m := range members {
		s.inside[m] = true
	}
	return s
}

// shortest returns the shortest cycle, nil if none is found. A walk that meets a transaction twice is no cycle: it
// consists of shorter ones, which have names of their own.
func (s *search) shortest(members []int) []edge {
	var best []edge
	for _, n := range members {
		for _, first := range s.out[n] {
			if first.kind != s.needed || !s.inside[first.to] || !s.allows(first) {
				continue
			}
			limit := len(s.out) + 2
			if best != nil {
				limit = len(best) - 2
			}
			if rest := s.path(first.to, first.from, limit); rest != nil {
				best = append([]edge{first}, rest...)
			}
		}
	}
	return best
}

// path returns the shortest path of at most limit edges that makes a cycle with the needed edge.
func (s *search) path(from, to, limit int) []edge {
	s.round++
	ring := []place{{tx: from}}
	s.steps[from][0].round = s.round
	for length := 1; len(ring) > 0 && length <= limit; length++ {
		var next []place
		for _, at := range ring {
			for _, e := range s.out[at.tx] {
				then, ok := s.follow(at, e)
				if !ok || s.steps[then.tx][then.counted].round == s.round {
					continue
				}
				s.steps[then.tx][then.counted] = step{e, at, s.round}
				switch {
				case then.tx != to:
					next = append(next, then)
				case then.counted >= s.least:
					return s.walk(from, then)
				}
			}
		}
		ring = next
	}
	return nil
}

// follow returns where an edge leads, if the pattern allows it.
func (s *search) follow(at place, e edge) (place, bool) {
	if !s.inside[e.to] || !s.allows(e) {
		return place{}, false
	}
	if e.kind != s.counted {
		return place{e.to, at.counted}, e.kind&s.allowed != 0
	}
	return place{e.to, min(at.counted+1, s.least)}, at.counted < s.least || !s.exactly
}

// walk returns the path to a place, nil if it meets a transaction twice.
func (s *search) walk(from int, at place) []edge {
	var path []edge
	met := map[int]bool{}
	for at != (place{tx: from}) {
		if met[at.tx] || at.tx == from {
			return nil
		}
		met[at.tx] = true
		came := s.steps[at.tx][at.counted]
		path = append(path, came.edge)
		at = came.before
	}
	slices.Reverse(path)
	return path
}
