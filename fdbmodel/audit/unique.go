package audit

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkName looks for the name of a unique future that is not over. One that gave up
// its name when it was claimed may have lost it, and so has one that runs again.
func (p *page) checkName(r *layout.Row) {
	u := r.Spec.Unique
	if u == nil || r.State().Terminal() || u.Until == layout.UntilClaim || r.Attempts.Rebuilt > 0 {
		return
	}
	key := p.keys.Unique(u.Name, r.ID)
	p.require(key, func() {
		of := p.broken(InvariantUnique, key, "future %s is %v and lacks its unique name", r.ID, r.State()).
			by(p.follow(r, set(key, layout.Encode(layout.UniqueOf(r.Spec))))...)
		named := p.tx.GetRange(kv.Prefix(p.keys.UniqueNamed(u.Name)), kv.RangeOptions{Limit: 1})
		p.later(func(ctx context.Context) error {
			page, err := named.Wait(ctx)
			if len(page.Items) > 0 {
				of.by() // another one has it
			}
			return err
		})
	})
}

// checkUnique compares the key of a name with the future that has it, and with others
// that have it.
func (p *page) checkUnique(it *item) {
	if it.err != nil {
		return
	}
	name, record := layout.UniqueName(it.Text("name")), it.Record.(*layout.UniqueRecord)
	all := p.tx.GetRange(kv.Prefix(p.keys.UniqueNamed(name)), kv.RangeOptions{Limit: 2})
	p.later(func(ctx context.Context) error {
		page, err := all.Wait(ctx)
		if err == nil && len(page.Items) > 1 && p.first(p.keys.UniqueNamed(name)) {
			p.broken(InvariantUnique, it.Raw, "future %s and others have the unique name %s", it.ID, name)
		}
		return err
	})
	p.row(it.ID, func(r *layout.Row) {
		if record.Until == layout.UntilEver || record.IsOf(r, name) && !r.State().Terminal() {
			return
		}
		if record.FreeAt == 0 {
			p.broken(InvariantUnique, it.Raw, "future %s is over, or gone, and has a unique name", it.ID).
				by(p.follow(r, p.rename(r, it.Raw, name, drop(it.Raw)))...)
		}
	})
	if record.FreeAt == 0 || record.Until == layout.UntilEver {
		return
	}
	freed := set(p.keys.UniqueDue(record.FreeAt, name, it.ID), nil)
	due := p.mayFree(record.FreeAt, name, it.ID)
	p.row(it.ID, func(r *layout.Row) {
		if !*due && (!record.IsOf(r, name) || r.State().Terminal()) {
			p.broken(InvariantUnique, it.Raw, "future %s is over, or gone, and no key frees its unique name", it.ID).
				by(p.follow(r, p.rename(r, it.Raw, name, freed))...)
		}
	})
}

// rename returns what a future needs that may have a name, and by a record that is not its own:
// that record. One that may not needs otherwise.
func (p *page) rename(r *layout.Row, key []byte, name layout.UniqueName, otherwise change) change {
	if r.Spec == nil || r.Spec.Unique == nil || r.Spec.Unique.Name != name || r.State().Terminal() {
		return otherwise
	}
	return set(key, layout.Encode(layout.UniqueOf(r.Spec)))
}

// mayFree requests whether a name is to be freed at a time.
func (p *page) mayFree(at int64, name layout.UniqueName, id layout.ID) *bool {
	due := new(bool)
	p.get(p.keys.UniqueDue(at, name, id), func(value []byte) { *due = value != nil })
	return due
}

// checkUniqueDue looks for the name that is to be freed.
func (p *page) checkUniqueDue(it *item) {
	name := layout.UniqueName(it.Text("name"))
	p.require(p.keys.Unique(name, it.ID), func() {
		p.note(InvariantUnique, it.Raw, "the unique name of future %s is to be freed, and it has none", it.ID)
	})
	p.row(it.ID, func(r *layout.Row) {
		has := r.Spec != nil && r.Spec.Unique != nil && r.Spec.Unique.Name == name
		if has && !r.State().Terminal() && r.Attempts.Rebuilt == 0 {
			p.broken(InvariantUnique, it.Raw, "future %s is %v, and its unique name is to be freed", it.ID, r.State()).
				by(p.follow(r, drop(it.Raw))...)
		}
	})
}
