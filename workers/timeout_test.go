package workers

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/internal/storetest"
)

func TestTimeoutOfAFunctionThatHeedsIt(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	heeds := newBlocker(true)
	causes := make(chan error, 10)
	w := b.start(Options{Slots: 1}, map[string]Function{"slow": func(ctx context.Context, args []byte) ([]byte, error) {
		deadline, ok := ctx.Deadline()
		if left := deadline.Sub(b.clock.Now()); !ok || left > time.Minute {
			return nil, Permanent(errors.New("no deadline"))
		}
		_, err := heeds.run(ctx, args)
		causes <- err
		return nil, err
	}})
	id := b.one("go:slow", func(s *fdbmodel.Submission) { s.Spec.Timeout = time.Minute })
	b.awaitOver(id)
	row := b.row(id)
	require.Equal(t, layout.KindTimeout, row.Exception.Kind)
	require.Contains(t, row.Exception.Message, "1m0s")
	cause := <-causes
	for errors.Is(cause, fdbmodel.ErrReaped) {
		cause = <-causes // a slow machine reaps the living; then it ran again
	}
	require.ErrorIs(t, cause, ErrTimeout)
	require.ErrorIs(t, cause, context.DeadlineExceeded)
	b.await("a free slot", func() bool { return w.Stats().Free.Slots == 1 })
}

func TestFunctionThatIgnoresItsTimeoutKeepsItsSlot(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	ignores := newBlocker(false)
	w := b.start(Options{Slots: 1, CPU: 1000}, map[string]Function{"slow": ignores.run, "echo": echo})
	id := b.one("go:slow", func(s *fdbmodel.Submission) {
		s.Spec.Timeout = time.Minute
		s.Spec.Requirements = layout.Requirements{CPU: 600}
	})
	b.awaitOver(id)
	require.Equal(t, layout.KindTimeout, b.row(id).Exception.Kind)
	stats := w.Stats()
	require.Equal(t, 1, stats.Running)
	require.Equal(t, layout.Resources{CPU: 400, RAM: machineMemory()}, stats.Free)
	next := b.one("go:echo")
	rounds := 0
	b.await("some rounds", func() bool { rounds++; return rounds > 50 })
	row := b.row(next)
	require.False(t, row.State().Terminal())
	close(ignores.end)
	b.awaitOver(next)
	require.Equal(t, layout.Failed, stateOf(b, id))
	require.Zero(t, w.Stats().Lost)
}

// TestRunnerKeepsTheTimeoutOfAModule has the context of a module's call end only
// where its runner does not stop it: the deadline that it tells is later than
// the timeout that the runner is given.
func TestRunnerKeepsTheTimeoutOfAModule(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	runner := make(deadlineRunner, 1)
	b.start(Options{Slots: 1, Modules: runner}, nil)
	module, err := modules.Of(b.cluster).Put(b.ctx, []byte("module"), "")
	require.NoError(t, err)
	began := b.clock.Now()
	id := b.one("wasm:"+module.CID, func(s *fdbmodel.Submission) { s.Spec.Timeout = time.Second })
	b.awaitOver(id)
	require.Equal(t, layout.Realized, stateOf(b, id))
	require.GreaterOrEqual(t, (<-runner).Sub(began), time.Second+moduleGrace)
}

type deadlineRunner chan time.Time

func (r deadlineRunner) RunModule(ctx context.Context, _ ModuleCall) (ModuleOutcome, error) {
	deadline, _ := ctx.Deadline()
	r <- deadline
	return ModuleOutcome{}, nil
}

