package audit_test

import (
	"strings"
	"testing"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// breakLife are writes into what is kept of attempts.
var breakLife = []breakage{
	{"progress below 0", only(audit.InvariantProgress), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Stage(p.IDs[layout.Claimed]), layout.Encode(&layout.ProgressRecord{
			Token: p.Claim, Attempt: 1, Done: -1,
		}))
	}},
	{"progress of a claim that never was", only(audit.InvariantProgress),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			later := layout.Token{Worker: p.Claim.Worker, Sequence: p.Claim.Sequence + 1}
			record := &layout.ProgressRecord{Token: later, Attempt: 1}
			tx.Set(p.C.Keys().Stage(p.IDs[layout.Claimed]), layout.Encode(record))
		}},
	{"progress of no future", only(audit.InvariantSpec), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		record := &layout.ProgressRecord{Token: p.Claim, Attempt: 1}
		tx.Set(p.C.Keys().Stage(layout.ID{9}), layout.Encode(record))
	}},
	{"empty history", only(audit.InvariantHistory), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Failed], layout.StateHistory), layout.Encode(&layout.HistoryRecord{}))
	}},
	{"long text in a history", only(audit.InvariantHistory), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		var h *layout.HistoryRecord
		h = h.With(layout.PastAttempt{Attempt: 1, Worker: "w", Kind: layout.KindError,
			Message: strings.Repeat("x", layout.MaxHistoryText+1)})
		tx.Set(p.C.Keys().State(p.IDs[layout.Failed], layout.StateHistory), layout.Encode(h))
	}},
}
