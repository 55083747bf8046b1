package workers

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/storetest"
)

// joinedJanitor returns the janitor of a manual worker that is a member.
func (b *bed) joinedJanitor() *janitor {
	w, err := FromCluster(b.cluster, Options{Seam: &seam.Worker{Manual: true}, Slots: 1})
	require.NoError(b.t, err)
	_, err = w.step(b.ctx, b.clock.Now())
	require.NoError(b.t, err)
	return w.membership.janitor
}

func TestOneJanitorActs(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	first, second := b.joinedJanitor(), b.joinedJanitor()
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
	j := b.joinedJanitor()
	next := j.step(b.ctx, b.clock.Now())
	require.LessOrEqual(t, next.Sub(b.clock.Now()), promoteEvery)
	require.EqualValues(t, 500, b.counts()[layout.Delayed])
	// stepAll steps until nothing is due.
	stepAll := func() {
		for now := b.clock.Now(); !j.step(b.ctx, now).After(now); {
		}
	}
	b.clock.Advance(10 * time.Minute)
	stepAll()
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
		stepAll()
	}
	require.Empty(t, nonZero(b.counts()))
	_, err := b.cluster.Get(b.ctx, ids[0])
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

// TestJanitorEndsWhatNoWorkerCanRun tells the hook of a future that it ends.
func TestJanitorEndsWhatNoWorkerCanRun(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{InfeasibleAfter: time.Minute}, clock.NewVirtual(epoch))
	id := b.one("go:nobody")
	var told []Failure
	w, err := FromCluster(b.cluster, Options{Seam: &seam.Worker{Manual: true}, Slots: 1,
		OnFailed: func(f Failure) { told = append(told, f) }})
	require.NoError(t, err)
	for range 6 {
		_, err = w.step(b.ctx, b.clock.Now())
		require.NoError(t, err)
		require.Empty(t, told)
		b.clock.Advance(unschedulableEvery)
	}
	_, err = w.step(b.ctx, b.clock.Now())
	require.NoError(t, err)
	require.Len(t, told, 1)
	require.Equal(t, id, told[0].ID)
	require.Equal(t, layout.KindInfeasible, told[0].Kind)
	require.Contains(t, told[0].Message, "no worker could run it for 1m0s: No worker of the queue")
	require.EqualValues(t, 1, b.counts()[layout.Failed])
}

// TestJanitorFindsAPlaceForWhatIsUnplaceable has a future that must be near an object whose
// only holder could not run it: once another worker has a copy, it is for that one.
func TestJanitorFindsAPlaceForWhatIsUnplaceable(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{DeadAfter: time.Hour}, clock.NewVirtual(epoch))
	register := func(labels map[string]string) *fdbmodel.Registration {
		reg, err := b.cluster.Register(b.ctx, layout.WorkerInfo{Capacity: layout.Resources{Slots: 1}, Labels: labels,
			Queues: []string{layout.DefaultQueue}, Functions: []string{"go:f"}})
		require.NoError(b.t, err)
		return reg
	}
	plain, labelled := register(nil), register(map[string]string{"disk": "ssd"})
	ids, err := b.cluster.DrawIDs(1)
	require.NoError(t, err)
	_, err = results.Of(b.cluster).Put(b.ctx, results.Value{ID: ids[0], Object: "o", Size: 1, Holder: plain.ID()})
	require.NoError(t, err)
	id := b.one("go:f", func(s *fdbmodel.Submission) {
		s.Spec.Near, s.Spec.MustBeNear, s.Spec.Requirements.Labels = ids[0], true, map[string]string{"disk": "ssd"}
	})
	w, err := FromCluster(b.cluster, Options{Seam: &seam.Worker{Manual: true}, Slots: 1})
	require.NoError(t, err)
	steps := func() {
		for range 3 {
			_, err := w.step(b.ctx, b.clock.Now())
			require.NoError(t, err)
			b.clock.Advance(replaceEvery)
		}
	}
	steps()
	require.True(t, b.row(id).Attempts.Unplaceable)
	require.NoError(t, results.Of(b.cluster).AddCopy(b.ctx, labelled.ID(), ids[0], b.row(ids[0]).Result.Token, false))
	steps()
	require.Equal(t, layout.Attempts{Assigned: labelled.ID()}, b.row(id).Attempts)
}

