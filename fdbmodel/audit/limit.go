package audit

import "github.com/futura-run/futura/fdbmodel/layout"

// checkLimit looks for the key by which a janitor finds a future that must not wait for
// ever.
func (p *page) checkLimit(r *layout.Row) {
	at := r.WaitsUntil()
	if at == 0 {
		return
	}
	key := p.keys.Limit(r.ID, at)
	p.require(key, func() {
		p.broken(InvariantLimit, key, "future %s is %v and ends at %d, and has no key there", r.ID, r.State(), at).
			by(p.follow(r, set(key, layout.Mark()))...)
	})
}

// checkLimitKey compares such a key with its future, which may run.
func (p *page) checkLimitKey(it *item) {
	p.row(it.ID, func(r *layout.Row) {
		at, _ := r.Limit()
		if r.Spec == nil || r.State().Terminal() || at != it.Int("ends_ms") {
			p.broken(InvariantLimit, it.Raw, "future %s does not wait until then", it.ID).by(p.follow(r, drop(it.Raw))...)
		}
	})
}
