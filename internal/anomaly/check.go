package anomaly

import (
	"fmt"
	"slices"
)

// Check returns what is wrong with a history: nothing if some order of its committed transactions, in which those that
// ended come before those that began later, explains all reads. There is at most one finding of a name and a key, and
// of a name and a tangle of cycles. It panics if two transactions append the same element to a list.
func Check(history []Tx) []Finding {
	c := &checker{
		txs: history, committed: make([]bool, len(history)), appends: map[element]appended{}, orders: map[string][]int{},
		seen: map[element]bool{}, reported: map[[2]string]bool{},
	}
	c.indexAppends()
	c.decideUnknown()
	for i := range c.txs {
		if c.committed[i] {
			c.readsOf(i)
		}
	}
	c.orderLists()
	for _, r := range c.reads {
		c.checkRead(r)
	}
	c.findUnseen()
	c.addDataEdges()
	c.addTimeEdges()
	c.findCycles()
	return c.findings
}

type checker struct {
	txs       []Tx
	committed []bool
	appends   map[element]appended
	// orders has the longest list that was read of each key.
	orders map[string][]int
	seen   map[element]bool
	reads  []read
	unseen []unseen
	graph  graph

	reported map[[2]string]bool
	findings []Finding
}

type element struct {
	key   string
	value int
}

// appended says who appended an element.
type appended struct {
	tx int
	// last is set for the transaction's last append to the list.
	last bool
}

// read is what a committed transaction read of others.
type read struct {
	tx   int
	key  string
	list []int
}

// unseen is an append of a committed transaction that no read shows. It comes after all that were read.
type unseen struct {
	tx int
	element
	// lost is set if a read ought to show it.
	lost bool
}

func (c *checker) indexAppends() {
	for i, t := range c.txs {
		last := map[string]bool{}
		for _, op := range slices.Backward(t.Ops) {
			if op.isRead() {
				continue
			}
			e := element{op.Key, op.Element}
			if other, found := c.appends[e]; found {
				panic(fmt.Sprintf("anomaly: T%d and T%d both append %d to %s", c.txs[other.tx].ID, t.ID, e.value, e.key))
			}
			c.appends[e] = appended{tx: i, last: !last[op.Key]}
			last[op.Key] = true
		}
	}
}

// decideUnknown finds the transactions that were committed, and what they have seen.
func (c *checker) decideUnknown() {
	var committed []int
	for i, t := range c.txs {
		if t.Outcome == OK {
			c.committed[i] = true
			committed = append(committed, i)
		}
	}
	for len(committed) > 0 {
		i := committed[len(committed)-1]
		committed = committed[:len(committed)-1]
		for _, op := range c.txs[i].Ops {
			for _, value := range op.List {
				e := element{op.Key, value}
				by, found := c.appends[e]
				if !found || by.tx == i {
					continue
				}
				c.seen[e] = true
				if c.txs[by.tx].Outcome == Unknown && !c.committed[by.tx] {
					c.committed[by.tx] = true
					committed = append(committed, by.tx)
				}
			}
		}
	}
}

// readsOf adds what a transaction read of others, and compares its reads with each other and its own appends.
func (c *checker) readsOf(i int) {
	own, before := map[string][]int{}, map[string][]int{}
	for _, op := range c.txs[i].Ops {
		if !op.isRead() {
			own[op.Key] = append(own[op.Key], op.Element)
			continue
		}
		others, had := len(op.List)-len(own[op.Key]), before[op.Key]
		_, again := before[op.Key]
		if others < 0 || !slices.Equal(op.List[others:], own[op.Key]) || again && !slices.Equal(op.List[:others], had) {
			c.report(Internal, op.Key, fmt.Sprintf("%s read %s of %s after it had read %s and appended %s",
				c.name(i), show(op.List), op.Key, show(had), show(own[op.Key])), i)
			continue
		}
		if !again {
			before[op.Key] = op.List[:others]
			c.reads = append(c.reads, read{i, op.Key, op.List[:others]})
		}
	}
}

func (c *checker) orderLists() {
	for _, r := range c.reads {
		if len(r.list) > len(c.orders[r.key]) {
			c.orders[r.key] = r.list
		}
	}
}

// isPrefix reports whether a read agrees with the longest one of its list.
func (c *checker) isPrefix(r read) bool { return slices.Equal(r.list, c.orders[r.key][:len(r.list)]) }

// checkRead looks for what one read shows without others.
func (c *checker) checkRead(r read) {
	in := fmt.Sprintf("%s read %s of %s", c.name(r.tx), show(r.list), r.key)
	if !c.isPrefix(r) {
		c.report(IncompatibleOrder, r.key, fmt.Sprintf("%s, and another one %s", in, show(c.orders[r.key])), r.tx)
	}
	twice := map[int]bool{}
	for _, value := range r.list {
		if twice[value] {
			c.report(DuplicateElement, r.key, fmt.Sprintf("%s, with %d twice", in, value), r.tx)
		}
		twice[value] = true
		by, found := c.appends[element{r.key, value}]
		switch {
		case !found:
			c.report(UnwrittenElement, r.key, fmt.Sprintf("%s, and nobody appended %d", in, value), r.tx)
		case c.txs[by.tx].Outcome == Failed:
			c.report(G1a, r.key, fmt.Sprintf("%s, but %s, which appended %d, failed", in, c.name(by.tx), value), r.tx, by.tx)
		}
	}
	if len(r.list) == 0 {
		return
	}
	end := r.list[len(r.list)-1]
	if by, found := c.appends[element{r.key, end}]; found && !by.last && c.committed[by.tx] {
		c.report(G1b, r.key, fmt.Sprintf("%s, but %s appended more after %d", in, c.name(by.tx), end), r.tx, by.tx)
	}
}

// findUnseen finds the appends that no read shows, and those of them that are lost.
func (c *checker) findUnseen() {
	latest := map[string]int{}
	for _, r := range c.reads {
		if at, found := latest[r.key]; !found || c.txs[r.tx].Begin > c.txs[at].Begin {
			latest[r.key] = r.tx
		}
	}
	for i, t := range c.txs {
		for _, op := range t.Ops {
			e := element{op.Key, op.Element}
			if op.isRead() || !c.committed[i] || c.seen[e] {
				continue
			}
			reader, found := latest[op.Key]
			lost := found && t.Outcome == OK && t.End < c.txs[reader].Begin
			if lost {
				c.report(LostAppend, op.Key, fmt.Sprintf("%s appended %d to %s and had ended before %s read it: no read has %d",
					c.name(i), op.Element, op.Key, c.name(reader), op.Element), i, reader)
			}
			c.unseen = append(c.unseen, unseen{i, e, lost})
		}
	}
}
