package audit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// takeInstead submits a future that waits for one input, and has it take another one.
func takeInstead(t *testing.T, p *modeltest.Population, tx kv.Tx, input layout.ID) layout.ID {
	submitted, err := p.C.Submit(context.Background(), []fdbmodel.Submission{
		{Spec: layout.Spec{Function: "go:f"}, Inputs: p.Inputs[:1]}})
	require.NoError(t, err)
	id := submitted[0].ID
	row := p.Get(t, id)
	row.Spec.Inputs = layout.PackIDs([]layout.ID{input})
	tx.Set(p.C.Keys().Spec(id), layout.Encode(row.Spec))
	tx.Set(p.C.Keys().Dependant(input, id), layout.Mark())
	tx.Set(p.C.Keys().HasDependants(input), layout.Mark())
	return id
}

// breakEdges are writes into what connects futures.
var breakEdges = []breakage{
	{"blocked by nothing", []audit.Invariant{audit.InvariantBlocked, audit.InvariantEdge},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(p.C.Keys().Input(p.IDs[layout.Blocked], p.Inputs[0]))
		}},
	{"blocked record gone",
		[]audit.Invariant{audit.InvariantCounts, audit.InvariantCounts, audit.InvariantEdge, layout.PlaceReady},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(p.C.Keys().State(p.IDs[layout.Blocked], layout.StateBlocked))
		}},
	{"blocked and claimed", only(audit.InvariantBlocked), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Claimed], layout.StateBlocked), layout.Encode(&layout.BlockedRecord{}))
	}},
	{"linked by nobody", only(audit.InvariantBlocked), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Blocked], layout.StateBlocked), layout.Encode(&layout.BlockedRecord{Linked: 1}))
	}},
	{"linked to more than there are", only(audit.InvariantBlocked),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			record := &layout.BlockedRecord{Linked: len(p.Inputs) + 1}
			tx.Set(p.C.Keys().State(p.IDs[layout.Blocked], layout.StateBlocked), layout.Encode(record))
		}},
	{"an input that does not know", []audit.Invariant{audit.InvariantEdge, audit.InvariantEdge},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(p.C.Keys().Dependant(p.Inputs[0], p.IDs[layout.Blocked]))
		}},
	{"a realized input that may go", only(audit.InvariantEdge), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Dependant(p.Inputs[1], p.IDs[layout.Blocked]))
	}},
	{"waits for a realized input", only(audit.InvariantEdge), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Input(p.IDs[layout.Blocked], p.Inputs[1]), layout.Mark())
	}},
	{"waits for a stranger", []audit.Invariant{audit.InvariantEdge, audit.InvariantEdge},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Input(p.IDs[layout.Blocked], p.IDs[layout.Ready]), layout.Mark())
		}},
	{"claimed and waits for an input", []audit.Invariant{audit.InvariantEdge, audit.InvariantEdge},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Input(p.IDs[layout.Claimed], p.IDs[layout.Ready]), layout.Mark())
		}},
	{"few inputs that are all over", only(audit.InvariantBlocked), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		takeInstead(t, p, tx, p.Inputs[1])
	}},
	{"one of few inputs has failed", only(audit.InvariantEdge), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		takeInstead(t, p, tx, p.IDs[layout.Failed])
	}},
	{"few inputs that are listed", only(audit.InvariantEdge), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Input(takeInstead(t, p, tx, p.Inputs[0]), p.Inputs[0]), layout.Mark())
	}},
	{"used by one that is over", only(audit.InvariantEdge), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Dependant(p.Inputs[0], p.IDs[layout.Failed]), layout.Mark())
	}},
	{"used by one that does not exist", only(audit.InvariantEdge),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Dependant(p.Inputs[0], layout.ID{9}), layout.Mark())
		}},
	{"used and not marked", only(audit.InvariantEdge), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().HasDependants(p.Inputs[0]))
	}},
	{"pins without names", only(audit.InvariantPins), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		pins := &layout.PinsRecord{Holders: []string{"a", ""}, Sessions: []string{"", ""}}
		tx.Set(p.C.Keys().State(p.IDs[layout.Realized], layout.StatePins), layout.Encode(pins))
	}},
	{"pins in disorder", only(audit.InvariantPins), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		pins := &layout.PinsRecord{Holders: []string{"b", "a"}, Sessions: []string{"", ""}}
		tx.Set(p.C.Keys().State(p.IDs[layout.Realized], layout.StatePins), layout.Encode(pins))
	}},
	{"copy of another result", only(audit.InvariantCopy), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		key := tuple.AppendStamp(p.C.Keys().CopiesOf(p.IDs[layout.Realized]), [10]byte{1}, 0)
		tx.Set(key, layout.Encode(&layout.CopyRecord{Worker: p.Worker.ID(), Object: "h"}))
	}},
	{"copy that can't be read", only(audit.InvariantRecord), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(tuple.AppendStamp(p.C.Keys().CopiesOf(p.IDs[layout.Realized]), [10]byte{1}, 0), []byte{1, 0xc1})
	}},
	{"copy of nothing", only(audit.InvariantCopy), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		key := tuple.AppendStamp(p.C.Keys().CopiesOf(layout.ID{9}), [10]byte{1}, 0)
		tx.Set(key, layout.Encode(&layout.CopyRecord{Worker: p.Worker.ID(), Object: "h"}))
	}},
	{"resolving one that does not exist", only(audit.InvariantEdge),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Resolve(layout.ID{9}), layout.Encode(&layout.ResolveRecord{}))
		}},
}
