package modeltest

import (
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// submitIn submits futures, at times in a transaction of the caller, part by part.
func (m *Machine) submitIn(ctx context.Context, subs []fdbmodel.Submission) ([]fdbmodel.Submitted, error) {
	large := slices.ContainsFunc(subs, func(s fdbmodel.Submission) bool { return len(s.Args) > layout.MaxArgsInKey })
	if large || m.random.IntN(3) > 0 {
		return m.C.Submit(ctx, subs)
	}
	drawn, err := m.C.DrawIDs(len(subs))
	m.require(err)
	for i := range subs {
		if subs[i].ID.IsZero() { // another attempt submits the same ones
			subs[i].ID = drawn[i]
		}
	}
	parts := slices.Collect(slices.Chunk(subs, 1+m.random.IntN(len(subs))))
	m.logf("in %d parts", len(parts))
	var answers []fdbmodel.Submitted
	result, err := m.C.Transact(ctx, kv.Options{}, func(tx kv.Attempt) error {
		answers = nil
		for _, part := range parts {
			some, err := m.C.SubmitTx(ctx, tx, part)
			if err != nil {
				return err
			}
			answers = append(answers, some...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.C.Wake(ctx, result.Version, answers)
	return answers, nil
}
