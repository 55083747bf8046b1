package futures_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/storetest"
)

// stepped is a client whose clock and rounds the test controls.
type stepped struct {
	*futures.Client
	clock *clock.Virtual
	seam  *seam.Client
}

// newManual returns a client that runs only when it is stepped, on a clock.
func newManual(t testing.TB, db kv.Database, clk clock.Clock, s *seam.Client) *futures.Client {
	cluster, err := fdbmodel.Open(context.Background(), db, futures.DefaultCluster, fdbmodel.Options{Clock: clk})
	require.NoError(t, err)
	c, err := futures.FromCluster(cluster, futures.Options{Seam: s})
	require.NoError(t, err)
	return c
}

func newStepped(t *testing.T, db kv.Database) stepped {
	clk := clock.NewVirtual(time.Unix(1_000_000, 0))
	var s seam.Client
	c := newManual(t, db, clk, &s)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return stepped{c, clk, &s}
}

// round moves the clock and runs a round.
func (s stepped) round(t *testing.T, d time.Duration) time.Time {
	s.clock.Advance(d)
	next, err := s.seam.Step(context.Background(), s.clock.Now())
	require.NoError(t, err)
	return next
}

// unnoticed submits futures of whose ends the client gets no notices unless it subscribes.
func (s stepped) unnoticed(t *testing.T, n int) (fs []*futures.Future) {
	for range n {
		f, err := s.Submit(context.Background(), futures.Task{Function: "go:upper", NoNotify: true})
		require.NoError(t, err)
		fs = append(fs, f)
	}
	return fs
}

func (s stepped) session(t *testing.T, f *futures.Future) layout.SessionID {
	row, err := s.Cluster().Get(context.Background(), f.ID())
	require.NoError(t, err)
	return row.Spec.Session
}

func isOver(f *futures.Future) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}

func newStore(t *testing.T) kv.Database {
	db := storetest.New(t)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// TestMailThatCannotBeRead has some of the mail written by a newer version: the
// ends in it are still found at once, as are those in the other mail.
func TestMailThatCannotBeRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := newStore(t)
	s := newStepped(t, db)
	s.round(t, 0)
	const each = 3
	var fs []*futures.Future
	newer := 0
	for n := range 3 {
		for range each {
			f, err := s.Submit(ctx, futures.Task{Function: "go:upper", Args: []byte("x")})
			require.NoError(t, err)
			require.False(t, isOver(f))
			fs = append(fs, f)
		}
		require.Equal(t, each, newExecutor(t, s.Client, echo).all(t))
		if n == 1 {
			newer = makeMailNewer(t, db)
			require.Positive(t, newer)
		}
	}
	for range 5 {
		s.round(t, 0)
	}
	for _, f := range fs {
		require.True(t, isOver(f))
	}
	s.round(t, time.Second)
	require.Zero(t, makeMailNewer(t, db), "all of it is let go of")
}

// makeMailNewer gives all mail a newer version, and returns the number of keys.
func makeMailNewer(t *testing.T, db kv.Database) (n int) {
	_, err := kv.Transact(context.Background(), db, kv.Retry{}, func(tx kv.Attempt) error {
		n = 0
		page, err := tx.GetRange(kv.Range{Begin: []byte{1}, End: []byte{0xff}}, kv.RangeOptions{}).Wait(context.Background())
		for _, item := range page.Items {
			if keyspace.Table().Describe(item.Key).Kind == "mail" {
				tx.Set(item.Key, append([]byte{99}, item.Value[1:]...))
				n++
			}
		}
		return err
	})
	require.NoError(t, err)
	return n
}

func TestStepDelivers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newStepped(t, newStore(t))
	require.Equal(t, s.clock.Now().Add(s.Cluster().Config().Heartbeat), s.round(t, 0), "there is nothing to do yet")
	var fs []*futures.Future
	for i := range 300 {
		f, err := s.Submit(ctx, futures.Task{Function: "go:upper", Args: fmt.Appendf(nil, "%d", i)})
		require.NoError(t, err)
		fs = append(fs, f)
	}
	s.round(t, 0)
	require.False(t, isOver(fs[0]))
	require.Equal(t, 300, newExecutor(t, s.Client, echo).all(t))
	next := s.round(t, 0)
	require.Equal(t, s.clock.Now().Add(time.Second), next, "notices are let go of after a second")
	results, err := s.AwaitAll(ctx, fs)
	require.NoError(t, err)
	require.Equal(t, "ran 299", string(results[299].Value))
	next = s.round(t, time.Second)
	require.True(t, next.After(s.clock.Now().Add(time.Second)), "nothing is left to let go of")
	sessions, err := maintenance.Of(s.Cluster()).Sessions(ctx)
	require.NoError(t, err)
	require.Len(t, sessions, 1)
}

func TestSessionIsRefreshedInTime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newStepped(t, newStore(t))
	f, err := s.Submit(ctx, futures.Task{Function: "go:upper"})
	require.NoError(t, err)
	id := s.session(t, f)
	var last string
	for range 5 {
		next := s.round(t, 0)
		sessions, err := maintenance.Of(s.Cluster()).Sessions(ctx)
		require.NoError(t, err)
		require.NotEqual(t, last, string(sessions[id]))
		last = string(sessions[id])
		require.LessOrEqual(t, next.Sub(s.clock.Now()), s.Cluster().Config().Heartbeat)
		s.clock.Advance(s.Cluster().Config().Heartbeat)
	}
	require.NoError(t, s.Close(ctx))
	sessions, err := maintenance.Of(s.Cluster()).Sessions(ctx)
	require.NoError(t, err)
	require.Empty(t, sessions)
}