// TestJobThatNeverRanLeavesOtherTimeouts cancels a future that has a timeout while
// it waits for its pace, beside one that runs.
func TestJobThatNeverRanLeavesOtherTimeouts(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	slow := newBlocker(false)
	w := b.start(Options{Slots: 3}, map[string]Function{"slow": slow.run, "echo": echo})
	running := b.one("go:slow", func(s *fdbmodel.Submission) { s.Spec.Timeout = time.Minute })
	b.begins(slow)
	paced := func(s *fdbmodel.Submission) {
		s.Spec.Pace = &layout.Pace{Key: "example.com", PerSecond: 1e-6}
		s.Spec.Timeout = time.Second
	}
	b.awaitOver(b.one("go:echo", paced))
	waiting := b.one("go:echo", paced)
	b.await("the wait for a pace", func() bool { return stateOf(b, waiting) == layout.Claimed })
	_, _, err := b.cluster.Cancel(b.ctx, waiting, "enough")
	require.NoError(t, err)
	b.awaitOver(waiting)
	require.Equal(t, layout.KindCancelled, b.row(waiting).Exception.Kind)

	b.awaitOver(running)
	require.Equal(t, layout.KindTimeout, b.row(running).Exception.Kind)
	close(slow.end)
	b.await("free slots", func() bool { return w.Stats().Free.Slots == 3 })
}

// stalled is a store that asks for chunks and never gets them.
type stalled struct {
	kv.Database
	asked chan struct{}
}

func (s stalled) Begin(o kv.Options) kv.Tx { return stalledTx{s.Database.Begin(o), s} }

type stalledTx struct {
	kv.Tx
	store stalled
}

func (t stalledTx) Snapshot() kv.Reader { return stalledReader{t.Tx.Snapshot(), t.store} }

type stalledReader struct {
	kv.Reader
	store stalled
}

func (r stalledReader) Get(key []byte) kv.Pending[[]byte] {
	if !bytes.Contains(key, []byte("chunks")) {
		return r.Reader.Get(key)
	}
	return kv.Later(func(ctx context.Context) ([]byte, error) {
		signal.Send(r.store.asked)
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

// TestStopWhileArgumentsLoad stops a worker that waits for the arguments of a
// future that has a timeout.
func TestStopWhileArgumentsLoad(t *testing.T) {
	t.Parallel()
	db := stalled{storetest.New(t), make(chan struct{}, 1)}
	b := bedOn(t, db, layout.Config{}, clock.NewVirtual(epoch))
	w := b.start(Options{Slots: 1, DrainTimeout: time.Second}, map[string]Function{"echo": echo})
	id := b.one("go:echo", func(s *fdbmodel.Submission) {
		s.Args = make([]byte, 5<<20)
		s.Spec.Timeout = time.Hour
	})
	b.await("the read of the arguments", func() bool { return len(db.asked) > 0 })
	w.end()
	row := b.row(id)
	require.Equal(t, layout.Ready, row.State())
	require.Zero(t, row.Attempts)
	b.await("a free slot", func() bool { return w.Stats().Free.Slots == 1 })
}

// TestTheLogSaysWhenAFunctionRanOutOfTime has functions return at once when their time is
// over, and long after it.
func TestTheLogSaysWhenAFunctionRanOutOfTime(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	log := &lines{}
	heeds, ignores := newBlocker(true), newBlocker(false)
	w := b.start(Options{Slots: 2, Logger: log.logger(slog.LevelInfo)},
		map[string]Function{"heeds": heeds.run, "ignores": ignores.run})
	bounded := func(s *fdbmodel.Submission) { s.Spec.Timeout, s.Spec.MaxRetries = time.Minute, 0 }
	prompt := b.one("go:heeds", bounded)
	b.awaitOver(prompt)
	late := b.one("go:ignores", bounded)
	b.awaitOver(late)
	b.clock.Advance(5 * time.Second)
	close(ignores.end)
	b.await("free slots", func() bool { return w.Stats().Free.Slots == 2 })
	require.Zero(t, w.Stats().Lost)
	require.Empty(t, log.about(t, "the function returned after its claim was lost"))
	said := log.about(t, "the function returned when its time was over")
	require.Len(t, said, 1)
	require.Equal(t, prompt.String(), said[0]["future"])
	require.Less(t, said[0]["after"], float64(time.Second))
	said = log.about(t, "the function returned long after its time was over")
	require.Len(t, said, 1)
	require.Equal(t, late.String(), said[0]["future"])
	require.GreaterOrEqual(t, said[0]["after"], float64(5*time.Second))
	require.GreaterOrEqual(t, said[0]["ran"], float64(time.Minute))
}
