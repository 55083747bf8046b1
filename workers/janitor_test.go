package workers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
)

// hired returns a janitor of a manual worker that is a member.
func (b *bed) hired() *janitor {
	w, err := FromCluster(b.cluster, Options{Seam: &seam.Worker{Manual: true}, Slots: 1})
	require.NoError(b.t, err)
	_, err = w.step(b.ctx, b.clock.Now())
	require.NoError(b.t, err)
	return w.life.janitor
}

func TestOneJanitorActs(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	first, second := b.hired(), b.hired()
	require.True(t, first.held)
	require.False(t, second.held)
	for range 20 {
		b.clock.Advance(b.cluster.Config().Heartbeat)
		require.NoError(t, first.takeRole(b.ctx, b.clock.Now()))
		require.NoError(t, second.takeRole(b.ctx, b.clock.Now()))
		require.True(t, first.held)
		require.False(t, second.held)
	}
	gone := b.clock.Now()
	for !second.held {
		b.clock.Advance(b.cluster.Config().Heartbeat)
		require.NoError(t, second.takeRole(b.ctx, b.clock.Now()))
	}
	require.GreaterOrEqual(t, b.clock.Now().Sub(gone), b.cluster.Config().DeadAfter)
	require.NoError(t, first.takeRole(b.ctx, b.clock.Now()))
	require.False(t, first.held)
}

func TestJanitorPromotesAndExpires(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	due := b.clock.Now().Add(10 * time.Minute)
	subs := make([]fdbmodel.Submission, 500)
	for i := range subs {
		subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:echo"}, NotBefore: due}
	}
	ids := b.submit(subs...)
	j := b.hired()
	next := j.step(b.ctx, b.clock.Now())
	require.LessOrEqual(t, next.Sub(b.clock.Now()), promoteEvery)
	require.EqualValues(t, 500, b.counts()[layout.Delayed])
	b.clock.Advance(10 * time.Minute)
	j.step(b.ctx, b.clock.Now())
	require.Equal(t, map[layout.State]int64{layout.Ready: 500}, nonZero(b.counts()))
	for _, id := range ids {
		_, _, err := b.cluster.Cancel(b.ctx, id, "")
		require.NoError(t, err)
	}
	b.clock.Advance(b.cluster.Config().Retention - time.Minute)
	j.step(b.ctx, b.clock.Now())
	require.EqualValues(t, 500, b.counts()[layout.Failed])
	for range 20 {
		b.clock.Advance(time.Minute)
		j.step(b.ctx, b.clock.Now())
	}
	require.Empty(t, nonZero(b.counts()))
	_, err := b.cluster.Get(b.ctx, ids[0])
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

func TestJanitorSweepsChunksAndSessions(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{Shards: 1}, clock.NewVirtual(epoch))
	session, err := b.cluster.DrawSessionID()
	require.NoError(t, err)
	b.one("go:echo", func(s *fdbmodel.Submission) { s.Spec.Session = session })
	ids, err := b.cluster.DrawIDs(1)
	require.NoError(t, err)
	spec := &layout.Spec{}
	ref, err := b.cluster.PutArgs(b.ctx, ids[0], make([]byte, 200_000))
	require.NoError(t, err)
	spec.ArgsRef = &ref
	w := b.start(Options{}, map[string]Function{"echo": echo})
	b.await("mail", func() bool { sessions, err := b.cluster.Sessions(b.ctx); return err == nil && len(sessions) == 1 })
	_, err = b.cluster.Args(b.ctx, ids[0], spec)
	require.NoError(t, err)
	w.end()
	j := b.hired()
	for range 3 * 3600 / 10 {
		b.clock.Advance(sweepEvery)
		j.step(b.ctx, b.clock.Now())
	}
	sessions, err := b.cluster.Sessions(b.ctx)
	require.NoError(t, err)
	require.Empty(t, sessions)
	_, err = b.cluster.Args(b.ctx, ids[0], spec)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}
