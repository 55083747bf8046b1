package peerworker

import (
	"container/heap"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// lines are the items that wait to be run, in lines of those that differ in nothing but
// their turn. The head of which the fewest run comes first, of each head the urgent ones, and
// among equals the oldest.
type lines struct {
	by   map[lineKey]*line
	runs map[string]int // taken items by head
	last uint64         // number of the newest item
	n    int            // items that wait
}

// lineKey is what keeps items from being run: the owner of which too many run, empty for
// one without a limit, and memory.
type lineKey struct {
	head  string
	owner string
	limit int
	ram   int64
}

// line is a heap of items that wait.
type line []*attempt

func (l line) Len() int           { return len(l) }
func (l line) Less(i, j int) bool { return l[i].before(l[j]) }
func (l line) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].at, l[j].at = i, j
}

// Push implements heap.Interface.
func (l *line) Push(x any) {
	x.(*attempt).at = len(*l)
	*l = append(*l, x.(*attempt))
}

// Pop implements heap.Interface.
func (l *line) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return x
}

func (x *attempt) before(y *attempt) bool {
	if a, b := x.spec.Priority, y.spec.Priority; a != b {
		return a > b
	}
	return x.number < y.number
}

func (x *attempt) line() lineKey {
	k := lineKey{head: x.head, ram: x.spec.Requirements.RAM}
	if x.spec.Parallel > 0 {
		k.owner, k.limit = x.spec.Owner, x.spec.Parallel
	}
	return k
}

// add has an item wait. One that has waited before keeps its place.
func (l *lines) add(x *attempt) {
	l.free(x)
	if x.number == 0 {
		l.last++
		x.number = l.last
	}
	if l.by == nil {
		l.by = map[lineKey]*line{}
	}
	of := l.by[x.line()]
	if of == nil {
		of = &line{}
		l.by[x.line()] = of
	}
	x.state = runWaits
	heap.Push(of, x)
	l.n++
}

// leave has an item wait no longer.
func (l *lines) leave(x *attempt, state runState) {
	key := x.line()
	of := l.by[key]
	heap.Remove(of, x.at)
	if len(*of) == 0 {
		delete(l.by, key)
	}
	x.state = state
	l.n--
}

// free says that a taken item runs no longer.
func (l *lines) free(x *attempt) {
	if !x.counts {
		return
	}
	x.counts = false
	if l.runs[x.head]--; l.runs[x.head] == 0 {
		delete(l.runs, x.head)
	}
}

// comes reports whether the turn of an item is before that of another one.
func (l *lines) comes(x, before *attempt) bool {
	if a, b := l.runs[x.head], l.runs[before.head]; x.head != before.head && a != b {
		return a < b
	}
	return x.before(before)
}

// take returns the items whose turn it is and that fit into a request, but none of heads that are
// full. They wait no longer.
func (l *lines) take(request *fdbmodel.ClaimRequest, full map[string]bool) (taken []*attempt) {
	heads := make(map[lineKey]*line, len(l.by))
	for key, of := range l.by {
		if !full[key.head] && (key.owner == "" || request.Skip == nil || !request.Skip(key.owner)) {
			heads[key] = of
		}
	}
	free, given := request.Free.RAM, map[string]int{}
	for len(taken) < request.Max && len(heads) > 0 {
		var next *attempt
		for key, of := range heads {
			x := (*of)[0]
			if key.ram > free || key.owner != "" && given[key.owner] >= key.limit {
				delete(heads, key)
			} else if next == nil || l.comes(x, next) {
				next = x
			}
		}
		if next == nil {
			break
		}
		key := next.line()
		l.leave(next, runTaken)
		if l.runs == nil {
			l.runs = map[string]int{}
		}
		next.counts = true
		l.runs[next.head]++
		taken = append(taken, next)
		free -= key.ram
		if key.owner != "" {
			given[key.owner]++
		}
		if len(*heads[key]) == 0 {
			delete(heads, key)
		}
	}
	return taken
}

// claimed is an item as the worker takes it.
func (x *attempt) claimed() fdbmodel.ClaimedFuture {
	// No claim of a store has a token like this.
	return fdbmodel.ClaimedFuture{ID: x.id, Spec: x.spec, Inline: x.args, Token: layout.Token{Sequence: -int64(x.number)}}
}
