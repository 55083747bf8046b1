package modeltest

import (
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

func reject(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	return fdbmodel.Completion{Future: f, Reject: true}
}

// wasRejected requires that others may take the future at once, unless too many pass it over,
// or it has a place that is its own.
func wasRejected(f *fdbmodel.ClaimedFuture, before, after *layout.Row) bool {
	refused := after.Attempts.Refused
	last := refused[max(0, refused.Len()-1)]
	own := after.Spec.MustBeNear || after.Spec.Held() || after.Spec.Aside
	atOnce := !own && before.Attempts.Refused.Passing(last.At) < layout.MaxRefusals
	return last.Worker == f.Token.Worker && last.Until > last.At && (after.State() == layout.Ready) == atOnce
}

// passesOver reports whether a worker has put a future back and leaves it to others.
func passesOver(row *layout.Row, w layout.WorkerID, now time.Time) bool {
	return slices.ContainsFunc(row.Attempts.Refused[:], func(r layout.Refusal) bool {
		return r.Worker == w && r.Until > layout.Millis(now) && row.Attempts.Assigned == ""
	})
}
