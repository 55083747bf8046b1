package workers

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/storetest"
)

// slowDisk is a clock by which all of the time has passed that there is to write objects.
type slowDisk struct {
	*clock.Virtual
	writes atomic.Bool
}

// AfterFunc implements clock.Clock.
func (s *slowDisk) AfterFunc(at time.Time, fn func()) (stop func()) {
	if at.Sub(s.Virtual.Now()) == stayTimeout {
		s.writes.Store(true)
	}
	return s.Virtual.AfterFunc(at, fn)
}

// Now implements clock.Clock.
func (s *slowDisk) Now() time.Time {
	if s.writes.CompareAndSwap(true, false) {
		s.Virtual.Advance(stayTimeout)
	}
	return s.Virtual.Now()
}

// TestReadersWaitForWhatWasWrittenInTime has the time be over when an object is in the directory of its
// worker: readers wait for it.
func TestReadersWaitForWhatWasWrittenInTime(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	slow := &slowDisk{Virtual: b.clock}
	var err error
	b.cluster, err = fdbmodel.Open(b.ctx, storetest.New(t), "slow", fdbmodel.Options{Clock: slow})
	require.NoError(t, err)
	s := &seam.Worker{Manual: true}
	_, err = FromCluster(b.cluster, Options{Slots: 1, Seam: s, Objects: ObjectOptions{Memory: 1 << 20, Dir: t.TempDir()}})
	require.NoError(t, err)
	_, err = s.Step(b.ctx, b.clock.Now())
	require.NoError(t, err)
	put := b.putWith(s, "put")
	require.NoError(t, s.Leave(b.ctx))
	copies, err := results.Of(b.cluster).Copies(b.ctx, put)
	require.NoError(t, err)
	require.Len(t, copies, 1)
	require.Equal(t, stayFor, copies[0].Awaited(b.clock.Now()))
}
