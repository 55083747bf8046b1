package audit

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkLife checks what is kept of the attempts of a future.
func (p *page) checkLife(r *layout.Row) {
	if g := r.Progress; g != nil {
		key := p.keys.Progress(r.ID)
		switch {
		case g.Check() != nil:
			p.broken(InvariantProgress, key, "future %s: %v", r.ID, g.Check())
		case g.Worker == "" || r.Claim != nil && g.Worker == r.Claim.Worker && g.Sequence > r.Claim.Sequence:
			p.broken(InvariantProgress, key, "future %s has progress of claim %s, which it was never in", r.ID, g.Token)
		}
	}
	if h := r.History; h != nil {
		sound := len(h.Past) > 0 && len(h.Past) <= layout.MaxHistory
		sound = sound && !slices.ContainsFunc(h.Past, func(a layout.PastAttempt) bool {
			return a.Attempt < 1 || a.Worker == "" || a.Kind == "" || len(a.Message) > layout.MaxHistoryText
		})
		if !sound {
			p.broken(InvariantHistory, p.keys.State(r.ID, layout.StateHistory), "future %s has a wrong history: %+v", r.ID,
				h.Past)
		}
	}
}
