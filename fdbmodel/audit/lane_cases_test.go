package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

var (
	narrow = layout.Lane{Kind: "narrow", Key: "a"}
	turnsA = layout.Lane{Kind: "turns", Key: "a"}
	turnsB = layout.Lane{Kind: "turns", Key: "b"}
	rated  = layout.Lane{Kind: "rated", Key: "a"}
)

func setLane(p *modeltest.Population, tx kv.Tx, lane layout.Lane, r layout.LaneRecord) {
	tx.Set(p.C.Keys().Lane(lane), layout.Encode(&r))
}

// breakLanes are writes into lanes.
var breakLanes = []breakage{
	{"place in line gone", only(layout.PlaceLine), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		row := p.Get(t, p.Lanes[1])
		tx.Clear(p.C.Keys().Line(&row))
	}},
	{"in line for nothing", only(layout.PlaceLine), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		row := p.Get(t, p.Lanes[1])
		row.Line.Order++
		tx.Set(p.C.Keys().Line(&row), layout.Encode(&layout.LineEntry{ID: layout.ID{15: 1}}))
	}},
	{"in line where another is", []audit.Invariant{audit.InvariantLane, layout.PlaceLine},
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			row := p.Get(t, p.Lanes[1])
			tx.Set(p.C.Keys().Line(&row), layout.Encode(&layout.LineEntry{ID: layout.ID{15: 1}}))
		}},
	{"in line and in the pool", only(layout.PlaceReady), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.Lanes[1], p.Get(t, p.Lanes[1]).Spec), []byte("go:f"))
	}},
	{"slot leaked", only(audit.InvariantLane), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		setLane(p, tx, narrow, layout.LaneRecord{Open: 2, Lined: true})
	}},
	{"slot forgotten, and room", []audit.Invariant{audit.InvariantLane, audit.InvariantLane},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			setLane(p, tx, narrow, layout.LaneRecord{Lined: true})
		}},
	{"line forgotten", only(audit.InvariantLane), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		setLane(p, tx, narrow, layout.LaneRecord{Open: 1})
	}},
	{"slot below zero", []audit.Invariant{audit.InvariantLane, audit.InvariantLane},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			setLane(p, tx, layout.Lane{Kind: "narrow", Key: "c"}, layout.LaneRecord{Open: -1})
		}},
	{"lane gone", []audit.Invariant{audit.InvariantLane, audit.InvariantLane},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) { tx.Clear(p.C.Keys().Lane(narrow)) }},
	{"nobody looks when it is due", only(audit.InvariantLane), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.ClearRange(kv.Prefix(p.C.Keys().LanesDueOf(layout.ShardOf(rated.Key, 16))))
	}},
	{"due at another time", only(audit.InvariantLane), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().LaneDue(narrow, 7), nil)
	}},
	{"turn gone", only(audit.InvariantLane), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.ClearRange(kv.Prefix(p.C.Keys().LaneTurnsOf(turnsB.Kind)))
	}},
	{"total wrong", only(audit.InvariantLane), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().LaneTotal(turnsB.Kind), layout.Encode(&layout.LaneTotal{Open: 2, Lined: true}))
	}},
	{"total gone", only(audit.InvariantLane), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().LaneTotal(turnsB.Kind))
	}},
	{"slot kept by a ready one", only(audit.InvariantLane), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateAttempts), layout.Encode(&layout.Attempts{Slot: true}))
	}},
	{"in line without a lane", []audit.Invariant{audit.InvariantLane, layout.PlaceLine, layout.PlaceReady},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateLine), layout.EncodeStamped(&layout.LineRecord{Order: 1}))
		}},
}

// TestLostTurnBesideAnother finds a lane that has lost its turn where another one has a turn that it does not wait for.
func TestLostTurnBesideAnother(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	p.Write(t, func(tx kv.Tx) {
		page, err := tx.GetRange(kv.Prefix(p.C.Keys().LaneTurnsOf(turnsB.Kind)), kv.RangeOptions{}).Wait(t.Context())
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		tx.Set(page.Items[0].Key, []byte("a"))
	})
	report := p.Check(t)
	require.Len(t, report.Notes, 1)
	require.Len(t, report.Problems, 1)
	require.Contains(t, report.Problems[0].Text, "1 lanes of kind turns wait for their turn, and have none")
	require.Empty(t, repair(t, p.C).Problems)
}

// TestATotalIsNotCountedWithoutItsLanes repairs lanes beside a kind of which a record can't be read: its total stays,
// which would admit too many if it said less.
func TestATotalIsNotCountedWithoutItsLanes(t *testing.T) {
	t.Parallel()
	for name, unreadable := range map[string]func(layout.Keyspace) []byte{
		"a lane":       func(keys layout.Keyspace) []byte { return keys.Lane(turnsA) },
		"the settings": func(keys layout.Keyspace) []byte { return keys.LaneKind(turnsA.Kind) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := modeltest.Populate(t)
			total := func() (r layout.LaneTotal) {
				p.Write(t, func(tx kv.Tx) {
					value, err := tx.Get(p.C.Keys().LaneTotal(turnsA.Kind)).Wait(t.Context())
					require.NoError(t, err)
					require.NoError(t, layout.Decode(nil, value, &r))
				})
				return r
			}
			before := total()
			require.Equal(t, 1, before.Open)
			p.Write(t, func(tx kv.Tx) {
				tx.Set(unreadable(p.C.Keys()), []byte{layout.RecordVersion + 1})
				setLane(p, tx, narrow, layout.LaneRecord{Open: 2, Lined: true})
			})
			found := p.Check(t)
			require.Len(t, found.Problems, 1)
			did, err := audit.Repair(t.Context(), p.C, found, audit.Options{})
			require.NoError(t, err)
			require.Equal(t, map[audit.Invariant]int64{audit.InvariantLane: 1}, did.Repaired)
			require.NotEmpty(t, did.Unsettled)
			require.Equal(t, before, total())
		})
	}
}
