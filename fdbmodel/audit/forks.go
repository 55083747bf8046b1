package audit

import (
	"github.com/futura-run/futura/fdbmodel/internal/fork"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkForkKey looks for the two futures of a key that leads to a fork.
func (p *page) checkForkKey(it *item) {
	source, id := it.Future(fork.Source), it.ID
	is := false
	p.row(id, func(r *layout.Row) {
		if is = r.Spec != nil && r.Spec.Fork != nil && r.Spec.Fork.From == source; !is {
			p.broken(InvariantForks, it.Raw, "future %s is no fork of %s", id, source).by(p.follow(r, drop(it.Raw))...)
		}
	})
	p.row(source, func(r *layout.Row) {
		switch {
		case !is:
		case r.Spec == nil:
			p.broken(InvariantForks, it.Raw, "there is no future %s, whose fork is %s", source, id).
				by(p.follow(r, drop(it.Raw))...)
		case !r.Forks:
			p.broken(InvariantForks, it.Raw, "future %s is not marked as one with forks", source).
				by(p.follow(r, set(p.keys.State(source, layout.StateForks), layout.Mark()))...)
		}
	})
}

// checkFork looks for the key that leads to a fork, as long as the future that it was made from is kept. Another
// future that has its id since was submitted later.
func (p *page) checkFork(r *layout.Row) {
	of := r.Spec.Fork
	if of == nil {
		return
	}
	key := fork.Keys(p.keys).Fork(of.From, r.ID)
	p.row(of.From, func(source *layout.Row) {
		if source.Spec == nil || source.Spec.SubmittedAt > r.Spec.SubmittedAt {
			return
		}
		p.require(key, func() {
			p.broken(InvariantForks, key, "fork %s is not listed with future %s", r.ID, of.From).
				by(p.follow(r, set(key, layout.Mark()))...)
		})
	})
}
