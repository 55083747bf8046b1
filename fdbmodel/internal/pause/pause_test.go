package pause

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// TestPausesOfARestoredStore has the versions of the store be lower from some time on.
func TestPausesOfARestoredStore(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_900_000_000_000)
	read := func(at kv.Version, beat time.Time, names ...string) *Seen {
		seen := &Seen{at: at, Beat: beat}
		for _, name := range names {
			seen.list = append(seen.list, Pause{What: Queue, Name: name})
		}
		return seen
	}
	var known Known
	known.Learn(read(100, now, "before"))
	require.False(t, known.Learn(read(99, now)), "it was read before, and came late")
	require.True(t, known.Queue("before"))
	known.Learn(read(101, now, "before"))
	now = now.Add(time.Minute)
	require.False(t, known.Learn(read(7, now, "restored")))
	require.False(t, known.Learn(read(8, now.Add(kv.TxLifetime), "restored")), "it may still be a late one")
	require.True(t, known.Queue("before"))
	require.True(t, known.Learn(read(9, now.Add(kv.TxLifetime+1), "restored")))
	require.False(t, known.Queue("before"))
	require.True(t, known.Queue("restored"))
	require.False(t, known.Learn(read(8, time.Time{})), "from there on the order of versions holds again")
	require.True(t, known.Queue("restored"))
}
