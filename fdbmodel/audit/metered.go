package audit

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/meter"
)

// checkMetered checks that what was used can be read by day.
func (p *page) checkMetered(it *item) {
	if _, err := time.Parse(time.DateOnly, it.Text("day")); err != nil {
		p.broken(InvariantMetered, it.Raw, "use on no day: %v", err)
	}
	if m, readable := it.Record.(*meter.Metered); readable && m.Check() != nil {
		p.broken(InvariantMetered, it.Raw, "%v", m.Check())
	}
}
