package index

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Places hold each unclaimed future where it waits.
type Places struct{ *Set }

// Update implements Index.
func (p Places) Update(before, after *layout.Row) {
	if before != nil {
		if place := layout.PlaceOf(before); place != nil {
			p.Tx.Clear(place.Key(p.Keys, before))
		}
	}
	if after != nil {
		p.Put(after)
	}
}

// Put puts a future where it waits. One that has just got in line is put there at the end
// of the transaction, if its lane has no room.
func (p Places) Put(row *layout.Row) {
	if row.Line != nil && row.Line.Fresh() {
		return
	}
	if place := layout.PlaceOf(row); place != nil {
		p.Tx.Set(place.Key(p.Keys, row), place.Value(row))
	}
}

// Flush implements Index.
func (p Places) Flush(context.Context) error { return nil }
