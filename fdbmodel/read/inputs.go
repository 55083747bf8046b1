package read

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Inputs returns the inputs of futures, by their specs, without the inputs' own specs. Each one is read once. For a
// future of which one can't be read it returns none.
func Inputs(ctx context.Context, tx kv.Reader, k layout.Keyspace, of []*layout.Spec) ([][]layout.Row, error) {
	at := map[layout.ID]int{}
	var ids []layout.ID
	for _, spec := range of {
		for _, id := range layout.UnpackIDs(spec.Inputs) {
			if _, known := at[id]; !known {
				at[id], ids = len(ids), append(ids, id)
			}
		}
	}
	rows, known := make([]layout.Row, len(ids)), make([]bool, len(ids))
	for i, p := range Rows(tx, k, ids, k.StateOf) {
		row, found, err := p.Wait(ctx)
		if err != nil && !layout.IsUnreadable(err) {
			return nil, err
		}
		rows[i], known[i] = row, err == nil && found
	}
	inputs := make([][]layout.Row, len(of))
	for i, spec := range of {
		for _, id := range layout.UnpackIDs(spec.Inputs) {
			if !known[at[id]] {
				inputs[i] = nil
				break
			}
			inputs[i] = append(inputs[i], rows[at[id]])
		}
	}
	return inputs, nil
}
