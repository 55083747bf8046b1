package audit

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkSteps looks for the future of a step, or of a list of those that are unused.
func (p *page) checkSteps(it *item) {
	p.row(it.ID, func(r *layout.Row) {
		switch {
		case r.Spec == nil:
			p.broken(InvariantSteps, it.Raw, "there is no future %s", it.ID).by(p.follow(r, drop(it.Raw))...)
		case !r.Steps:
			p.broken(InvariantSteps, it.Raw, "future %s is not marked as one with steps", it.ID).
				by(p.follow(r, set(p.keys.State(it.ID, layout.StateSteps), layout.Mark()))...)
		}
	})
	if record, is := it.Record.(*step.Record); is && it.err == nil {
		p.checkStep(it, record)
	}
}

// checkStep checks one step, and compares its number with those of the same page.
func (p *page) checkStep(it *item, record *step.Record) {
	name := it.Text("name")
	if err := record.Check(); err != nil {
		p.broken(InvariantSteps, it.Raw, "step %s of future %s: %v", name, it.ID, err)
	}
	if err := step.CheckName(name); err != nil {
		p.broken(InvariantSteps, it.Raw, "step of future %s: %v", it.ID, err)
	}
	at := numberedStep{it.ID, record.Number}
	if other, taken := p.numbered[at]; taken {
		p.broken(InvariantSteps, it.Raw, "steps %s and %s of future %s have the number %d", other, name, it.ID,
			record.Number)
	}
	p.numbered[at] = name
	if record.ValueRef != nil {
		p.large = append(p.large, largeValue{it.ID, *record.ValueRef})
	}
}

// numberedStep is the number of a step of a future.
type numberedStep struct {
	id     layout.ID
	number int
}

// checkHasSteps looks for steps of a future that is marked as one with some.
func (p *page) checkHasSteps(r *layout.Row) {
	if !r.Steps {
		return
	}
	asked := p.tx.GetRange(kv.Prefix(step.Keys(p.keys).Steps(r.ID)), kv.RangeOptions{Limit: 1})
	p.later(func(ctx context.Context) error {
		found, err := asked.Wait(ctx)
		if err == nil && len(found.Items) == 0 {
			key := p.keys.State(r.ID, layout.StateSteps)
			p.broken(InvariantSteps, key, "future %s is marked as one with steps and has none", r.ID).by(drop(key))
		}
		return err
	})
}
