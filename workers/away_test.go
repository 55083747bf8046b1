package workers

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// leavable is a store that may be away: nothing commits then.
type leavable struct {
	kv.Database
	away atomic.Bool
}

func (l *leavable) Begin(o kv.Options) kv.Tx { return &leavableTx{l.Database.Begin(o), l} }

type leavableTx struct {
	kv.Tx
	store *leavable
}

func (l *leavableTx) Commit(ctx context.Context) (kv.Committed, error) {
	if l.store.away.Load() {
		return kv.Committed{}, kv.ErrUnavailable
	}
	return l.Tx.Commit(ctx)
}

// TestAWorkerEndsInTimeWhileTheStoreIsAway stops workers that are idle, and one whose function goes on or has ended.
func TestAWorkerEndsInTimeWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	if storetest.OnServer {
		t.Skip("beside a server the time of a stop is not the worker's alone")
	}
	const drain = 15 * time.Second
	for name, c := range map[string]struct {
		busy, ends bool
		objects    int64
		within     time.Duration
	}{
		"idle":              {within: leaveTimeout + awayGrace},
		"idle with objects": {objects: 1 << 20, within: leaveTimeout + awayGrace},
		"busy":              {busy: true, within: drain + awayGrace},
		"with a result":     {busy: true, ends: true, within: leaveTimeout + awayGrace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := inBubble
			if c.objects > 0 { // they have a socket
				in = func(t *testing.T, test func(*testing.T)) { test(t) }
			}
			in(t, func(t *testing.T) {
				store := &leavable{Database: storetest.New(t)}
				b := bedOn(t, store, layout.Config{}, clock.NewVirtual(epoch))
				work := newBlocker(true)
				w := b.start(Options{Slots: 1, DrainTimeout: drain, Objects: ObjectOptions{Memory: c.objects}},
					map[string]Function{"work": work.run})
				id := b.one("go:work")
				if c.busy {
					b.begins(work)
				} else {
					close(work.end)
					b.awaitOver(id)
				}
				store.away.Store(true)
				b.mu.Lock()
				w.frozen = true // the clock does not wait for its heartbeats
				b.mu.Unlock()
				began := b.clock.Now()
				w.stop()
				if c.ends {
					close(work.end)
				}
				b.await("the end of the worker", func() bool {
					select {
					case <-w.done:
						return true
					default:
						return false
					}
				})
				const margin = 2 * time.Second // a tick of the clock, and what functions have to return
				require.LessOrEqual(t, b.clock.Now().Sub(began), c.within+margin)
				w.once.Do(func() {}) // this error is expected
				require.ErrorIs(t, w.err, kv.ErrUnavailable)
				store.away.Store(false)
				_, there := b.member(w.ID())
				require.True(t, there, "until a janitor finds it dead")
			})
		})
	}
}

// TestTheLogSaysThatTheStoreIsAway, once, and when it is back.
func TestTheLogSaysThatTheStoreIsAway(t *testing.T) {
	t.Parallel()
	if storetest.OnServer {
		t.Skip("beside a server the time of a heartbeat is not the worker's alone")
	}
	for name, fleet := range map[string]bool{"alone": false, "in a fleet": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				store := &leavable{Database: storetest.New(t)}
				b := bedOn(t, store, layout.Config{DeadAfter: time.Hour}, clock.NewVirtual(epoch))
				log := &lines{}
				o, number := Options{Logger: log.logger(slog.LevelInfo)}, 1
				if fleet {
					o.Fleet, number = NewFleet(b.cluster), 3
				}
				for range number {
					w := b.start(o, map[string]Function{"echo": echo})
					b.mu.Lock()
					w.frozen = true // the clock does not wait for its heartbeats
					b.mu.Unlock()
				}
				const away, back = "the store does not answer", "the store answers again"
				went := b.clock.Now()
				store.away.Store(true)
				b.await("the warning", func() bool { return len(log.about(t, away)) > 0 })
				line := log.about(t, away)[0]
				require.Equal(t, "WARN", line["level"])
				require.Contains(t, line["error"], kv.ErrUnavailable.Error())
				require.Less(t, b.clock.Now().Sub(went), time.Hour)
				b.await("ten minutes", func() bool { return b.clock.Now().Sub(went) > time.Hour/6 })
				require.Empty(t, log.about(t, back))
				store.away.Store(false)
				b.await("the end of the outage", func() bool { return len(log.about(t, back)) > 0 })
				require.Equal(t, "INFO", log.about(t, back)[0]["level"])
				b.one("go:echo")
				require.Len(t, log.about(t, away), 1)
				require.Len(t, log.about(t, back), 1)
			})
		})
	}
}
