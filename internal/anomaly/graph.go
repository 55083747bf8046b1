package anomaly

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// kind is why one transaction comes before another, a bit each.
type kind uint8

const (
	ww kind = 1 << iota
	wr
	rw
	rt
)

// edge leads from a transaction to one that must come after it.
type edge struct {
	from, to int
	kind     kind
	// lost is set for edges to an append that is reported as lost.
	lost bool
	key  string
	// list was read, or element appended, by from; next was appended by to.
	list          []int
	element, next int
}

// graph has the edges of each transaction, at most one of a kind between two.
type graph struct {
	out  map[int][]edge
	have map[[3]int]bool
}

func (g *graph) add(e edge) {
	if g.out == nil {
		g.out, g.have = map[int][]edge{}, map[[3]int]bool{}
	}
	if id := [3]int{e.from, e.to, int(e.kind)}; e.from != e.to && !g.have[id] {
		g.have[id] = true
		g.out[e.from] = append(g.out[e.from], e)
	}
}

// addDataEdges adds the edges that lists tell.
func (c *checker) addDataEdges() {
	unseen := map[string][]unseen{}
	for _, u := range c.unseen {
		unseen[u.key] = append(unseen[u.key], u)
	}
	for _, key := range slices.Sorted(maps.Keys(c.orders)) {
		c.addAppends(key, c.orders[key], unseen[key])
	}
	for _, r := range c.reads {
		if c.isPrefix(r) {
			c.addReadEdges(r, unseen[r.key])
		}
	}
}

// addAppends adds the edges between the transactions that appended to a list.
func (c *checker) addAppends(key string, order []int, unseen []unseen) {
	before := c.committedFrom(key, order, 0)
	for before >= 0 {
		e := edge{from: c.writer(key, order[before]), kind: ww, key: key, element: order[before]}
		if before = c.committedFrom(key, order, before+1); before >= 0 {
			e.to, e.next = c.writer(key, order[before]), order[before]
			c.graph.add(e)
			continue
		}
		for _, u := range unseen {
			e.to, e.next, e.lost = u.tx, u.value, u.lost
			c.graph.add(e)
		}
	}
}

// addReadEdges adds the edges of a read: from whose append it saw last, and to whose append it saw not.
func (c *checker) addReadEdges(r read, unseen []unseen) {
	last := -1
	if n := len(r.list); n > 0 && c.committedFrom(r.key, r.list, n-1) >= 0 {
		last = c.writer(r.key, r.list[n-1])
		c.graph.add(edge{from: last, to: r.tx, kind: wr, key: r.key, element: r.list[n-1], list: r.list})
	}
	order := c.orders[r.key]
	if next := c.committedFrom(r.key, order, len(r.list)); next >= 0 {
		// The rest of an intermediate read is reported as that.
		if to := c.writer(r.key, order[next]); to != last {
			c.graph.add(edge{from: r.tx, to: to, kind: rw, key: r.key, list: r.list, next: order[next]})
		}
		return
	}
	for _, u := range unseen {
		if u.tx != last {
			c.graph.add(edge{from: r.tx, to: u.tx, kind: rw, key: r.key, list: r.list, next: u.value, lost: u.lost})
		}
	}
}

// committedFrom returns the first place of a list, at from or after it, whose element was committed, or -1.
func (c *checker) committedFrom(key string, list []int, from int) int {
	for i := from; i < len(list); i++ {
		if by, found := c.appends[element{key, list[i]}]; found && c.committed[by.tx] {
			return i
		}
	}
	return -1
}

func (c *checker) writer(key string, value int) int { return c.appends[element{key, value}].tx }

// addTimeEdges adds an edge from each transaction to those that began after its end, without those that follow from
// others.
func (c *checker) addTimeEdges() {
	type event struct {
		at  int64
		tx  int
		end bool
	}
	var events []event
	for i, t := range c.txs {
		if c.committed[i] {
			events = append(events, event{t.Begin, i, false})
		}
		if t.Outcome == OK {
			events = append(events, event{t.End, i, true})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	// ended are those with no edge to another one that has ended.
	var ended []int
	before := map[int][]int{}
	for _, e := range events {
		if !e.end {
			before[e.tx] = slices.Clone(ended)
			for _, from := range ended {
				c.graph.add(edge{from: from, to: e.tx, kind: rt})
			}
			continue
		}
		ended = slices.DeleteFunc(ended, func(tx int) bool { return slices.Contains(before[e.tx], tx) })
		ended = append(ended, e.tx)
		delete(before, e.tx)
	}
}

// components returns the sets of transactions that reach each other by edges that a pattern allows, without those that
// are hidden and sets of one, after Tarjan.
func (g *graph) components(p pattern, hidden []bool) [][]int {
	n := len(hidden)
	t := tarjan{graph: g, pattern: p, hidden: hidden, index: make([]int, n), low: make([]int, n), on: make([]bool, n)}
	for n := range hidden {
		if t.index[n] == 0 && !hidden[n] {
			t.visit(n)
		}
	}
	return t.found
}

type tarjan struct {
	*graph
	pattern
	hidden     []bool
	index, low []int
	on         []bool
	stack      []int
	visited    int
	found      [][]int
}

func (t *tarjan) visit(n int) {
	t.visited++
	t.index[n], t.low[n] = t.visited, t.visited
	t.stack, t.on[n] = append(t.stack, n), true
	for _, e := range t.out[n] {
		switch {
		case !t.allows(e) || t.hidden[e.to]:
		case t.index[e.to] == 0:
			t.visit(e.to)
			t.low[n] = min(t.low[n], t.low[e.to])
		case t.on[e.to]:
			t.low[n] = min(t.low[n], t.index[e.to])
		}
	}
	if t.low[n] != t.index[n] {
		return
	}
	at := len(t.stack) - 1
	for t.stack[at] != n {
		at--
	}
	members := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, m := range members {
		t.on[m] = false
	}
	if len(members) > 1 {
		slices.Sort(members)
		t.found = append(t.found, members)
	}
}

// why says what the edge follows from.
func (c *checker) why(e edge) string {
	from, to := c.name(e.from), c.name(e.to)
	switch e.kind {
	case ww:
		return fmt.Sprintf("%s appended %d to %s, %s appended %d later: ww", from, e.element, e.key, to, e.next)
	case wr:
		return fmt.Sprintf("%s appended %d to %s, %s read %s: wr", from, e.element, e.key, to, show(e.list))
	case rw:
		return fmt.Sprintf("%s read %s of %s, %s appended %d next: rw", from, show(e.list), e.key, to, e.next)
	default:
		return fmt.Sprintf("%s had ended before %s began: rt", from, to)
	}
}
