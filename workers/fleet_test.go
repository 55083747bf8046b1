package workers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/storetest"
)

// TestFleetExecutes has members of a fleet run futures, end cancelled ones, tell progress
// and give back what runs when they stop, beside a janitor of no worker.
func TestFleetExecutes(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	b.clean(JanitorOptions{})
	fleet := NewFleet(b.cluster)
	held := newBlocker(true)
	tell := func(ctx context.Context, _ []byte) ([]byte, error) { return nil, Progress(ctx, 1, 2, "half") }
	functions := map[string]Function{"echo": echo, "hold": held.run, "tell": tell}
	var members []*running
	for range 10 {
		members = append(members, b.start(Options{Slots: 4, DrainTimeout: time.Second, Fleet: fleet}, functions))
	}
	b.await("the members", func() bool { return fleet.Members() == 10 })
	ids := b.many(500, "go:echo")
	ids = append(ids, b.one("go:tell"))
	cancelled := b.one("go:hold")
	b.begins(held)
	_, _, err := b.cluster.Cancel(b.ctx, cancelled, "enough")
	require.NoError(t, err)
	b.awaitOver(append(ids, cancelled)...)
	require.Equal(t, layout.KindCancelled, b.row(cancelled).Exception.Kind)
	require.Equal(t, "half", b.row(ids[500]).Progress.Text)
	lasting := b.one("go:hold")
	b.begins(held)
	for _, w := range members {
		w.end()
	}
	require.Zero(t, fleet.Members())
	require.Equal(t, layout.Ready, stateOf(b, lasting))
	require.Zero(t, b.row(lasting).Attempts.Failed)
	left, err := b.cluster.Workers(b.ctx)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestFleetGoesOnWithoutOne declares a member dead: it becomes one again, and the others
// go on.
func TestFleetGoesOnWithoutOne(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	fleet := NewFleet(b.cluster)
	var members []*running
	var before []layout.WorkerID
	for range 5 {
		w := b.start(Options{Slots: 1, Fleet: fleet}, map[string]Function{"echo": echo})
		members, before = append(members, w), append(before, w.ID())
	}
	_, err := b.cluster.ForceReap(b.ctx, before[2])
	require.NoError(t, err)
	b.await("another membership", func() bool { return members[2].ID() != before[2] })
	first, found := b.member(before[0])
	require.True(t, found)
	b.await("more heartbeats", func() bool {
		m, _ := b.member(before[0])
		return m.Heartbeat.Count >= first.Heartbeat.Count+3
	})
	for i, w := range members {
		if i != 2 {
			require.Equal(t, before[i], w.ID())
		}
	}
	b.awaitOver(b.many(20, "go:echo")...)
}

// slowBeats is a store whose next heartbeat waits.
type slowBeats struct {
	kv.Database
	hold chan chan struct{}
}

func (d *slowBeats) Begin(o kv.Options) kv.Tx {
	tx := d.Database.Begin(o)
	if o.Tag == "futura-beat" {
		select {
		case gone := <-d.hold:
			return slowTx{tx, gone}
		default:
		}
	}
	return tx
}

type slowTx struct {
	kv.Tx
	until chan struct{}
}

func (t slowTx) Commit(ctx context.Context) (kv.Committed, error) {
	select {
	case <-t.until:
	case <-ctx.Done():
		return kv.Committed{}, ctx.Err()
	}
	return t.Tx.Commit(ctx)
}

// TestSlowHeartbeatsHoldUpNobodyElse has the transaction of one member wait for ever: the
// heartbeats of another one go on, and a call that gives up waiting ends it.
func TestSlowHeartbeatsHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	db := &slowBeats{Database: storetest.New(t), hold: make(chan chan struct{}, 1)}
	b := bedOn(t, db, layout.Config{}, clock.NewVirtual(epoch))
	fleet, slow, fast := NewFleet(b.cluster), b.register(), b.register()
	db.hold <- make(chan struct{})
	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := fleet.beat(ctx, slow, layout.Heartbeat{})
		ended <- err
	}()
	b.await("the slow transaction", func() bool { return len(db.hold) == 0 })
	for range 3 {
		done := make(chan error, 1)
		go func() {
			_, err := fleet.beat(b.ctx, fast, layout.Heartbeat{})
			done <- err
		}()
		b.await("a heartbeat beside it", func() bool { return len(done) > 0 })
		require.NoError(t, <-done)
	}
	m, _ := b.member(fast.ID())
	require.EqualValues(t, 3, m.Heartbeat.Count)
	require.Empty(t, ended)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// TestFleetGathers has as many heartbeats as fit into a transaction wait for no clock, and
// the one after them for its own.
func TestFleetGathers(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	fleet := NewFleet(b.cluster)
	answers := make(chan error, fdbmodel.MaxBeats+1)
	regs := make([]*fdbmodel.Registration, fdbmodel.MaxBeats)
	for i := range regs {
		regs[i] = b.register()
	}
	for _, reg := range regs {
		go func() {
			_, err := fleet.beat(b.ctx, reg, layout.Heartbeat{})
			answers <- err
		}()
	}
	for range regs {
		require.NoError(t, <-answers)
	}
	go func() {
		_, err := fleet.beat(b.ctx, regs[0], layout.Heartbeat{})
		answers <- err
	}()
	began := b.clock.Now()
	b.await("the last one", func() bool { return len(answers) > 0 })
	require.NoError(t, <-answers)
	require.Greater(t, b.clock.Now(), began)
}

