package embedded

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// TestTheLargestCommitsPassACheckpointOfASmallStore has commits of nearly kv.MaxTxSize wait for a checkpoint that waits
// for them, in a store that lets fewer bytes than one of them wait for the disk.
func TestTheLargestCommitsPassACheckpointOfASmallStore(t *testing.T) {
	t.Parallel()
	var s *Store
	var stopped atomic.Bool
	fs := slowRowsFS{FS: vfs.NewMem(), stalled: func() {
		p := s.pacing.Load()
		for waits := false; !waits && !stopped.Load(); runtime.Gosched() {
			p.moved.mu.Lock()
			waits = p.moved.ch != nil
			p.moved.mu.Unlock()
		}
	}}
	s = open(t, "store", Options{FS: fs, Memory: 16 << 20})
	require.Less(t, s.options.backlog(), int64(kv.MaxTxSize))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	value := make([]byte, kv.MaxValueSize)
	var writers sync.WaitGroup
	for writer := range 2 {
		writers.Go(func() {
			for s.checkpoints.Load() == 0 {
				tx := s.Begin(kv.Options{})
				for i := range 95 {
					tx.Set(fmt.Appendf(nil, "%d/%d", writer, i), value)
				}
				if _, err := tx.Commit(ctx); err != nil {
					t.Error(err)
					break
				}
			}
			stopped.Store(true)
		})
	}
	writers.Wait()
	require.NoError(t, s.Err())
}
