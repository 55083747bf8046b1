package layout_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

func TestBackoffIsBounded(t *testing.T) {
	t.Parallel()
	for n := range 200 {
		for _, jitter := range []float64{0, 0.5, 0.999} {
			wait := layout.Backoff{}.Wait(n, jitter)
			require.GreaterOrEqual(t, wait, layout.DefaultBackoffBase/2)
			require.LessOrEqual(t, wait, layout.DefaultBackoffMax*3/2)
		}
	}
	require.Equal(t, 4*time.Second, layout.Backoff{Base: time.Second}.Wait(3, 0.5))
	ever := layout.Backoff{Base: math.MaxInt64, Max: math.MaxInt64}
	require.Positive(t, ever.Wait(1, 0.4))
	require.Equal(t, time.Duration(math.MaxInt64), ever.Wait(1, 0.6))
}
