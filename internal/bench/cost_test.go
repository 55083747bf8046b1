//go:build unix

package bench

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const spinVariable = "FUTURA_BENCH_SPIN"

// spin uses processor time until it is counted.
func spin(d time.Duration) {
	begin, _ := processorTime(self)
	for user := begin; user-begin < d; user, _ = processorTime(self) {
		for range 100_000 {
		}
	}
}

// TestCostHasChildren is its own child, which spins.
func TestCostHasChildren(t *testing.T) {
	const enough = 20 * time.Millisecond
	if os.Getenv(spinVariable) != "" {
		spin(enough)
		return
	}
	spin(enough)
	begin := spentSoFar()
	require.GreaterOrEqual(t, begin.user, enough)
	child := exec.CommandContext(context.Background(), os.Args[0], "-test.run=^TestCostHasChildren$")
	child.Env = append(os.Environ(), spinVariable+"=1")
	require.NoError(t, child.Run())
	spent := spentSoFar().minus(begin)
	require.GreaterOrEqual(t, spent.user, enough)
	require.Positive(t, spent.allocations)
	require.Positive(t, spent.allocated)
}

func TestCostPerFuture(t *testing.T) {
	t.Parallel()
	c := cost{user: 3 * time.Millisecond, system: time.Millisecond, allocations: 10, allocated: 4000}
	require.Equal(t, &Cost{
		UserMicroseconds: 6, SystemMicroseconds: 2, Allocations: 0.02, AllocatedBytes: 8,
	}, c.plus(c).minus(c).per(500))
}
