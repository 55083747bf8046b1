package fdbmodel

import (
	"bytes"
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// list writes the keys by which lists find a future after a change, and clears those of
// before. before is nil for a new one, after for one that is removed.
func (w *changes) list(before, after *layout.Row) {
	if before != nil && after != nil && (before.State() == layout.Failed) == (after.State() == layout.Failed) {
		return // nothing else changes them
	}
	var was, is [][]byte
	if before != nil {
		was = w.keys.ListedAs(before)
	}
	if after != nil {
		is = w.keys.ListedAs(after)
	}
	lacks := func(keys [][]byte, key []byte) bool {
		return !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
	}
	for _, key := range was {
		if lacks(is, key) {
			w.tx.Clear(key)
		}
	}
	for _, key := range is {
		if lacks(was, key) {
			w.tx.Set(key, nil)
		}
	}
}