// TestMailOfASweptSession loses the notices of a session, as happens when the
// janitor removes one without a heartbeat.
func TestMailOfASweptSession(t *testing.T) {
	t.Parallel()
	swept := func() (stepped, []*futures.Future) {
		s := newStepped(t, newStore(t))
		var fs []*futures.Future
		for range 250 {
			f, err := s.Submit(context.Background(), futures.Task{Function: "go:upper"})
			require.NoError(t, err)
			fs = append(fs, f)
			require.False(t, isOver(f))
		}
		s.round(t, 0)
		newExecutor(t, s.Client, echo).all(t)
		require.NoError(t, maintenance.Of(s.Cluster()).DropSession(context.Background(), s.session(t, fs[0])))
		return s, fs
	}
	over := func(fs []*futures.Future) (n int) {
		for _, f := range fs {
			if isOver(f) {
				n++
			}
		}
		return n
	}

	paused, fs := swept()
	paused.round(t, paused.Cluster().Config().DeadAfter)
	require.Equal(t, 250, over(fs), "after a pause that long everything is asked for again")
	_, err := paused.AwaitAll(context.Background(), fs)
	require.NoError(t, err)

	noticed, fs := swept()
	noticed.round(t, noticed.Cluster().Config().Heartbeat)
	require.Equal(t, 250, over(fs), "a session that is gone is noticed when it says that it lives")

	awake, fs := swept()
	require.NoError(t, mailbox.Open(awake.Cluster(), awake.session(t, fs[0])).Refresh(context.Background()))
	for range 6 {
		awake.round(t, 4999*time.Millisecond)
		require.Zero(t, over(fs))
	}
	for _, want := range []int{100, 200, 250} {
		require.Zero(t, over(fs)%100)
		awake.round(t, 100*time.Millisecond)
		require.Equal(t, want, over(fs), "one batch after the other")
	}
}

func TestFailureOfALifeBeforeTheRetry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := newStore(t)
	c, other := newStepped(t, db), newStepped(t, db)
	submitted, err := c.Submit(ctx, futures.Task{Function: "go:fail"})
	require.NoError(t, err)
	f := other.Future(submitted.ID())
	require.False(t, isOver(f))
	other.round(t, 0)
	e := newExecutor(t, c.Client, echo)
	require.Equal(t, 1, e.all(t))
	require.NoError(t, c.Retry(ctx, f.ID()))
	other.round(t, 0)
	require.False(t, isOver(f), "the notice tells of a failure that counts no more")
	e.run = func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		return fdbmodel.Completion{Future: f, Result: &layout.Result{Value: []byte("at last")}}
	}
	require.Equal(t, 1, e.all(t))
	other.round(t, 0)
	require.True(t, isOver(f))
	r, err := f.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "at last", string(r.Value))
}

// TestAwaitOfWhatManyAwait: of what as many sessions await as are told of it, another one hears when it looks again.
func TestAwaitOfWhatManyAwait(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newStepped(t, newStore(t))
	fs := s.unnoticed(t, 3)
	for i := range layout.MaxSubscribers {
		box := mailbox.Open(s.Cluster(), layout.SessionID(fmt.Sprintf("%016x", i)))
		require.NoError(t, box.Refresh(ctx))
		_, _, err := box.Subscribe(ctx, []futures.ID{fs[1].ID()})
		require.NoError(t, err)
	}
	for _, f := range fs {
		require.False(t, isOver(f))
	}
	s.round(t, 0)
	newExecutor(t, s.Client, echo).all(t)
	s.round(t, 0)
	_, err := s.AwaitAll(ctx, append(fs[:1:1], fs[2:]...))
	require.NoError(t, err)
	require.False(t, isOver(fs[1]))
	s.round(t, 30*time.Second)
	_, err = fs[1].Await(ctx)
	require.NoError(t, err)
}

// TestSubscriptionThatFailsIsItsOwn ends the await of a future whose records can't be read, and no other.
func TestSubscriptionThatFailsIsItsOwn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newStepped(t, newStore(t))
	fs := s.unnoticed(t, 5)
	_, err := s.Cluster().Transact(ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(s.Cluster().Keys().Spec(fs[2].ID()), []byte("no record"))
		return nil
	})
	require.NoError(t, err)
	for _, f := range fs {
		require.False(t, isOver(f))
	}
	s.round(t, 0)
	_, err = fs[2].Await(ctx)
	require.ErrorIs(t, err, layout.ErrNewerRecord)
	newExecutor(t, s.Client, echo).all(t)
	s.round(t, 0)
	_, err = s.AwaitAll(ctx, append(fs[:2:2], fs[3:]...))
	require.NoError(t, err)
}

func TestDriveEndsAwaits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clk := clock.NewVirtual(time.Unix(1_000_000, 0))
	var manual seam.Client
	var e *executor
	manual.Drive = func(ctx context.Context) error {
		e.all(t)
		_, err := manual.Step(ctx, clk.Now())
		return err
	}
	c := newManual(t, newStore(t), clk, &manual)
	e = newExecutor(t, c, echo)
	f, err := c.Submit(ctx, futures.Task{Function: "go:upper"})
	require.NoError(t, err)
	r, err := f.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "ran ", string(r.Value))
	require.NoError(t, c.Close(ctx))
	_, err = manual.Step(ctx, clk.Now())
	require.ErrorIs(t, err, futures.ErrClosed)
}
