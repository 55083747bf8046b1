package workers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers/objects"
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

// TestAFileThatCantBeReadCostsNoOtherOne has the disk fail for one of two objects that a worker left in its directory:
// the next one holds the other.
func TestAFileThatCantBeReadCostsNoOtherOne(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	dir := t.TempDir()
	o := Options{Slots: 1, Objects: ObjectOptions{Memory: 1 << 20, Dir: dir}}
	first := &seam.Worker{Manual: true}
	manual := o
	manual.Seam = first
	_, err := FromCluster(b.cluster, manual)
	require.NoError(t, err)
	_, err = first.Step(b.ctx, b.clock.Now())
	require.NoError(t, err)
	b.putWith(first, "one")
	b.putWith(first, "another")
	require.NoError(t, first.Leave(b.ctx))
	lists, err := filepath.Glob(filepath.Join(dir, "*", "list.json"))
	require.NoError(t, err)
	require.Len(t, lists, 1)
	text, err := os.ReadFile(lists[0])
	require.NoError(t, err)
	var list struct{ Objects []objects.Saved }
	require.NoError(t, json.Unmarshal(text, &list))
	require.Len(t, list.Objects, 2)
	damaged := filepath.Join(filepath.Dir(lists[0]), list.Objects[0].Hash)
	require.NoError(t, os.Remove(damaged))
	require.NoError(t, os.Mkdir(damaged, 0o700)) // a read of it fails
	sound, err := layout.ParseID(list.Objects[1].Owner)
	require.NoError(t, err)
	b.start(o, nil)
	require.Eventually(t, func() bool {
		copies, err := results.Of(b.cluster).Copies(b.ctx, sound)
		require.NoError(t, err)
		return slices.ContainsFunc(copies, func(c results.Copy) bool { return c.Alive })
	}, time.Minute, time.Millisecond)
}