// TestJanitorSaysOnceWhatFails has a duty fail each second: the same error has a line in
// the log a minute, another one at once.
func TestJanitorSaysOnceWhatFails(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{}, clock.NewVirtual(epoch))
	var log bytes.Buffer
	w, err := FromCluster(b.cluster, Options{Seam: &seam.Worker{Manual: true}, Slots: 1,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	j, failure := newJanitor(w, "w"), errors.New("copy unreadable")
	d := duty{name: "x", every: time.Second, run: atIntervals(func(context.Context, time.Time) error { return failure })}
	for range 61 {
		j.perform(b.ctx, &d, b.clock.Now())
		b.clock.Advance(time.Second)
	}
	require.Equal(t, 2, strings.Count(log.String(), "copy unreadable"))
	failure = errors.New("another one")
	j.perform(b.ctx, &d, b.clock.Now())
	require.Equal(t, 1, strings.Count(log.String(), "another one"))
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
	b.await("mail", func() bool {
		sessions, err := maintenance.Of(b.cluster).Sessions(b.ctx)
		return err == nil && len(sessions) == 1
	})
	_, err = b.cluster.Args(b.ctx, ids[0], spec)
	require.NoError(t, err)
	w.end()
	j := b.joinedJanitor()
	stride := sweepEvery
	if storetest.OnServer && !long() {
		stride = 6 * sweepEvery
	}
	for range 3 * time.Hour / stride {
		b.clock.Advance(stride)
		j.step(b.ctx, b.clock.Now())
	}
	sessions, err := maintenance.Of(b.cluster).Sessions(b.ctx)
	require.NoError(t, err)
	require.Empty(t, sessions)
	_, err = b.cluster.Args(b.ctx, ids[0], spec)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

// TestDutiesRunWhenTheyAreDue has three duties of the same interval: one that
// has no wish, one that wants to run earlier or later, and one that fails.
func TestDutiesRunWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	j := b.joinedJanitor()
	start := b.clock.Now()
	var ran []string
	wish := time.Duration(0)
	row := func(name string, run func(now time.Time) (time.Time, error)) duty {
		return duty{name: name, every: time.Second, run: func(_ context.Context, now time.Time) (time.Time, error) {
			ran = append(ran, name)
			return run(now)
		}}
	}
	j.duties = []duty{
		row("steady", func(time.Time) (time.Time, error) { return time.Time{}, nil }),
		row("eager", func(now time.Time) (time.Time, error) { return now.Add(wish), nil }),
		row("failing", func(now time.Time) (time.Time, error) { return now, errors.New("it fails") }),
	}
	for _, c := range []struct {
		at, wish, next time.Duration
		ran            []string
	}{
		{0, 400 * time.Millisecond, 400 * time.Millisecond, []string{"steady", "eager", "failing"}},
		{399 * time.Millisecond, 0, 400 * time.Millisecond, nil},
		{400 * time.Millisecond, 0, 400 * time.Millisecond, []string{"eager"}},
		{500 * time.Millisecond, time.Hour, time.Second, []string{"eager"}},
		{time.Second, time.Hour, 1500 * time.Millisecond, []string{"steady", "failing"}},
	} {
		ran, wish = nil, c.wish
		require.Equal(t, start.Add(c.next), j.step(b.ctx, start.Add(c.at)), "%+v", c)
		require.Equal(t, c.ran, ran, "%+v", c)
	}
	ran = nil
	j.held, j.keepRole.run = false, atIntervals(func(context.Context, time.Time) error { return nil })
	require.Equal(t, start.Add(time.Hour+j.keepRole.every), j.step(b.ctx, start.Add(time.Hour)))
	require.Empty(t, ran)
}

// TestAReapThatFailsDoesNotAffectOthers has two dead workers; the claims of the
// first can't be read.
func TestAReapThatFailsDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	for _, id := range []layout.WorkerID{"a", "b"} {
		w, err := b.cluster.Register(b.ctx, layout.WorkerInfo{
			ID: id, Functions: []string{"go:work"}, Capacity: layout.Resources{Slots: 1},
		})
		require.NoError(t, err)
		b.one("go:work")
		answer, err := w.Claim(b.ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
		require.NoError(t, err)
		require.Len(t, answer.Futures, 1)
	}
	tx := b.db.Begin(kv.Options{})
	tx.Set(b.cluster.Keys().Claims("a", 1), []byte{layout.RecordVersion})
	_, err := tx.Commit(b.ctx)
	require.NoError(t, err)
	j := b.joinedJanitor()
	for range 2 {
		_ = j.reap(b.ctx, b.clock.Now()) // looks at the heartbeats
		b.clock.Advance(b.cluster.Config().DeadAfter / 2)
	}
	require.ErrorIs(t, j.reap(b.ctx, b.clock.Now()), layout.ErrBadRecord)
	require.Equal(t, map[layout.State]int64{layout.Claimed: 1, layout.Delayed: 1}, nonZero(b.counts()))
	_, there := b.member("b")
	require.False(t, there)
}

// TestAWorkerOfAnotherOpeningIsDead: only one process can have opened the store,
// and only workers that reached it through a connection outlive that process.
func TestAWorkerOfAnotherOpeningIsDead(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	j := b.joinedJanitor()
	for opening, dead := range map[string]bool{j.opening: false, "another": j.opening != ""} {
		m := &fdbmodel.Member{WorkerInfo: layout.WorkerInfo{ID: "a", Opening: opening}, Beat: []byte("1")}
		require.Equal(t, dead, j.isDead(m, b.clock.Now()), opening)
		m.Connection = "c"
		require.False(t, j.isDead(m, b.clock.Now()), opening)
	}
}

// reopened is a store with another opening, or one that is reached through a connection.
type reopened struct {
	kv.Database
	opening, connection string
}

func (s reopened) Traits() kv.Traits {
	traits := kv.TraitsOf(s.Database)
	traits.Opening, traits.Connection = s.opening, s.connection
	return traits
}

// TestTheJanitorOfAnEarlierOpeningIsGone, one that belongs to no worker: who has the store open takes over its role at
// once, and waits for that of one that reaches the store through a connection.
func TestTheJanitorOfAnEarlierOpeningIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, now reopened
		takes       bool
	}{
		"another opening":          {reopened{opening: "1"}, reopened{opening: "2"}, true},
		"the same":                 {reopened{opening: "1"}, reopened{opening: "1"}, false},
		"through a connection":     {reopened{opening: "1", connection: "c"}, reopened{opening: "2"}, false},
		"by one with a connection": {reopened{opening: "1"}, reopened{opening: "2", connection: "c"}, false},
		"no openings":              {reopened{}, reopened{}, false},
	} {
		db, clk := storetest.New(t), clock.NewVirtual(epoch)
		c.before.Database, c.now.Database = db, db
		b := bedOn(t, c.before, layout.Config{}, clk)
		_, held, err := maintenance.Of(b.cluster).Acquire(b.ctx, "no worker", nil, 1)
		require.NoError(t, err)
		require.True(t, held)
		require.Equal(t, c.takes, bedOn(t, c.now, layout.Config{}, clk).joinedJanitor().held, name)
	}
}

// TestAJanitorWithoutTheStoreHasNoRole: another one may have taken it over.
func TestAJanitorWithoutTheStoreHasNoRole(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	j := b.joinedJanitor()
	require.True(t, j.held)
	ended, end := context.WithCancel(b.ctx)
	end()
	require.ErrorIs(t, j.takeRole(ended, b.clock.Now()), context.Canceled)
	require.False(t, j.held)
	require.NoError(t, j.takeRole(b.ctx, b.clock.Now()))
	require.True(t, j.held)
}

// TestDutiesKeepTheirPaceWhenTheClockIsSet has a duty wish for a time that comes
// from a record: were it kept as it is, a clock that is set back by an hour would
// stop the duty for that long.
func TestDutiesKeepTheirPaceWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	now := time.Now()
	wish := time.UnixMilli(now.UnixMilli()).Add(50 * time.Millisecond)
	d := duty{name: "d", every: time.Second, run: func(context.Context, time.Time) (time.Time, error) { return wish, nil }}
	at := (&janitor{}).perform(t.Context(), &d, now)
	require.WithinDuration(t, wish, at, time.Millisecond)
	require.NotEqual(t, at.Round(0).String(), at.String(), "the time can't be told from one that is set")
}
