package audit_test

import (
	"testing"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/internal/fork"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// breakForks are writes into the forks of a population: the failed future has one.
var breakForks = []breakage{
	{"fork that is not listed", only(audit.InvariantForks), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(fork.Keys(p.C.Keys()).Fork(p.IDs[layout.Failed], p.Fork))
	}},
	{"fork of another future", only(audit.InvariantForks), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(fork.Keys(p.C.Keys()).Fork(p.IDs[layout.Failed], p.IDs[layout.Ready]), layout.Mark())
	}},
	{"fork that is gone", only(audit.InvariantForks), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(fork.Keys(p.C.Keys()).Fork(p.IDs[layout.Failed], layout.ID{9}), layout.Mark())
	}},
	{"fork of no future", only(audit.InvariantForks), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		keys := fork.Keys(p.C.Keys())
		tx.Clear(keys.Fork(p.IDs[layout.Failed], p.Fork))
		tx.Set(keys.Fork(layout.ID{9}, p.Fork), layout.Mark())
		spec := layout.Spec{Function: "go:f", Codec: layout.CodecRaw, Queue: "default", ArgsSize: 10, SubmittedAt: 1,
			Args: make([]byte, 10), Fork: &layout.Fork{From: layout.ID{9}}}
		tx.Set(p.C.Keys().Spec(p.Fork), layout.Encode(&spec))
	}},
	{"forks without a mark", only(audit.InvariantForks), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().State(p.IDs[layout.Failed], layout.StateForks))
	}},
}
