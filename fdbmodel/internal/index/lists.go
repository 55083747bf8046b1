package index

import (
	"bytes"
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Lists hold the keys by which lists find a future: by its function, its tags and its
// failure.
type Lists struct{ *Set }

// Update implements Index.
func (l Lists) Update(before, after *layout.Row) {
	if before != nil && after != nil && (before.State() == layout.Failed) == (after.State() == layout.Failed) {
		return // nothing else changes them
	}
	var was, is [][]byte
	if before != nil {
		was = l.Keys.ListedAs(before)
	}
	if after != nil {
		is = l.Keys.ListedAs(after)
	}
	lacks := func(keys [][]byte, key []byte) bool {
		return !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
	}
	for _, key := range was {
		if lacks(is, key) {
			l.Tx.Clear(key)
		}
	}
	for _, key := range is {
		if lacks(was, key) {
			l.Tx.Set(key, nil)
		}
	}
}

// Flush implements Index.
func (l Lists) Flush(context.Context) error { return nil }
