package layout

import (
	"slices"
	"sync"
)

// Table is a list of kinds of keys: all of a cluster, or those of one room of the model.
type Table struct {
	kinds      []KeyKind
	bySubspace map[string][]*KeyKind
}

// NewTable returns the table of some kinds of keys. A key is of the first one that it fits.
func NewTable(kinds ...[]KeyKind) *Table {
	t := &Table{kinds: slices.Concat(kinds...), bySubspace: map[string][]*KeyKind{}}
	for i := range t.kinds {
		k := &t.kinds[i]
		t.bySubspace[k.Subspace] = append(t.bySubspace[k.Subspace], k)
	}
	return t
}

// Kinds returns all kinds of keys of the table, which are not to be modified.
func (t *Table) Kinds() []KeyKind { return t.kinds }

// Names returns the names of all kinds of keys, and of their subspaces.
func (t *Table) Names() (kinds, subspaces []string) {
	for i := range t.kinds {
		kinds = append(kinds, t.kinds[i].Name)
		if sub := t.kinds[i].Subspace; !slices.Contains(subspaces, sub) {
			subspaces = append(subspaces, sub)
		}
	}
	return kinds, subspaces
}

// modelTable has the keys of the model itself.
var modelTable = sync.OnceValue(func() *Table { return NewTable(Kinds()) })

// ParseKey splits a key into its parts. It knows the kinds of keys of the model itself, Kinds,
// and not those of the rooms above it.
func ParseKey(key []byte) Key { return modelTable().Parse(key) }
