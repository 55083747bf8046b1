package index

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Deadlines have a janitor find the futures that wait and must not do so for ever.
type Deadlines struct{ *Set }

// Update implements Index. A future that is claimed may keep its key: it goes back to
// waiting, or is over.
func (d Deadlines) Update(before, after *layout.Row) {
	if after == nil {
		return
	}
	if before == nil {
		before = &layout.Row{}
	}
	was, is := before.WaitsUntil(), after.WaitsUntil()
	switch {
	case is != 0 && is != was:
		d.Tx.Set(d.Keys.Limit(after.ID, is), layout.Mark())
	case is == 0 && after.State().Terminal():
		if at, _ := before.Limit(); at != 0 {
			d.Tx.Clear(d.Keys.Limit(after.ID, at))
		}
	}
}

// Flush implements Index.
func (d Deadlines) Flush(context.Context) error { return nil }
