package workers

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// TestPacesOfManyKeysCostTheSame has each key be looked at twice or so while none may be forgotten.
func TestPacesOfManyKeysCostTheSame(t *testing.T) {
	t.Parallel()
	const all = 8 * fewPaces
	var b book[int]
	looks := 0
	for n := range all {
		b.sweep(func(int) bool { looks++; return false })
		b.keys[strconv.Itoa(n)] = n
	}
	require.Len(t, b.keys, all)
	require.Less(t, looks, 2*all)
	require.Positive(t, looks)
}

// TestPacesThatAreOverAreForgotten keeps those of keys that may not start yet.
func TestPacesThatAreOverAreForgotten(t *testing.T) {
	t.Parallel()
	clk := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	p := &paces{clock: clk}
	slow := &layout.Pace{Key: "slow", PerSecond: 1. / 3600}
	began := clk.Now()
	require.Equal(t, began, p.reserveOwn(slow))
	for n := range 3 * fewPaces {
		key := strconv.Itoa(n)
		at := p.reserveOwn(&layout.Pace{Key: key, PerSecond: 1000})
		require.Equal(t, clk.Now(), at)
		clk.Advance(time.Millisecond)
	}
	require.LessOrEqual(t, len(p.next.keys), fewPaces)
	require.Equal(t, began.Add(time.Hour), p.reserveOwn(slow))
}
