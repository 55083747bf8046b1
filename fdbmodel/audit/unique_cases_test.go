package audit_test

import (
	"testing"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// uniqueKey returns the key of the name of a future, and the record there.
func uniqueKey(t *testing.T, p *modeltest.Population, id layout.ID) ([]byte, *layout.UniqueRecord) {
	spec := p.Get(t, id).Spec
	return p.C.Keys().Unique(spec.Unique.Name, id), layout.UniqueOf(spec)
}

// uniqueDue returns the key by which the name of a future is freed.
func uniqueDue(t *testing.T, p *modeltest.Population, id layout.ID) []byte {
	spec := p.Get(t, id).Spec
	return p.C.Keys().UniqueDue(spec.FreeAt(), spec.Unique.Name, id)
}

// breakUnique are writes into the names of unique futures, and into limits.
var breakUnique = []breakage{
	{"unique name gone", only(audit.InvariantUnique), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		key, _ := uniqueKey(t, p, p.Middle)
		tx.Clear(key)
	}},
	{"unique name of two", []audit.Invariant{audit.InvariantUnique, audit.InvariantUnique},
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			_, record := uniqueKey(t, p, p.Middle)
			name := p.Get(t, p.Middle).Spec.Unique.Name
			tx.Set(p.C.Keys().Unique(name, p.IDs[layout.Realized]), layout.Encode(record))
		}},
	{"unique name with another period", only(audit.InvariantUnique),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			key, record := uniqueKey(t, p, p.Middle)
			record.FreeAt = 7
			tx.Set(key, layout.Encode(record))
		}},
	{"unique name of a future that is gone", only(audit.InvariantUnique),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Unique("x", layout.ID{15: 3}), layout.Encode(&layout.UniqueRecord{}))
		}},
	{"unique name of one that is over", only(audit.InvariantUnique),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			row := p.Get(t, p.IDs[layout.Failed])
			row.Spec.Unique.For = 0
			tx.Set(p.C.Keys().Spec(row.ID), layout.Encode(row.Spec))
			tx.Set(p.C.Keys().Unique(row.Spec.Unique.Name, row.ID), layout.Encode(layout.UniqueOf(row.Spec)))
			tx.Clear(uniqueDue(t, p, row.ID))
		}},
	{"use below 0", only(audit.InvariantMetered), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		key := meter.MeteredKey{Day: "2026-01-31", Kind: meter.Worker, Name: "a"}
		tx.Set(meter.Keys(p.C.Keys()).Metered(key), layout.Encode(&meter.Metered{Items: -1}))
	}},
	{"use on no day", only(audit.InvariantMetered), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		key := meter.MeteredKey{Day: "2026-02-30", Kind: meter.Worker, Name: "a"}
		tx.Set(meter.Keys(p.C.Keys()).Metered(key), layout.Encode(&meter.Metered{Items: 1}))
	}},
	{"activity below 0", only(audit.InvariantActivity), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(meter.Keys(p.C.Keys()).Activity(meter.ActivityKey{Step: meter.Hours, At: 3600}),
			layout.Encode(&meter.Activity{Pairs: []meter.Pair{{Function: "go:f", Runs: []int64{-1}}}}))
	}},
	{"activity of a part of an hour", only(audit.InvariantActivity),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			key := meter.ActivityKey{Step: meter.Hours, At: 60}
			tx.Set(meter.Keys(p.C.Keys()).Activity(key), layout.Encode(&meter.Activity{}))
		}},
	{"limits that can't be", only(audit.InvariantConfig), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(quota.Keys(p.C.Keys()).Limits(), layout.Encode(&quota.Limits{Pending: -1}))
	}},
	{"unique name that nobody frees", only(audit.InvariantUnique),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(uniqueDue(t, p, p.IDs[layout.Failed]))
		}},
	{"unique name of one that waits is freed", only(audit.InvariantUnique),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().UniqueDue(9, p.Get(t, p.Middle).Spec.Unique.Name, p.Middle), nil)
		}},
}
