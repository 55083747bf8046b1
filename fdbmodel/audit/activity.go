package audit

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/meter"
)

// checkActivity checks that what happened can be read by minute or hour.
func (p *page) checkActivity(it *item) {
	key, err := meter.Keys(p.keys).ParseActivity(it.Raw)
	step := map[string]time.Duration{meter.Minutes: time.Minute, meter.Hours: time.Hour}[key.Step]
	if at := time.Unix(key.At, 0); err == nil && step > 0 && !at.Equal(at.Truncate(step)) {
		p.broken(InvariantActivity, it.Raw, "activity of no whole step: it begins at %v", at.UTC())
	}
	if a, readable := it.Record.(*meter.Activity); readable && a.Check() != nil {
		p.broken(InvariantActivity, it.Raw, "%v", a.Check())
	}
}
