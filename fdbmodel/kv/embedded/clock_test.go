package embedded

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

// TestClockThatJumps moves the time by hours, forwards and backwards, under an
// open store and between openings: it bounds nothing but the life of transactions.
func TestClockThatJumps(t *testing.T) {
	t.Parallel()
	virtual := clock.NewVirtual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	o := Options{FS: vfs.NewMem(), Inline: true, Clock: virtual, HistoryVersions: 2}
	want, last := map[string]string{}, kv.Version(0)
	for i, jump := range []time.Duration{0, 3 * time.Hour, -5 * time.Hour, 1000 * time.Hour, -2000 * time.Hour} {
		s := open(t, "store", o)
		for n := range 20 {
			under := s.Begin(kv.Options{})
			_, err := under.Get([]byte("clock")).Wait(t.Context())
			require.NoError(t, err)
			if n == 10 {
				virtual.Advance(jump)
			}
			under.Set(fmt.Appendf(nil, "%d/%d", i, n), nil)
			committed, err := under.Commit(t.Context())
			if n == 10 && jump > kv.TxLifetime {
				require.ErrorIs(t, err, kv.ErrTooOld)
				require.True(t, kv.Retryable(err))
				continue
			}
			require.NoError(t, err)
			require.Greater(t, committed.Version, last)
			last = committed.Version
			want[fmt.Sprintf("%d/%d", i, n)] = ""
		}
		require.Equal(t, want, contents(t, s))
		require.Less(t, s.Stats().Garbage, 100)
		require.NoError(t, s.Close())
		virtual.Advance(-jump / 2)
	}
}
