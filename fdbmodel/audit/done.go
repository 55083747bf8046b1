package audit

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// maxTerminals is the maximum number of finished futures that are compared with
// the done lists at a time.
const maxTerminals = 500_000

// checkDone looks for the finished futures met so far in the done lists of all
// shards. The lists are read after the futures, so a future that is in none was
// removed since, or is missing there.
func (k *checker) checkDone(ctx context.Context) error {
	terminals := k.met.terminals
	defer clear(terminals)
	if k.repairs != nil && !k.repairs.wanted[InvariantDone] {
		return nil
	}
	for shard := range k.keys.Shards {
		if len(terminals) == 0 {
			break
		}
		err := k.cluster.EachKey(ctx, kv.Prefix(k.keys.DoneOf(shard)), func(stored kv.KeyValue) error {
			var entry layout.DoneEntry
			if layout.Decode(stored.Key, stored.Value, &entry) != nil {
				return nil
			}
			for _, id := range layout.UnpackIDs(entry.IDs) {
				if at, found := terminals[id]; found && at <= entry.At {
					delete(terminals, id)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if k.repairs != nil {
		return k.listDone(ctx, terminals)
	}
	var f findings
	for id, at := range terminals {
		row, err := k.cluster.Get(ctx, id)
		switch {
		case errors.Is(err, fdbmodel.ErrNotFound) || layout.IsUnreadable(err):
		case err != nil:
			return err
		case row.State().Terminal() && row.FinishedAt() == at:
			f.broken(InvariantDone, k.keys.Spec(id), "future %s is %v and in no done list", id, row.State()).
				apart("list it")
		}
	}
	k.take(&f)
	return nil
}
