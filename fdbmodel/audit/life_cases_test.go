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
		tx.Set(p.C.Keys().Progress(p.IDs[layout.Claimed]), layout.Encode(&layout.ProgressRecord{
			Token: p.Claim, Attempt: 1, Done: -1,
		}))
	}},
	{"progress of a claim that never was", only(audit.InvariantProgress),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			later := layout.Token{Worker: p.Claim.Worker, Sequence: p.Claim.Sequence + 1}
			record := &layout.ProgressRecord{Token: later, Attempt: 1}
			tx.Set(p.C.Keys().Progress(p.IDs[layout.Claimed]), layout.Encode(record))
		}},
	{"progress of no future", only(audit.InvariantSpec), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		record := &layout.ProgressRecord{Token: p.Claim, Attempt: 1}
		tx.Set(p.C.Keys().Progress(layout.ID{9}), layout.Encode(record))
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
	{"failed and not listed", only(audit.InvariantListed), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		for _, key := range p.C.Keys().ListedAs(p.Row(t, layout.Failed)) {
			tx.Clear(key)
		}
	}},
	{"listed with a tag that it lacks", only(audit.InvariantListed),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			id, keys := p.IDs[layout.Ready], p.C.Keys()
			age := layout.AgeOf(id, &layout.Spec{})
			tx.Set(layout.Listed(keys.ListedTag(id.Shard(keys.Shards), "t"), age), nil)
		}},
	{"listed and gone", only(audit.InvariantListed), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(layout.Listed(p.C.Keys().ListedFailed(0), layout.Age{Millis: 1}), nil)
	}},
}
