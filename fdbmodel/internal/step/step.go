// Package step has the keys and records of steps: what functions have recorded of their runs.
package step

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Subspace has the keys of steps. They are no part of the rows of futures, so that reads and
// scans of those do not meet them.
const Subspace = "steps"

// Kinds of keys of steps.
const (
	KeyStep   = "step"
	KeyUnused = "unused steps"
)

// Parts of the keys of steps.
const (
	stepPart   = "step"
	unusedPart = "unused"
)

// Limits of steps.
const (
	// Max is the maximum number of steps of a future.
	Max = 10_000
	// MaxName is the maximum length of the name of a step, in bytes.
	MaxName = 200
	// MaxUnused is how many unused steps an UnusedRecord names.
	MaxUnused = 100
)

// Record is what a step of a future returned, as the holder of a claim has recorded it.
type Record struct {
	layout.Token // of the claim that it ran in
	// Number counts the steps of the future in the order in which they were recorded, from 1.
	Number int `msgpack:"n" json:"number"`
	// Attempt is the number of the attempt that it ran in.
	Attempt int    `msgpack:"a" json:"attempt"`
	Codec   string `msgpack:"c,omitempty" json:"codec,omitempty"`
	Value   []byte `msgpack:"v,omitempty" json:"-"`
	// ValueRef is set for a value that is too large for the record.
	ValueRef *layout.ChunkRef `msgpack:"vr,omitempty" json:"-"`
	Size     int64            `msgpack:"z,omitempty" json:"size"` // of the value, in bytes
	// Wake is when a sleep ends, 0 for other steps.
	Wake      int64 `msgpack:"k,omitempty" json:"wake_ms,omitempty"`
	StartedAt int64 `msgpack:"b,omitempty" json:"started_at_ms"`
	At        int64 `msgpack:"t" json:"at_ms"`
	// Origin says of a step that no claim of the future has recorded where it comes from.
	Origin string `msgpack:"o,omitempty" json:"origin,omitempty"`
}

// Origins of the steps that a fork begins with.
const (
	OriginCopied = "copied" // from the future that it is a fork of
	OriginSet    = "set"    // given by the one that made the fork, in place of what ran
)

// Check returns ErrBadRecord for a step that can't be.
func (r *Record) Check() error {
	if r.Number < 1 || r.Number > Max || r.Attempt < 1 || r.ValueRef != nil && (len(r.Value) > 0 || r.Wake != 0) {
		return fmt.Errorf("%w: step %d of attempt %d with %d bytes", layout.ErrBadRecord, r.Number, r.Attempt,
			len(r.Value))
	}
	return nil
}

// UnusedRecord names the recorded steps that the last attempt which returned did not ask for: up
// to MaxUnused of them, in the order of their names.
type UnusedRecord struct {
	Attempt int      `msgpack:"a" json:"attempt"`
	Names   []string `msgpack:"s,omitempty" json:"names,omitempty"`
	// All is set if it asked for none.
	All bool `msgpack:"l,omitempty" json:"all,omitempty"`
}

// Kinds returns the kinds of keys of steps.
func Kinds() []layout.KeyKind {
	future := layout.FutureID("id").Home()
	return []layout.KeyKind{
		{Name: KeyStep, Subspace: Subspace, Sharded: true,
			Elements: []layout.Element{future, layout.Fixed(stepPart), layout.Text("name")},
			Record:   layout.RecordOf[Record], Holds: "what a step of a future returned, with the token of its claim",
			Writer: "the holder of the claim"},
		{Name: KeyUnused, Subspace: Subspace, Sharded: true,
			Elements: []layout.Element{future, layout.Fixed(unusedPart)}, Record: layout.RecordOf[UnusedRecord],
			Holds: "the steps of a future that its last attempt did not ask for", Writer: "the end of the attempt"},
	}
}

// Keys makes the keys of steps.
type Keys layout.Keyspace

// Of returns the prefix of all keys of the steps of a future.
func (k Keys) Of(id layout.ID) []byte {
	keys := layout.Keyspace(k)
	return tuple.AppendUUID(keys.Shard(id.Shard(keys.Shards), Subspace), id)
}

// Steps returns the prefix of the steps of a future.
func (k Keys) Steps(id layout.ID) []byte { return tuple.AppendString(k.Of(id), stepPart) }

// Step returns the key of a step.
func (k Keys) Step(id layout.ID, name string) []byte { return tuple.AppendString(k.Steps(id), name) }

// Unused returns the key of the steps that are unused.
func (k Keys) Unused(id layout.ID) []byte { return tuple.AppendString(k.Of(id), unusedPart) }

// Name returns the name of a step from its key.
func (k Keys) Name(key []byte, id layout.ID) (string, error) {
	rest := tuple.NewReader(key[len(k.Steps(id)):])
	name := rest.Text()
	return name, rest.Done()
}

// Named is a step with its name.
type Named struct {
	Name string
	Record
}

// All returns the steps of a future in the order in which they were recorded, as one transaction sees them.
func All(ctx context.Context, tx kv.Reader, k Keys, id layout.ID) (all []Named, err error) {
	for r := kv.Prefix(k.Steps(id)); ; {
		page, err := tx.GetRange(r, kv.RangeOptions{Limit: pageOfAll}).Wait(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			one := Named{}
			if one.Name, err = k.Name(item.Key, id); err != nil {
				return nil, fmt.Errorf("step of future %s: %w: %w", id, layout.ErrBadRecord, err)
			}
			if err := layout.Decode(item.Key, item.Value, &one.Record); err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		if !page.More {
			slices.SortFunc(all, func(a, b Named) int { return a.Number - b.Number })
			return all, nil
		}
		r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
	}
}

// pageOfAll is how many steps All reads at a time.
const pageOfAll = 500

// CheckName returns ErrBadName unless name may name a step.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName || !layout.IsPrintableLine(name) {
		return fmt.Errorf("%w: step %.80q: use 1 to %d bytes of printable characters", layout.ErrBadName, name, MaxName)
	}
	return nil
}

// Ref returns the reference to a large value of a step, without its size: it names the step and
// the claim.
func Ref(name string, token layout.Token) layout.ChunkRef {
	return layout.ChunkRef{Kind: layout.ChunkStep, Token: token.String() + "/" + name}
}

// NameIn returns the step that a large value belongs to, and the claim that wrote it.
func NameIn(ref layout.ChunkRef) (name, claim string) {
	claim, name, _ = strings.Cut(ref.Token, "/")
	return name, claim
}

// IsReferred requests the step that a large value belongs to. What it returns waits for the
// answer, and reports whether the record refers to the value. A record that can't be read does.
func IsReferred(tx kv.Reader, k Keys, id layout.ID, ref layout.ChunkRef) func(context.Context) (bool, error) {
	name, _ := NameIn(ref)
	key := k.Step(id, name)
	asked := tx.Get(key)
	return func(ctx context.Context) (bool, error) {
		value, err := asked.Wait(ctx)
		if err != nil || value == nil {
			return false, err
		}
		var record Record
		if err := layout.Decode(key, value, &record); err != nil {
			return layout.IsUnreadable(err), nil
		}
		return record.ValueRef != nil && record.ValueRef.Token == ref.Token, nil
	}
}

// Index removes steps with their futures.
type Index struct{ *index.Set }

// Update implements index.Index.
func (i Index) Update(before, after *layout.Row) {
	if before != nil && before.Steps && after == nil {
		i.Tx.ClearRange(kv.Prefix(Keys(i.Keys).Of(before.ID)))
	}
}

// Flush implements index.Index.
func (Index) Flush(context.Context) error { return nil }
