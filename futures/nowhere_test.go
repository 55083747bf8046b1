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
		require.ErrorIs(t, err, futures.ErrBadSpec)
	}
	require.False(t, futures.From[int](nil).IsZero())
	var none *futures.Future
	require.True(t, none.ID().IsZero())
	double := futures.Define[int, int]("double")
	for _, option := range []futures.Option{
		futures.After(nil), futures.After(none), futures.After((*futures.Typed[int])(nil)), futures.Near(futures.ID{}),
		futures.MustBeNear(futures.ID{}),
	} {
		_, err := double.Submit(o.ctx, o.client, 1, option)
		require.ErrorIs(t, err, futures.ErrBadSpec)
	}
	_, err := futures.Then(o.ctx, o.client, nil, double)
	require.ErrorIs(t, err, futures.ErrBadSpec)
	_, err = futures.ThenEach(o.ctx, o.client, []*futures.Typed[int]{{}}, double)
	require.ErrorIs(t, err, futures.ErrBadSpec)
	require.True(t, futures.Value(0).IsZero())
}
