package audit

import (
	"bytes"
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkListed looks for the keys by which lists find a future.
func (p *page) checkListed(r *layout.Row) {
	for _, key := range p.keys.ListedAs(r) {
		p.require(key, func() {
			p.broken(InvariantListed, key, "future %s is %v with the tags %q and not listed here", r.ID, r.State(), r.Spec.Tags).
				by(p.follow(r, set(key, nil))...)
		})
	}
}

// checkListedKey compares a key by which lists find a future with that.
func (p *page) checkListedKey(it *item) {
	p.row(it.ID, func(r *layout.Row) {
		if r.Spec == nil {
			p.broken(InvariantListed, it.Raw, "future %s does not exist and is listed", it.ID).by(p.follow(r, drop(it.Raw))...)
			return
		}
		if !slices.ContainsFunc(p.keys.ListedAs(r), func(key []byte) bool { return bytes.Equal(key, it.Raw) }) {
			p.broken(InvariantListed, it.Raw, "future %s is %v with the tags %q and listed here", it.ID, r.State(), r.Spec.Tags).
				by(p.follow(r, drop(it.Raw))...)
		}
	})
}
