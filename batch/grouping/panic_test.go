package grouping_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/grouping"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// touchy is a result that can't be encoded if it is negative.
type touchy int

// MarshalJSON implements json.Marshaler.
func (n touchy) MarshalJSON() ([]byte, error) {
	if n < 0 {
		panic("it is negative")
	}
	return json.Marshal(int(n))
}

// TestAPanicOverOneTaskIsItsOwn has a call with a task whose input its target function can't read, and with one whose
// result can't be encoded.
func TestAPanicOverOneTaskIsItsOwn(t *testing.T) {
	t.Parallel()
	calls := 0
	_, fn := grouping.Define[*order, touchy]("touchy", func(o *order) string { return o.Target }, grouping.Settings{}).
		Bind(func(_ context.Context, _ string, tasks []grouping.Task[*order]) ([]grouping.Outcome[touchy], error) {
			calls++
			outcomes := make([]grouping.Outcome[touchy], len(tasks))
			for i, task := range tasks {
				outcomes[i].Out = touchy(task.In.N)
			}
			return outcomes, nil
		})
	var members []workers.Member
	for _, args := range []string{`{"Target":"t","N":1}`, `null`, `{"Target":"t","N":-1}`, `{"Target":"t","N":2}`} {
		members = append(members, workers.Member{Codec: layout.CodecJSON, Args: []byte(args)})
	}
	ends, err := fn(t.Context(), "t", members)
	require.NoError(t, err)
	require.Len(t, ends, len(members))
	require.Equal(t, 1, calls)
	for i, value := range map[int]string{0: "1", 3: "2"} {
		require.NoError(t, ends[i].Err)
		require.Equal(t, value, string(ends[i].Value))
	}
	for i, why := range map[int]string{1: "nil pointer", 2: "it is negative"} {
		require.ErrorContains(t, ends[i].Err, why)
		var permanent interface{ Permanent() bool }
		require.ErrorAs(t, ends[i].Err, &permanent)
		require.True(t, permanent.Permanent())
	}
}
