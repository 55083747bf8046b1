// Package index keeps what is derived from futures in step with them: each index follows
// every change of a future in the transaction that makes it.
package index

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Index writes the keys of one kind that follow from futures. It belongs to one transaction
// and one goroutine.
type Index interface {
	// Update follows a future that changes from before to after, both with their specs.
	// before is nil for a new future, after for one that is removed. It may be called
	// several times for one future.
	Update(before, after *layout.Row)
	// Flush writes what is written once for each transaction. It may call Update of the
	// set, unless an index that was registered before has no more to flush by then.
	Flush(ctx context.Context) error
}

// Set is the indexes of one transaction.
type Set struct {
	Keys layout.Keyspace
	Tx   kv.Tx
	// Now is the time of the transaction, in milliseconds: that of its last end, if
	// that is later.
	Now int64
	// Stamped are the futures of which the transaction wrote a record with its versionstamp: it
	// can't read them any more.
	Stamped []layout.ID

	indexes []Index
	local   *kv.Local
}

// nextOrder returns a number for a key with the versionstamp of the transaction, which no other such key has, nor
// one of another set of the transaction if that remembers.
func (s *Set) nextOrder() uint16 {
	if s.local == nil {
		s.local = kv.LocalOf(s.Tx)
	}
	if s.local == nil {
		s.local = &kv.Local{}
	}
	return s.local.NextOrder()
}

// Register adds indexes. They are updated and flushed in this order.
func (s *Set) Register(indexes ...Index) { s.indexes = append(s.indexes, indexes...) }

// Update has all indexes follow a future that changes from before to after.
func (s *Set) Update(before, after *layout.Row) {
	for _, i := range s.indexes {
		i.Update(before, after)
	}
}

// Flush flushes all indexes. It returns the error of the first one that fails; the
// transaction must not be committed then.
func (s *Set) Flush(ctx context.Context) error {
	for _, i := range s.indexes {
		if err := i.Flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ends reports whether a future ends with a change.
func ends(before, after *layout.Row) bool {
	return after != nil && after.State().Terminal() && (before == nil || before.State() != after.State())
}
