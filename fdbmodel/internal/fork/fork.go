// Package fork has the keys that lead from futures to their forks.
package fork

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Subspace has the keys of forks.
const Subspace = "forks"

// KeyFork is the kind of key that leads to a fork.
const KeyFork = "fork"

// Source is the element of a key that is the future which the fork was made from.
const Source = "source"

// Kinds returns the kinds of keys of forks.
func Kinds() []layout.KeyKind {
	return []layout.KeyKind{{Name: KeyFork, Subspace: Subspace, Sharded: true,
		Elements: []layout.Element{layout.FutureID(Source).Home(), layout.FutureID("id")}, Format: layout.FormatMark,
		Holds: "a fork of a future", Writer: "the submit of the fork; cleared with either of them"}}
}

// Keys makes the keys of forks.
type Keys layout.Keyspace

// Of returns the prefix of the forks of a future.
func (k Keys) Of(source layout.ID) []byte {
	keys := layout.Keyspace(k)
	return tuple.AppendUUID(keys.Shard(source.Shard(keys.Shards), Subspace), source)
}

// Fork returns the key that leads to a fork.
func (k Keys) Fork(source, id layout.ID) []byte { return tuple.AppendUUID(k.Of(source), id) }

// ID returns the fork that a key leads to.
func (k Keys) ID(key []byte, source layout.ID) (layout.ID, error) {
	rest := tuple.NewReader(key[len(k.Of(source)):])
	id := layout.ID(rest.UUID())
	return id, rest.Done()
}

// Index lists forks with the futures that they were made from, and marks those.
type Index struct{ *index.Set }

// Update implements index.Index.
func (i Index) Update(before, after *layout.Row) {
	keys := Keys(i.Keys)
	switch {
	case before == nil && after.Spec.Fork != nil:
		from := after.Spec.Fork.From
		i.Tx.Set(keys.Fork(from, after.ID), layout.Mark())
		i.Tx.Set(i.Keys.State(from, layout.StateForks), layout.Mark())
	case before != nil && after == nil:
		if before.Spec.Fork != nil {
			i.Tx.Clear(keys.Fork(before.Spec.Fork.From, before.ID))
		}
		if before.Forks {
			i.Tx.ClearRange(kv.Prefix(keys.Of(before.ID)))
		}
	}
}

// Flush implements index.Index.
func (Index) Flush(context.Context) error { return nil }
