package state

import "github.com/futura-run/futura/fdbmodel/layout"

// remember keeps a failure that another one has replaced. A retry only takes its
// finality from it.
func remember(r *layout.Row, last *layout.Exception, by EventKind) {
	if last == nil || r.Exception == nil || r.Exception == last || last.Worker == "" || by == EventRetry {
		return
	}
	past := layout.PastOf(last)
	past.Message = layout.Shorten(past.Message, layout.MaxHistoryText)
	r.History = r.History.With(past)
}

// deathOf is what the history keeps of a claim whose worker was declared dead.
func deathOf(r *layout.Row, e *Event) layout.PastAttempt {
	message := "its worker was declared dead while it held the future"
	if e.Crash {
		message = "its worker died while it ran the future"
	}
	return layout.PastAttempt{
		Attempt: r.Attempts.Failed + 1, Worker: e.Token.Worker, Kind: layout.KindLost, Message: message,
		At: layout.Millis(e.Now),
	}
}
