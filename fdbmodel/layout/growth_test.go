package layout

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMemoryGrowsUpToTheLargestNumber has the next step be more than an int64 holds, and less than a float64 tells
// apart.
func TestMemoryGrowsUpToTheLargestNumber(t *testing.T) {
	t.Parallel()
	s := Spec{Requirements: Requirements{RAM: math.MaxInt64 - 1}, Growth: &Growth{Factor: 2, Max: math.MaxInt64}}
	require.EqualValues(t, math.MaxInt64, s.Grown(0))
	s = Spec{Requirements: Requirements{RAM: 1 << 60}, Growth: &Growth{Factor: math.Nextafter(1, 2), Max: math.MaxInt64}}
	require.Greater(t, s.Grown(0), int64(1<<60))
}
