package bubble

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTimersThatAreDue receives in many goroutines from timers that are due.
func TestTimersThatAreDue(t *testing.T) {
	Test(t, func(*testing.T) {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 300 {
					due := time.NewTimer(time.Millisecond)
					<-time.After(time.Millisecond)
					<-due.C
				}
			})
		}
		all.Wait()
	})
}

func TestProcessorsAreGivenBack(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	during := func() int {
		if raced {
			return 1
		}
		return before
	}
	t.Run("together", func(t *testing.T) {
		for range 3 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				Test(t, func(*testing.T) { require.Equal(t, during(), runtime.GOMAXPROCS(0)) })
			})
		}
	})
	require.Equal(t, before, runtime.GOMAXPROCS(0))
	t.Run("a test that ends early", func(t *testing.T) {
		Test(t, func(t *testing.T) { t.SkipNow() })
	})
	require.Equal(t, before, runtime.GOMAXPROCS(0))
}
