package quota

import (
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// KeyLimits is the kind of key of the limits of a cluster.
const KeyLimits = "cluster limits"

// Subspaces of limits, with their parts, and of paces.
const (
	subLimits = "cluster-limits"
	subPaces  = "paces"

	settingsPart = "settings"
	ratePart     = "rate"
	usagePart    = "usage"
)

// Kinds returns the kinds of keys of limits and paces.
func Kinds() []layout.KeyKind {
	part := func(name string) []layout.Element { return []layout.Element{layout.Fixed(name)} }
	return []layout.KeyKind{
		{Name: "pace", Subspace: subPaces, Elements: []layout.Element{layout.Text("key")},
			Record: layout.RecordOf[PaceRecord], Moves: layout.LeftOut,
			Holds:  "until when the starts at a pace of the whole cluster are given out",
			Writer: "the worker that starts futures at this pace, several at a time"},
		{Name: KeyLimits, Subspace: subLimits, Elements: part(settingsPart), Record: layout.RecordOf[Limits],
			Holds: "the limits of the cluster, if there are any", Writer: "limits set"},
		{Name: "rate", Subspace: subLimits, Elements: part(ratePart), Record: layout.RecordOf[RateRecord],
			Moves: layout.LeftOut, Holds: "the unused part of the rate of submits",
			Writer: "clients that submit, a few times a second"},
		{Name: "usage", Subspace: subLimits, Elements: part(usagePart), Record: layout.RecordOf[UsageRecord],
			Moves: layout.LeftOut, Holds: "how many bytes the store holds",
			Writer: "a worker in the process that has the store open"},
	}
}

// Keys makes the keys of limits and paces.
type Keys layout.Keyspace

// Limits returns the key of the limits of the cluster.
func (k Keys) Limits() []byte { return k.limit(settingsPart) }

// Rate returns the key of what is left of the rate of submits.
func (k Keys) Rate() []byte { return k.limit(ratePart) }

// Usage returns the key of how much the store holds.
func (k Keys) Usage() []byte { return k.limit(usagePart) }

func (k Keys) limit(part string) []byte {
	return tuple.AppendString(layout.Keyspace(k).Global(subLimits), part)
}

// paces returns the prefix of the paces.
func (k Keys) paces() []byte { return layout.Keyspace(k).Global(subPaces) }

// Pace returns the key of a pace.
func (k Keys) Pace(key string) []byte { return tuple.AppendString(k.paces(), key) }
