package layout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// TestEntriesOfLabelledFutures has labels in the key, behind the resources, and
// none where none are required.
func TestEntriesOfLabelledFutures(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	spec := &layout.Spec{Function: "go:f", Queue: "q", Priority: 5, Requirements: layout.Requirements{
		CPU: 1, Labels: map[string]string{"zone": "a", "disk": "ssd"},
	}}
	id, prefix := modeltest.GoldenID, k.ReadyQueue(3, "q")
	item := kv.KeyValue{Key: k.Ready(id, spec), Value: []byte("go:f")}
	require.Equal(t, `("futura", "test", 3, "ready", "q", 1, 0, 0, "disk=ssd,zone=a", 250, `+id.String()+")",
		tuple.String(item.Key))
	e, classEnd, err := layout.ParseReady(item, prefix, "q")
	require.NoError(t, err)
	require.Equal(t, layout.Class{Queue: "q", CPU: 1, Labels: "disk=ssd,zone=a"}, e.Class)
	require.Equal(t, tuple.AppendString(tuple.AppendInt(tuple.AppendInt(tuple.AppendInt(prefix, 1), 0), 0),
		"disk=ssd,zone=a"), item.Key[:classEnd])
	_, queueEnd, end, err := layout.ParseAnyReady(item, k.Shard(3, layout.SubReady))
	require.NoError(t, err)
	require.Equal(t, []int{len(prefix), classEnd}, []int{queueEnd, end})
	key := keyspace.Table().Parse(item.Key)
	require.Equal(t, layout.PlaceReady, key.Kind.Name)
	require.Equal(t, "disk=ssd,zone=a", key.Text("labels"))
	require.EqualValues(t, 5, key.Int("priority"))
	require.Equal(t, id, key.ID)
	require.True(t, k.Holds(&key))
}

// TestEntriesNameWhereAttemptsFailed has the workers in the value, each once.
func TestEntriesNameWhereAttemptsFailed(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	row := &layout.Row{ID: modeltest.GoldenID, Spec: &layout.Spec{Function: "go:f", Queue: "q"}}
	place := layout.PlaceOf(row)
	require.Equal(t, "go:f", string(place.Value(row)))
	row.Exception = &layout.Exception{FailedOn: []layout.WorkerID{"0123456789abcdef", "w", "w"}}
	value := place.Value(row)
	require.Equal(t, "go:f 0123456789abcdef w", string(value))
	e, _, err := layout.ParseReady(kv.KeyValue{Key: place.Key(k, row), Value: value}, k.ReadyQueue(3, "q"), "q")
	require.NoError(t, err)
	require.Equal(t, "go:f", e.Function)
	require.Equal(t, value, e.Value())
	require.True(t, e.HasFailedOn("w"))
	require.True(t, e.HasFailedOn("0123456789abcdef"))
	require.False(t, e.HasFailedOn("fedcba9876543210"))
	require.False(t, e.AsObject())
	row.Spec.AsObject = true
	value = place.Value(row)
	require.Equal(t, "go:f object 0123456789abcdef w", string(value))
	e, _, err = layout.ParseReady(kv.KeyValue{Key: place.Key(k, row), Value: value}, k.ReadyQueue(3, "q"), "q")
	require.NoError(t, err)
	require.True(t, e.AsObject())
	require.True(t, e.HasFailedOn("w"))
	require.Equal(t, value, e.Value())
	row.Attempts.Assigned = "w"
	place = layout.PlaceOf(row)
	assigned, err := layout.ParseAssigned(kv.KeyValue{Key: place.Key(k, row), Value: place.Value(row)}, k.AssignedTo("w"))
	require.NoError(t, err)
	require.True(t, assigned.AsObject())
	require.Equal(t, "go:f", assigned.Function)
}

// TestEntriesAreWholeKeys parses the keys of two places, and keys that are
// shorter or longer.
func TestEntriesAreWholeKeys(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	id, spec := modeltest.GoldenID, &layout.Spec{Function: "go:f", Queue: "q"}
	spec.Requirements.CPU, spec.Requirements.GPU = 1, 3
	class := layout.Class{Queue: "q", CPU: 1, GPU: 3}
	for name, c := range map[string]struct {
		key   []byte
		parse func(kv.KeyValue) (layout.ReadyEntry, error)
	}{
		"ready": {k.Ready(id, spec), func(item kv.KeyValue) (layout.ReadyEntry, error) {
			e, _, err := layout.ParseReady(item, k.ReadyQueue(id.Shard(16), "q"), "q")
			return e, err
		}},
		"assigned": {k.Assigned("w", id, spec), func(item kv.KeyValue) (layout.ReadyEntry, error) {
			return layout.ParseAssigned(item, k.AssignedTo("w"))
		}},
	} {
		e, err := c.parse(kv.KeyValue{Key: c.key, Value: []byte("go:f")})
		require.NoError(t, err, name)
		require.Equal(t, layout.ReadyEntry{ID: id, Key: c.key, Function: "go:f", Class: class}, e, name)
		for _, other := range [][]byte{c.key[:len(c.key)-1], tuple.AppendInt(append([]byte(nil), c.key...), 1)} {
			_, err = c.parse(kv.KeyValue{Key: other})
			require.Error(t, err, name)
		}
	}
}
