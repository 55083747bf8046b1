package modeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// report has a worker tell how far its futures are. One that was declared dead is
// told that, and writes nothing.
func (m *Machine) report(ctx context.Context) (change, error) {
	w := m.holder(false)
	if w == nil || len(w.held) == 0 || len(m.loose) > 0 {
		return none, nil
	}
	var all []fdbmodel.Progress
	for _, f := range w.held {
		row := m.Rows[f.ID]
		if w.gone || row != nil && row.State() == layout.Claimed && row.Claim.Token == f.Token {
			all = append(all, fdbmodel.Progress{
				Future: f, Done: int64(m.random.IntN(100)), Total: int64(m.random.IntN(100)),
				Text: fmt.Sprint("step ", len(m.log)), At: m.Clock.Now(),
			})
		}
	}
	n, err := w.WriteProgress(ctx, func() []fdbmodel.Progress {
		if w.gone {
			m.fail("a dead worker is asked for its progress")
		}
		return all
	})
	m.logf("report of %d by %s (gone %t): %d %v", len(all), w.ID(), w.gone, n, err)
	if errors.Is(err, fdbmodel.ErrReaped) && w.gone {
		return none, nil
	}
	return func(before, after *layout.Row) bool {
		if before == nil || after == nil || withoutProgress(before) != withoutProgress(after) {
			return false
		}
		return slices.ContainsFunc(all, func(p fdbmodel.Progress) bool {
			now := after.Reported()
			return p.Future.ID == after.ID && now != nil && now.Token == p.Future.Token && now.Done == p.Done &&
				now.Total == p.Total && now.Text == p.Text
		})
	}, err
}

// withoutProgress is the digest of a row apart from its progress.
func withoutProgress(r *layout.Row) string {
	without := *r
	without.Progress = nil
	return digest(&without)
}

// lifeDigest is what is compared of how a future's attempts went.
func lifeDigest(r *layout.Row) (s string) {
	if p := r.Progress; p != nil {
		s += fmt.Sprintf(" progress=%v %d/%d %s", p.Token, p.Done, p.Total, p.Text)
	}
	if r.History != nil {
		s += fmt.Sprintf(" history=%d", len(r.History.Past))
	}
	return s
}

// remembers reports whether the history of a future is that before, with what one
// change may have added.
func remembers(before, after *layout.Row) bool {
	var was, is []layout.PastAttempt
	if before.History != nil {
		was = before.History.Past
	}
	if after.History != nil {
		is = after.History.Past
	}
	most := 1
	if before.Spec.MustBeNear {
		most = 2 // it may be blocked, and fail with an input at once
	}
	for added := range most + 1 {
		gone := len(was) + added - len(is) // the oldest
		if gone == max(0, len(was)+added-layout.MaxHistory) && slices.Equal(was[gone:], is[:len(is)-added]) {
			return true
		}
	}
	return false
}

// tags returns some tags, mostly none, not in their order.
func (m *Machine) tags() []string {
	return []string{"b", "a", "b"}[:max(0, m.random.IntN(9)-5)]
}
