package pieces

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Firsts are the first pieces of values that were written before what refers to them, by the number of that. Who
// removes a value meanwhile conflicts with the transaction.
type Firsts struct{ asked map[int][]kv.Pending[[]byte] }

// Ask requests the first piece of a value.
func (f *Firsts) Ask(tx kv.Tx, i int, key []byte) {
	if f.asked == nil {
		f.asked = map[int][]kv.Pending[[]byte]{}
	}
	f.asked[i] = append(f.asked[i], tx.Get(key))
}

// Wait reports whether all values of a number are there.
func (f *Firsts) Wait(ctx context.Context, i int) (there bool, err error) {
	for _, first := range f.asked[i] {
		if value, err := first.Wait(ctx); err != nil || value == nil {
			return false, err
		}
	}
	return true, nil
}
