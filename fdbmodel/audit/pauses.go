package audit

import (
	"github.com/futura-run/futura/fdbmodel/internal/pause"
)

// checkPause checks that what is paused could exist, so that it can be resumed.
func (p *page) checkPause(it *item) {
	if err := pause.Check(it.Text("what"), it.Text("name")); err != nil {
		p.broken(InvariantPause, it.Raw, "what is paused can't be resumed: %v", err)
	}
}
