package audit_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/storetest"
)

// TestCheckKnowsTheFormOfEveryKind walks the key table: keys of each kind with
// an element too many, an element too few and in a wrong shard are reported, and
// so are values that are damaged or newer.
func TestCheckKnowsTheFormOfEveryKind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c, err := fdbmodel.Open(ctx, db, "form", fdbmodel.Options{Config: layout.Config{Shards: 16}})
	require.NoError(t, err)
	keys := map[string][]byte{}
	for _, golden := range modeltest.GoldenKeys(c.Keys()) {
		keys[keyspace.Table().Describe(golden.Key).Kind] = golden.Key
	}
	anyShard := map[string]bool{layout.KeyCount: true, "done": true}
	damaged, newer, wrong := map[string][]byte{}, map[string][]byte{}, map[string][]byte{}
	for _, kind := range keyspace.Table().Kinds() {
		key := keys[kind.Name]
		require.NotNil(t, key, "no golden key of the kind %q", kind.Name)
		if kind.Format != layout.FormatData && kind.Format != layout.FormatPiece {
			damaged[tuple.String(key)] = key
		}
		if kind.Format.Versioned() {
			newer[tuple.String(key)] = key
		}
		elements, err := tuple.Unpack(key)
		require.NoError(t, err)
		shorter, err := tuple.Pack(elements[:len(elements)-1]...)
		require.NoError(t, err)
		foreign := [][]byte{shorter, tuple.AppendString(bytes.Clone(key), "x"), tuple.AppendInt(bytes.Clone(key), 1)}
		shard, sharded := elements[2].(int64)
		require.Equal(t, kind.Sharded, sharded)
		if sharded && !anyShard[kind.Name] {
			elements[2] = (shard + 1) % 16
			elsewhere, err := tuple.Pack(elements...)
			require.NoError(t, err)
			foreign = append(foreign, elsewhere)
		}
		for _, key := range foreign {
			wrong[tuple.String(key)] = key
		}
	}
	check := func(value []byte, written ...map[string][]byte) audit.Report {
		tx := db.Begin(kv.Options{})
		for _, keys := range written {
			for _, key := range keys {
				tx.Set(key, value)
			}
		}
		_, err := tx.Commit(ctx)
		require.NoError(t, err)
		report, err := audit.Check(ctx, c, audit.Options{})
		require.NoError(t, err)
		return report
	}
	for _, value := range [][]byte{{0}, {layout.RecordVersion, 0xc1}} {
		report := check(value, damaged, wrong)
		require.Equal(t, names(wrong), reported(report.Problems, audit.InvariantKey))
		require.Equal(t, names(damaged), reported(report.Problems, audit.InvariantRecord))
	}
	report := check([]byte{layout.RecordVersion + 1}, newer)
	require.Equal(t, names(newer), reported(report.Notes, audit.InvariantNewer))
}

func names(keys map[string][]byte) map[string]int {
	once := map[string]int{}
	for name := range keys {
		once[name] = 1
	}
	return once
}

// reported counts how often a key was reported for an invariant.
func reported(problems []audit.Problem, invariant audit.Invariant) map[string]int {
	times := map[string]int{}
	for _, problem := range problems {
		if problem.Invariant == invariant {
			times[problem.Keys[0]]++
		}
	}
	return times
}
