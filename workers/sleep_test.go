package workers

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/taskcontext"
)

// sleeper is a function with one sleep, that counts its runs and says when it woke.
type sleeper struct {
	runs atomic.Int32
	woke chan time.Time
}

func (s *sleeper) run(d time.Duration) Function {
	return func(ctx context.Context, _ []byte) ([]byte, error) {
		s.runs.Add(1)
		all := ctx.Value(taskcontext.StepsKey{}).(taskcontext.Steps)
		name, earlier, err := all.Ask(ctx, "sleep")
		if err != nil {
			return nil, err
		}
		wake := all.Now().Add(d)
		if earlier != nil {
			wake = earlier.Wake
		} else if err := all.Record(ctx, name, taskcontext.RecordedStep{Started: all.Now(), Wake: wake}); err != nil {
			return nil, err
		}
		if err := all.SleepUntil(ctx, wake); err != nil {
			return nil, err
		}
		s.woke <- all.Now()
		return nil, nil
	}
}

// TestASleepThatIsBegunTooEarlyWaits has others begin each attempt at once, as a janitor whose clock is ahead does.
func TestASleepThatIsBegunTooEarlyWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		s := &sleeper{woke: make(chan time.Time, 1)}
		b.start(Options{Slots: 1}, map[string]Function{"sleep": s.run(20 * time.Second)})
		began := b.clock.Now()
		id := b.one("go:sleep")
		for len(s.woke) == 0 {
			b.await("the next attempt", func() bool {
				row := b.row(id)
				if row.State() == layout.Delayed {
					b.hurry(id)
				}
				return row.State().Terminal()
			})
		}
		require.GreaterOrEqual(t, (<-s.woke).Sub(began), 20*time.Second)
		require.LessOrEqual(t, s.runs.Load(), int32(6), "each run waits five seconds")
	})
}

// settable is a clock that was set by a time, to which its timers are blind.
type settable struct {
	clock.Clock
	by atomic.Int64
}

func (s *settable) offset() time.Duration { return time.Duration(s.by.Load()) }

func (s *settable) Now() time.Time { return s.Clock.Now().Add(s.offset()) }

func (s *settable) At(t time.Time) clock.Timer { return s.Clock.At(t.Add(-s.offset())) }

func (s *settable) AfterFunc(t time.Time, f func()) (stop func()) {
	return s.Clock.AfterFunc(t.Add(-s.offset()), f)
}

// TestAShortSleepHeedsAClockThatIsSetBack sets the clock while a function sleeps in its place.
func TestAShortSleepHeedsAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		set := &settable{Clock: b.clock}
		cluster, err := fdbmodel.Open(b.ctx, b.db, "test", fdbmodel.Options{Clock: set})
		require.NoError(t, err)
		b.cluster = cluster
		s := &sleeper{woke: make(chan time.Time, 1)}
		w := b.start(Options{Slots: 1}, map[string]Function{"sleep": s.run(4 * time.Second)})
		began := set.Now()
		id := b.one("go:sleep")
		b.await("the sleep", func() bool { return w.awaiting() == 1 })
		b.mu.Lock()
		w.frozen = true // its heartbeats are set back too, so the clock must not wait for them
		b.mu.Unlock()
		set.by.Store(int64(-40 * time.Second))
		b.awaitOver(id)
		require.GreaterOrEqual(t, (<-s.woke).Sub(began), 4*time.Second)
	})
}
