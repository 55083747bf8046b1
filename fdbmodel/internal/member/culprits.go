package member

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// suspectPage is the most records of runs that are read of a dead worker: those
// beyond it don't count.
const suspectPage = 4096

// Culprits returns the futures that may have killed a dead worker, with the
// sequences of their claims: of those that it had recorded before it ran them, the ones
// with the most deaths before.
func Culprits(ctx context.Context, tx kv.Reader, keys layout.Keyspace, worker layout.WorkerID,
) (map[layout.ID]int64, error) {
	prefix := keys.Worker(worker, layout.WorkerSuspect)
	page, err := tx.GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: suspectPage}).Wait(ctx)
	if err != nil {
		return nil, err
	}
	culprits, most := map[layout.ID]int64{}, 0
	for _, item := range page.Items {
		rest := tuple.NewReader(item.Key[len(prefix):])
		id := layout.ID(rest.UUID())
		var begun layout.SuspectRecord
		if rest.Err() != nil || layout.Decode(item.Key, item.Value, &begun) != nil {
			continue // an audit reports it
		}
		if begun.Deaths > most {
			clear(culprits)
			most = begun.Deaths
		}
		if begun.Deaths == most {
			culprits[id] = begun.Sequence
		}
	}
	return culprits, nil
}

// Absolve removes the record of a run under a claim, and leaves that of a later claim.
func Absolve(ctx context.Context, tx kv.Tx, key []byte, sequence int64) error {
	value, err := tx.Get(key).Wait(ctx)
	if err != nil || value == nil {
		return err
	}
	var begun layout.SuspectRecord
	if err := layout.Decode(key, value, &begun); err == nil && begun.Sequence != sequence {
		return nil
	}
	tx.Clear(key)
	return nil
}
