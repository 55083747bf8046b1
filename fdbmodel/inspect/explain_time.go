package inspect

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// textLimit says when a future ends by its time, and how; nothing for one that is over
// or may take as long as it likes.
func textLimit(row *layout.Row) string {
	state := row.State()
	if at, _ := row.Limit(); at == 0 || state.Terminal() {
		return ""
	}
	text := ""
	if at := row.Spec.ExpiresAt; at != 0 && state != layout.Claimed {
		text += " It fails as " + string(layout.KindExpired) + " if it still waits at " + timeOf(at) + "."
	}
	if at := row.Spec.Deadline; at != 0 {
		text += " It fails if it is not over by its deadline, " + timeOf(at) + "."
	}
	return text
}

func timeOf(millis int64) string { return time.UnixMilli(millis).UTC().Format(time.RFC3339) }
