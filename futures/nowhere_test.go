package futures_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
)

// TestAnArgumentFromNowhere submits futures that take the results of none.
func TestAnArgumentFromNowhere(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	type pair struct {
		A futures.Arg[int] `json:",omitzero" msgpack:",omitempty"`
	}
	sum := futures.Define[pair, int]("sum")
	for _, arg := range []futures.Arg[int]{
		futures.From[int](nil), futures.From(&futures.Typed[int]{}), futures.FromID[int](futures.ID{}),
	} {
		_, err := sum.Submit(o.ctx, o.client, pair{arg})
		require.ErrorContains(t, err, "From(nil)")
	}
	require.False(t, futures.From[int](nil).IsZero())
	require.True(t, futures.Value(0).IsZero())
}
