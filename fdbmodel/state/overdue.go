package state

import (
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Conditions and effects of the table of transitions, for futures that must not wait
// for ever.
var (
	byWorker = condition{"by a worker", func(_ *layout.Row, e *Event) bool { return e.Token.Worker != "" }}
	isOver   = condition{"its time is over", func(r *layout.Row, e *Event) bool {
		at, _ := r.Limit()
		return at != 0 && at <= layout.Millis(e.Now)
	}}
	failOver = effect{"clear claim, blocked, assignment and due time, final exception: expired or deadline",
		applyOver}
	snoozeLater = effect{"clear claim and assignment, count snooze, set due time", func(r *layout.Row, e *Event) {
		r.Claim, r.Attempts.Assigned = nil, ""
		r.Attempts.Snoozed++
		r.Attempts.Due = max(1, layout.Millis(e.Now.Add(*e.RetryIn)))
	}}
)

func applyOver(r *layout.Row, e *Event) {
	switch e.Kind {
	case EventReap:
		recordDeath(r, e)
	case EventFail:
		countAttempt(r, e, false)
	}
	at, kind := r.Limit()
	message := "it waited longer than it may"
	if kind == layout.KindDeadline {
		message = "its deadline has passed"
	}
	message += ": " + time.UnixMilli(at).UTC().Format(time.RFC3339)
	if x := r.Exception; x != nil {
		message += fmt.Sprintf("; attempt %d failed (%s): %s", x.Attempt, x.Kind, layout.Shorten(x.Message, maxCause))
	}
	exception := endedBy(kind, message, r.Exception, e.Now)
	r.Claim, r.Blocked, r.Exception, r.Attempts.Due, r.Attempts.Assigned = nil, nil, exception, 0, ""
}

// maxCause is how much of the failure before is in the message, in bytes.
const maxCause = 1000

// hasLimit reports whether a future has limits of its time, lifted or not.
func hasLimit(r *layout.Row) bool {
	at, _ := r.Spec.LimitAt()
	return at != 0
}
