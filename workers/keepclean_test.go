package workers

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// clean runs a janitor that belongs to no worker, until stop is called.
func (b *bed) clean(o JanitorOptions) (stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- RunJanitor(ctx, b.cluster, o) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(b.t, <-ended)
	}
	b.t.Cleanup(stop)
	return stop
}

// TestClusterWithoutDatabaseWorkers has a janitor beside a member that only beats, and one
// that holds what it has claimed and doesn't even do that.
func TestClusterWithoutDatabaseWorkers(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{InfeasibleAfter: time.Minute, Retention: 2 * time.Minute}, clock.NewVirtual(epoch))
	from := b.clock.Now()
	delayed := b.one("go:x", func(s *fdbmodel.Submission) { s.NotBefore = from.Add(30 * time.Second) })
	expires := b.one("go:y", func(s *fdbmodel.Submission) { s.Spec.ExpiresAt = layout.Millis(from.Add(20 * time.Second)) })
	_, _, err := schedule.Of(b.cluster).Put(b.ctx, schedule.Record{
		Name: "often", Every: 20 * time.Second, Spec: layout.Spec{Function: "go:z"},
	}, true)
	require.NoError(t, err)
	held := b.one("go:w")
	dies := b.register()
	claimed, err := dies.Claim(b.ctx, fdbmodel.ClaimRequest{Max: 1, Free: layout.Resources{Slots: 1},
		Runs: func(f string) bool { return f == "go:w" }})
	require.NoError(t, err)
	require.Len(t, claimed.Futures, 1)

	one := layout.Resources{Slots: 1}
	isCurrent, err := b.cluster.Register(b.ctx, layout.WorkerInfo{Functions: []string{"go:v"}, Capacity: one})
	require.NoError(t, err)
	heartbeat, seen, beaten := b.cluster.Config().Heartbeat, []byte(nil), from
	// The clock waits for the janitor: what it sees too seldom it forgets.
	keepsUp := func() bool {
		record, _, err := maintenance.Of(b.cluster).Present(b.ctx)
		require.NoError(t, err)
		if !bytes.Equal(record, seen) {
			seen, beaten = record, b.clock.Now()
		}
		return b.clock.Now().Sub(beaten) < 2*heartbeat
	}
	still := &bed{t: t, ctx: b.ctx, db: b.db, cluster: b.cluster} // which moves no clock
	await := func(what string, done func() bool) {
		still.await(what, func() bool {
			if keepsUp() {
				b.clock.Advance(heartbeat / 2)
			}
			_, err := isCurrent.Heartbeat(b.ctx, layout.Heartbeat{})
			require.NoError(t, err)
			return done()
		})
	}
	failed := make(chan Failure, 1000)
	stop := b.clean(JanitorOptions{OnFailed: func(f Failure) { failed <- f }})
	await("the reaping of a worker", func() bool { _, there := b.member(dies.ID()); return !there })
	await("the futures of the dead", func() bool { return stateOf(b, held) == layout.Ready })
	await("what expires", func() bool { return b.row(expires).Exception != nil })
	require.Equal(t, layout.KindExpired, b.row(expires).Exception.Kind)
	await("what is delayed", func() bool { return stateOf(b, delayed) == layout.Ready })
	await("a schedule that fires", func() bool {
		s, err := schedule.Of(b.cluster).Get(b.ctx, "often")
		require.NoError(t, err)
		return s.State.Fired > 0
	})
	told := map[layout.ID]layout.FailureKind{}
	await("the end of what nobody runs", func() bool {
		for len(failed) > 0 {
			f := <-failed
			told[f.ID] = f.Kind
		}
		return told[delayed] != "" && told[held] != ""
	})
	require.Equal(t, layout.KindInfeasible, told[held])
	await("the end of its retention", func() bool { _, err := b.cluster.Get(b.ctx, expires); return err != nil })
	members, err := b.cluster.Workers(b.ctx)
	require.NoError(t, err)
	require.Len(t, members, 1, "a janitor is no member")
	_, holder, err := maintenance.Of(b.cluster).Present(b.ctx)
	require.NoError(t, err)
	require.NotEmpty(t, holder)
	stop()
	_, holder, err = maintenance.Of(b.cluster).Present(b.ctx)
	require.NoError(t, err)
	require.Empty(t, holder, "it gives up the role")
}

// TestJanitorsTakeTurns has the janitor of a worker wait for the one that acts, and take
// over once that has stopped.
func TestJanitorsTakeTurns(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		stop := b.clean(JanitorOptions{})
		holder := func() layout.WorkerID {
			_, id, err := maintenance.Of(b.cluster).Present(b.ctx)
			require.NoError(t, err)
			return id
		}
		b.await("the janitor", func() bool { return holder() != "" })
		first := holder()
		w := b.start(Options{Slots: 1}, nil)
		looks := 0
		b.await("some time", func() bool { looks++; return looks > 100 })
		require.Equal(t, first, holder())
		stopped := b.clock.Now()
		stop()
		b.await("the worker's janitor", func() bool { return holder() == w.ID() })
		if !storetest.OnServer { // where the clock does not wait for a janitor
			require.LessOrEqual(t, b.clock.Now().Sub(stopped), 2*b.cluster.Config().Heartbeat, "it does not wait for a death")
		}
	})
}

// TestJanitorWithoutAStoreEnds closes the store beside a janitor.
func TestJanitorWithoutAStoreEnds(t *testing.T) {
	t.Parallel()
	db := embedded.OpenMemory(embedded.Options{})
	cluster, err := fdbmodel.Open(t.Context(), db, "test", fdbmodel.Options{})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.ErrorIs(t, RunJanitor(t.Context(), cluster, JanitorOptions{}), kv.ErrClosed)
}