// TestFleetSpreads looks at when members of fleets of many sizes beat and poll.
func TestFleetSpreads(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	const every = 6 * time.Second
	for _, n := range []int{1, 10, 80, 1000} {
		fleet := NewFleet(b.cluster)
		for range n {
			fleet.enter()
		}
		ticks := map[time.Time]int{}
		for i := range n {
			id := layout.WorkerID(fmt.Sprintf("%016x", i*7919))
			now := epoch.Add(time.Duration(i) * 37 * time.Millisecond)
			at := fleet.nextBeat(now, every, id)
			require.True(t, at.After(now) && !at.After(now.Add(every)), "%v after %v", at, now)
			require.Equal(t, at.Add(every), fleet.nextBeat(at, every, id))
			ticks[at.Truncate(time.Millisecond)]++
		}
		require.LessOrEqual(t, len(ticks), (n+beatsPerTick-1)/beatsPerTick*(n*37/6000+2))
		poll, _ := fleet.pollEvery(time.Second)
		require.Equal(t, min(time.Duration(n)*time.Second, pollMax), poll)
	}
	fleet := NewFleet(b.cluster)
	var exits []func()
	for range 100 {
		exits = append(exits, fleet.enter())
	}
	_, fewer := fleet.pollEvery(time.Second)
	closed := func() bool {
		select {
		case <-fewer:
			return true
		default:
			return false
		}
	}
	for _, exit := range exits[:50] {
		exit()
	}
	require.False(t, closed())
	exits[50]()
	require.True(t, closed(), "who waits long for its poll looks again")
	long, _ := fleet.pollEvery(2 * time.Minute)
	require.Equal(t, 2*time.Minute, long, "an option above a minute holds")
}

// TestLastOfAFleetPolls has a member of a large fleet find a future without a hint soon
// after the others have left.
func TestLastOfAFleetPolls(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	fleet := NewFleet(b.cluster)
	exit := func() {}
	for range 500 {
		one, more := exit, fleet.enter()
		exit = func() { one(); more() }
	}
	b.start(Options{Slots: 1, Fleet: fleet}, map[string]Function{"echo": echo})
	rounds := 0
	b.await("its rest", func() bool { rounds++; return rounds > 50 })
	other, err := fdbmodel.Open(b.ctx, deafStore{b.db}, b.cluster.Name(), fdbmodel.Options{Clock: b.clock})
	require.NoError(t, err)
	ids, err := other.Submit(b.ctx, []fdbmodel.Submission{b.describe("go:echo")})
	require.NoError(t, err)
	exit()
	left := b.clock.Now()
	b.awaitOver(ids[0].ID)
	require.Less(t, b.clock.Now().Sub(left), pollMax/2)
}

// deafStore fires no watch.
type deafStore struct{ kv.Database }

func (d deafStore) Begin(o kv.Options) kv.Tx {
	tx := d.Database.Begin(o)
	if o.Tag == "futura-wake" {
		tx.Cancel()
	}
	return tx
}

func TestFleetOfAnotherCluster(t *testing.T) {
	t.Parallel()
	one, other := virtualBed(t), virtualBed(t)
	_, err := FromCluster(one.cluster, Options{Fleet: NewFleet(other.cluster)})
	require.ErrorContains(t, err, "another Cluster")
}

// TestManualMemberOfAFleet steps one: it beats by itself, and cleans nothing.
func TestManualMemberOfAFleet(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	hand := &seam.Worker{Manual: true}
	w, err := FromCluster(b.cluster, Options{Slots: 1, Seam: hand, Fleet: NewFleet(b.cluster)})
	require.NoError(t, err)
	require.NoError(t, w.Register("echo", echo))
	id := b.one("go:echo")
	for range 20 {
		_, err := hand.Step(b.ctx, b.clock.Now())
		require.NoError(t, err)
		b.clock.Advance(b.cluster.Config().Heartbeat / 2)
	}
	require.Equal(t, layout.Realized, stateOf(b, id))
	m, _ := b.member(w.ID())
	require.Greater(t, m.Heartbeat.Count, int64(5))
	_, holder, err := maintenance.Of(b.cluster).Present(b.ctx)
	require.NoError(t, err)
	require.Empty(t, holder)
	require.NoError(t, hand.Leave(b.ctx))
	_, there := b.member(w.ID())
	require.False(t, there)
}

// TestManyWorkersShareTheShards has workers that take turns look at all shards within the time
// of four polls, however many they are.
func TestManyWorkersShareTheShards(t *testing.T) {
	t.Parallel()
	const shards, pollsForAll = 16, 4 // the latter is that of Poll
	for _, each := range []time.Duration{100 * time.Millisecond, time.Second, 20 * time.Second, 5 * time.Minute} {
		for _, n := range []int{0, 1, 2, 16, 60, 61, 100, 128} {
			every, parts := shared(each, n), int(pollsForAll*max(sharers(each, n), 1))
			looks := float64(max(n, 1)) * float64(max(shards/parts, 1)) * float64(pollsForAll*each) / float64(every)
			require.GreaterOrEqual(t, looks, 0.75*shards, "each %v, %d workers", each, n)
			if shards/parts > 1 { // not the least that a poll can look at
				require.LessOrEqual(t, looks, 1.5*shards, "each %v, %d workers", each, n)
			}
		}
	}
}
