package peerhead_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestAHeadEndsWithWhatItReads ends a head while the store does not answer its look for workers:
// that has ended too when Run returns, for the store may be closed then.
func TestAHeadEndsWithWhatItReads(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		reads := make(chan struct{})
		var first, ended atomic.Bool
		w.store.SetOptions(faultkv.Options{Latency: time.Hour, Sleep: func(ctx context.Context, _ time.Duration) error {
			if first.Swap(true) {
				return nil
			}
			close(reads)
			<-ctx.Done()
			ended.Store(true)
			return ctx.Err()
		}})
		w.head.LookForWorkers()
		<-reads
		w.stop()
		require.True(w, ended.Load())
		w.head.LookForWorkers() // it does nothing now
	})
}
