package modeltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// put makes a future that has its result: in its record, in chunks, or as an object of
// a worker.
func (m *Machine) put(ctx context.Context) (change, error) {
	var v results.Value
	if m.random.IntN(2) == 0 {
		v.Key = fmt.Sprint("put", m.random.IntN(4))
		v.ID = m.C.IDOf(v.Key)
	} else {
		drawn, err := m.C.DrawIDs(1)
		m.require(err)
		v.ID = drawn[0]
	}
	w := m.worker(false)
	gone := w != nil && w.gone
	if w != nil && m.random.IntN(2) == 0 {
		v.Object, v.Size, v.Holder = fmt.Sprint("object", m.random.IntN(2)), 7, w.ID()
	} else {
		v.Bytes = make([]byte, []int{3, 4, 5000}[m.random.IntN(3)])
	}
	existed, err := results.Of(m.C).Put(ctx, v)
	m.logf("put %s %q of %d by %q (gone %t): %t %v", v.ID, v.Object, len(v.Bytes), v.Holder, gone, existed, err)
	if v.Object != "" && gone && err == nil && !existed {
		m.fail("a dead worker holds a value that was put")
	}
	if errors.Is(err, results.ErrHolderGone) && gone || errors.Is(err, fdbmodel.ErrIDInUse) && v.Key != "" {
		err = nil
	}
	return func(before, after *layout.Row) bool {
		return before == nil && after.ID == v.ID && after.State() == layout.Realized && after.Spec.IsPut() &&
			after.Object() == v.Object
	}, err
}
