package audit_test

import (
	"testing"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// breakSteps are writes into the steps of a population: the claimed future has two.
var breakSteps = []breakage{
	{"step of no future", only(audit.InvariantSteps), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(step.Keys(p.C.Keys()).Step(layout.ID{9}, "s"), layout.Encode(&step.Record{Number: 1, Attempt: 1}))
	}},
	{"unused steps of no future", only(audit.InvariantSteps), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(step.Keys(p.C.Keys()).Unused(layout.ID{9}), layout.Encode(&step.UnusedRecord{Attempt: 1}))
	}},
	{"step of a future without a mark", only(audit.InvariantSteps),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(step.Keys(p.C.Keys()).Step(p.IDs[layout.Ready], "s"),
				layout.Encode(&step.Record{Number: 1, Attempt: 1}))
		}},
	{"mark of steps without any", only(audit.InvariantSteps), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateSteps), layout.Mark())
	}},
	{"step with the number of another", only(audit.InvariantSteps),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(step.Keys(p.C.Keys()).Step(p.IDs[layout.Claimed], "other"),
				layout.Encode(&step.Record{Number: 1, Attempt: 1}))
		}},
	{"step without a number", only(audit.InvariantSteps), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(step.Keys(p.C.Keys()).Step(p.IDs[layout.Claimed], "other"), layout.Encode(&step.Record{Attempt: 1}))
	}},
	{"step with a name that can't be", only(audit.InvariantSteps),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(step.Keys(p.C.Keys()).Step(p.IDs[layout.Claimed], "\x01"),
				layout.Encode(&step.Record{Number: 3, Attempt: 1}))
		}},
	{"piece of a step gone", only(audit.InvariantChunks), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Chunk(p.IDs[layout.Claimed], p.Step, 1))
	}},
}
