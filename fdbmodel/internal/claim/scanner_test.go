package claim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// TestClassesAreFewAndForgotten meets more classes than are remembered, and none
// for a while.
func TestClassesAreFewAndForgotten(t *testing.T) {
	t.Parallel()
	keys := layout.NewKeyspace("c")
	keys.Shards = 1
	s, now := NewScanner(keys, func(int) int { return 0 }), time.Unix(1_900_000_000, 0)
	for n := range 2 * maxClasses {
		s.remember("q", fmt.Appendf(nil, "%03d", n), now)
	}
	require.Len(t, s.classes["q"], maxClasses)
	tx := storetest.New(t).Begin(kv.Options{})
	defer tx.Cancel()
	for _, step := range []struct {
		after time.Duration
		left  int
	}{{classLifetime, maxClasses}, {classLifetime + 1, 0}} {
		require.NoError(t, s.Discover(t.Context(), tx, 0, "q", now.Add(step.after)))
		require.Len(t, s.classes["q"], step.left)
	}
}
