package unique

import (
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Names are those of the unique futures of one submit.
type Names struct {
	asked map[layout.UniqueName]kv.Pending[kv.Page]
	taken map[layout.UniqueName]int
}

// Ask requests the futures that have a name, once for all that ask for it. See Ask.
func (n *Names) Ask(tx kv.Reader, keys layout.Keyspace, name layout.UniqueName) {
	if n.asked == nil {
		n.asked, n.taken = map[layout.UniqueName]kv.Pending[kv.Page]{}, map[layout.UniqueName]int{}
	}
	if _, asked := n.asked[name]; !asked {
		n.asked[name] = Ask(tx, keys, name)
	}
}

// Asked returns the futures that have a name which was asked for.
func (n *Names) Asked(name layout.UniqueName) kv.Pending[kv.Page] { return n.asked[name] }

// Take gives a name which was asked for to the task with an index.
func (n *Names) Take(name layout.UniqueName, i int) { n.taken[name] = i }

// Taken returns the index of the task that has taken a name last, and false if none has.
func (n *Names) Taken(name layout.UniqueName) (i int, taken bool) {
	i, taken = n.taken[name]
	return i, taken
}

// Made are the unique futures that a transaction of the caller's has made: they exist if it commits. Nil takes none.
type Made map[layout.ID]bool

// madeKey is where a transaction remembers what it makes in a cluster.
type madeKey struct{ cluster string }

// MadeIn returns what a transaction remembers to have made, nil if it can't.
func MadeIn(tx kv.Tx, keys layout.Keyspace) Made {
	local, key := kv.LocalOf(tx), madeKey{string(keys.All().Begin)}
	if local == nil {
		return nil
	}
	made, known := local.Value(key).(Made)
	if !known {
		made = Made{}
		local.Set(key, made)
	}
	return made
}

// Add adds a future.
func (m Made) Add(id layout.ID) {
	if m != nil {
		m[id] = true
	}
}
