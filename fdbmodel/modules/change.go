package modules

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/module"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Remove removes a module with all its aliases. It returns fdbmodel.ErrInUse, and
// removes nothing, while futures that are not over use the module, unless force is
// set: then these fail as unloadable once they are run, as does a future that is
// retried later. A submit that runs at the same time either is seen by Remove
// or returns fdbmodel.ErrNotFound.
//
// It reads all futures, and returns the module as it was, fdbmodel.ErrNotFound, or
// fdbmodel.ErrTransition if the module was stored again meanwhile. An unknown commit is
// retried and harmless. If it ends before it is done, the module may be retired: it
// can't be submitted until it is stored again, and can be removed again.
func (s *Modules) Remove(ctx context.Context, id string, force bool) (layout.Module, error) {
	was, err := s.retire(ctx, id, layout.Millis(s.cluster.Now()))
	if err != nil {
		return was, err
	}
	if !force {
		if err := s.requireUnused(ctx, id); err != nil {
			_, revived := s.retire(ctx, id, 0)
			return was, errors.Join(err, revived)
		}
	}
	_, err = s.cluster.Transact(ctx, kv.Options{Tag: "futura-code"}, func(tx kv.Attempt) error {
		key := s.keys.ModuleInfo(id)
		asked, aliases := tx.Get(key), kv.Prefix(s.keys.Global(layout.SubAliases))
		value, err := asked.Wait(ctx)
		if err != nil || value == nil {
			return err // another removed it
		}
		var now layout.Module
		if err := layout.Decode(key, value, &now); err != nil {
			return err
		}
		if now.Retired == 0 {
			return fmt.Errorf("%w: module %s was stored again meanwhile", fdbmodel.ErrTransition, id)
		}
		if was.Aliases, err = s.clearAliases(ctx, tx, aliases, id); err != nil {
			return err
		}
		tx.ClearRange(kv.Prefix(s.keys.ModuleOf(id)))
		return nil
	})
	return was, err
}

// retire marks a module as one that is being removed, which no future can be
// submitted for, or with 0 takes the mark away.
func (s *Modules) retire(ctx context.Context, id string, at int64) (layout.Module, error) {
	info := layout.Module{CID: id}
	_, err := s.cluster.Transact(ctx, kv.Options{Tag: "futura-code"}, func(tx kv.Attempt) error {
		key := s.keys.ModuleInfo(id)
		value, err := tx.Get(key).Wait(ctx)
		if err == nil && value == nil {
			err = fmt.Errorf("module %s: %w", id, fdbmodel.ErrNotFound)
		}
		if err != nil {
			return err
		}
		info = layout.Module{CID: id}
		if err := layout.Decode(key, value, &info); err != nil {
			return err
		}
		info.Retired = at
		marked := layout.Encode(&info)
		tx.Set(key, marked)
		return nil
	})
	return info, err
}

// clearAliases removes the aliases that stand for a module, and returns them.
func (s *Modules) clearAliases(ctx context.Context, tx kv.Tx, r kv.Range, id string) (cleared []string, err error) {
	skip := len(r.Begin)
	for {
		page, err := tx.GetRange(r, kv.RangeOptions{}).Wait(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			var record layout.AliasRecord
			if err := layout.Decode(item.Key, item.Value, &record); err != nil {
				return nil, err
			}
			if rest := tuple.NewReader(item.Key[skip:]); record.CID == id {
				cleared = append(cleared, rest.Text())
				tx.Clear(item.Key)
			}
		}
		if !page.More {
			return cleared, nil
		}
		r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
	}
}

// requireUnused returns fdbmodel.ErrInUse if a future that is not over uses a module.
func (s *Modules) requireUnused(ctx context.Context, id string) error {
	n, example := 0, layout.ID{}
	for shard := range s.cluster.Config().Shards {
		err := s.eachRow(ctx, shard, func(row *layout.Row) {
			if row.Spec == nil || row.State().Terminal() {
				return
			}
			if module, _, ok := layout.SplitWasm(row.Spec.Function); ok && module == id {
				n, example = n+1, row.ID
			}
		})
		if err != nil {
			return err
		}
	}
	if n > 0 {
		return fmt.Errorf("%w: module %s by futures that are not over: %d, such as %s", fdbmodel.ErrInUse, id, n, example)
	}
	return nil
}

// eachRow calls fn for each future of a shard, read in pages at different versions:
// the records of one future may be of two. Records that can't be read are left out.
func (s *Modules) eachRow(ctx context.Context, shard int, fn func(*layout.Row)) error {
	prefix := s.keys.Shard(shard, layout.SubFutures)
	var row *layout.Row
	err := s.cluster.EachKey(ctx, kv.Prefix(prefix), func(item kv.KeyValue) error {
		rest := tuple.NewReader(item.Key[len(prefix):])
		id := layout.ID(rest.UUID())
		if rest.Err() != nil {
			return nil // a check names it
		}
		if row == nil || row.ID != id {
			if row != nil {
				fn(row)
			}
			row = &layout.Row{ID: id}
		}
		_ = row.Add(item, rest) // the same
		return nil
	})
	if err == nil && row != nil {
		fn(row)
	}
	return err
}

// SetAlias makes an alias stand for a stored module from then on. Futures that were
// submitted with the alias earlier keep their module. It returns ErrBadName, and
// fdbmodel.ErrNotFound for a module that is not stored. An unknown commit is retried and
// harmless.
func (s *Modules) SetAlias(ctx context.Context, alias, id string) error {
	if err := layout.CheckAlias(alias); err != nil {
		return err
	}
	named := layout.Encode(&layout.AliasRecord{CID: id, At: layout.Millis(s.cluster.Now())})
	_, err := s.cluster.Transact(ctx, kv.Options{Tag: "futura-code"}, func(tx kv.Attempt) error {
		if err := module.Require(ctx, tx, s.cluster.Keys(), id); err != nil {
			return err
		}
		key := s.keys.Alias(alias)
		// The late twin of an attempt can't undo a SetAlias that follows.
		tx.AddReadConflictKey(key)
		tx.Set(key, named)
		return nil
	})
	return err
}

// RemoveAlias removes an alias, and not the module that it stands for. Futures that
// were submitted with it keep their module. It returns fdbmodel.ErrNotFound. An unknown
// commit is retried; if the alias is gone then, the removal has committed.
func (s *Modules) RemoveAlias(ctx context.Context, alias string) error {
	_, err := s.cluster.Transact(ctx, kv.Options{Tag: "futura-code"}, func(tx kv.Attempt) error {
		key := s.keys.Alias(alias)
		value, err := tx.Get(key).Wait(ctx)
		if err == nil && value == nil && !tx.MaybeCommitted {
			err = fmt.Errorf("alias %.80s: %w", alias, fdbmodel.ErrNotFound)
		}
		if err != nil {
			return err
		}
		tx.Clear(key)
		return nil
	})
	return err
}
