package layout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

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
