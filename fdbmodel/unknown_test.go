package fdbmodel

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// stage is a cluster whose next commit of a tag can be made to fail.
type stage struct {
	t      *testing.T
	ctx    context.Context
	c      *Cluster
	faults *faultkv.Database
	clock  *clock.Virtual
	worker *Registration
	box    *Mailbox
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, ctx: context.Background(), clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000))}
	s.faults = faultkv.Wrap(storetest.New(t), faultkv.Options{LateAfter: -1})
	var err error
	s.c, err = Open(s.ctx, s.faults, "unknown", Options{
		Clock: s.clock, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Config: Config{Retention: time.Minute},
	})
	require.NoError(t, err)
	s.box = s.c.OpenMailbox("session")
	s.worker, err = s.c.Register(s.ctx, s.info())
	require.NoError(t, err)
	return s
}

func (s *stage) info() WorkerInfo {
	return WorkerInfo{Functions: []string{"go:f"}, Capacity: Resources{Slots: 8}, Address: "10.0.0.1:1"}
}

func (s *stage) submit(change ...func(*Submission)) ID {
	sub := Submission{Spec: Spec{Function: "go:f", Session: "session", MaxRetries: 1}, Args: []byte("x")}
	for _, fn := range change {
		fn(&sub)
	}
	got, err := s.c.Submit(s.ctx, []Submission{sub})
	require.NoError(s.t, err)
	return got[0].ID
}

func (s *stage) claim(w *Registration) []ClaimedFuture {
	answer, err := w.Claim(s.ctx, ClaimRequest{Free: Resources{Slots: 8}, Max: 8})
	require.NoError(s.t, err)
	return answer.Futures
}

func (s *stage) finish(w *Registration, done Completion) Outcome {
	outcomes, err := w.Finish(s.ctx, []Completion{done})
	require.NoError(s.t, err)
	return outcomes[0]
}

func (s *stage) state(id ID) State {
	row, err := s.c.Get(s.ctx, id)
	if errors.Is(err, ErrNotFound) {
		return 0
	}
	require.NoError(s.t, err)
	return row.State()
}

func (s *stage) counted(state State) int64 {
	counts, err := s.c.Counts(s.ctx)
	require.NoError(s.t, err)
	return counts.Total(state)
}

// TestUnknownResults makes one commit of each operation end with an unknown
// result, in each form, and looks whether the operation was done once.
func TestUnknownResults(t *testing.T) {
	t.Parallel()
	for tag, play := range map[string]func(s *stage, strike func()){
		"futura-submit": func(s *stage, strike func()) {
			strike()
			id := s.submit()
			require.Equal(s.t, Ready, s.state(id))
			require.Equal(s.t, int64(1), s.counted(Ready))
		},
		"futura-submit of neighbours": func(s *stage, strike func()) {
			strike()
			_, err := s.c.Submit(s.ctx, neighbours(20))
			require.NoError(s.t, err)
			require.Equal(s.t, int64(20), s.counted(Ready))
		},
		"futura-claim": func(s *stage, strike func()) {
			s.submit()
			s.submit()
			strike()
			require.Len(s.t, s.claim(s.worker), 2)
			require.Empty(s.t, s.claim(s.worker))
			require.Equal(s.t, int64(2), s.counted(Claimed))
		},
		"futura-finish": func(s *stage, strike func()) {
			id := s.submit()
			f := s.claim(s.worker)
			strike()
			outcome := s.finish(s.worker, Completion{Future: &f[0], Result: &Result{Value: []byte("y")}})
			require.Contains(s.t, []Outcome{Applied, Already}, outcome)
			require.Equal(s.t, Realized, s.state(id))
			require.Equal(s.t, int64(1), s.counted(Realized))
			notices, _, err := s.box.Listen(s.ctx)
			require.NoError(s.t, err)
			require.Len(s.t, notices, 1)
		},
		"futura-finish of a failure": func(s *stage, strike func()) {
			id := s.submit()
			f := s.claim(s.worker)
			strike()
			s.finish(s.worker, Completion{Future: &f[0], Exception: &Exception{Kind: KindError}})
			row, err := s.c.Get(s.ctx, id)
			require.NoError(s.t, err)
			require.Equal(s.t, Delayed, row.State())
			require.Equal(s.t, 1, row.Attempts.Failed)
		},
		"futura-cancel": func(s *stage, strike func()) {
			id := s.submit()
			strike()
			outcome, state, err := s.c.Cancel(s.ctx, id, "")
			require.NoError(s.t, err)
			require.Contains(s.t, []Outcome{Applied, Already}, outcome)
			require.Equal(s.t, Failed, state)
			require.Equal(s.t, int64(1), s.counted(Failed))
		},
		"futura-configure": func(s *stage, strike func()) {
			strike()
			config, err := s.c.Configure(s.ctx, func(c *Config) { c.Retention = time.Hour })
			require.NoError(s.t, err)
			require.Equal(s.t, time.Hour, config.Retention)
		},
		"futura-retry": func(s *stage, strike func()) {
			id := s.submit()
			_, _, err := s.c.Cancel(s.ctx, id, "")
			require.NoError(s.t, err)
			strike()
			require.NoError(s.t, s.c.Retry(s.ctx, id))
			require.Equal(s.t, Ready, s.state(id))
		},
		"futura-discard": func(s *stage, strike func()) {
			id := s.submit()
			_, _, err := s.c.Cancel(s.ctx, id, "")
			require.NoError(s.t, err)
			strike()
			require.NoError(s.t, s.c.Discard(s.ctx, id))
			require.Equal(s.t, State(0), s.state(id))
			require.Equal(s.t, int64(0), s.counted(Failed))
		},
		"futura-discard of many": func(s *stage, strike func()) {
			ids := []ID{s.submit(), s.submit()}
			_, err := s.c.CancelMany(s.ctx, ids, "")
			require.NoError(s.t, err)
			strike()
			_, err = s.c.DiscardMany(s.ctx, ids)
			require.NoError(s.t, err)
			require.Equal(s.t, int64(0), s.counted(Failed))
		},
		"futura-promote": func(s *stage, strike func()) {
			id := s.submit(func(sub *Submission) { sub.NotBefore = s.c.Now().Add(time.Second) })
			s.clock.Advance(2 * time.Second)
			strike()
			_, _, err := s.c.PromoteDue(s.ctx, id.shard(s.c.config.Shards))
			require.NoError(s.t, err)
			require.Equal(s.t, Ready, s.state(id))
			require.Equal(s.t, int64(1), s.counted(Ready))
		},
		"futura-expire": func(s *stage, strike func()) {
			id := s.submit()
			_, _, err := s.c.Cancel(s.ctx, id, "")
			require.NoError(s.t, err)
			s.clock.Advance(2 * time.Minute)
			strike()
			_, _, _, err = s.c.ExpireDone(s.ctx, id.shard(s.c.config.Shards))
			require.NoError(s.t, err)
			require.Equal(s.t, State(0), s.state(id))
			require.Equal(s.t, int64(0), s.counted(Failed))
		},
		"futura-reap": func(s *stage, strike func()) {
			id := s.submit()
			s.claim(s.worker)
			members, err := s.c.Workers(s.ctx)
			require.NoError(s.t, err)
			strike()
			dead, err := s.c.DeclareDead(s.ctx, members[0].ID, members[0].Beat)
			require.NoError(s.t, err)
			require.True(s.t, dead)
			strike()
			_, err = s.c.ReapClaims(s.ctx, members[0].ID)
			require.NoError(s.t, err)
			row, err := s.c.Get(s.ctx, id)
			require.NoError(s.t, err)
			require.Equal(s.t, Ready, row.State())
			require.Equal(s.t, 1, row.Attempts.Crashes)
			_, err = s.worker.Claim(s.ctx, ClaimRequest{Free: Resources{Slots: 1}, Max: 1})
			require.ErrorIs(s.t, err, ErrReaped)
		},
		"futura-register": func(s *stage, strike func()) {
			id := s.submit()
			old := s.claim(s.worker)
			strike()
			heir, err := s.c.Register(s.ctx, s.info())
			require.NoError(s.t, err)
			require.Equal(s.t, Ready, s.state(id))
			require.Equal(s.t, Lost, s.finish(s.worker, Completion{Future: &old[0], Result: &Result{}}))
			require.Len(s.t, s.claim(heir), 1)
		},
		"futura-leave": func(s *stage, strike func()) {
			id := s.submit()
			s.claim(s.worker)
			strike()
			require.NoError(s.t, s.worker.Leave(s.ctx))
			row, err := s.c.Get(s.ctx, id)
			require.NoError(s.t, err)
			require.Equal(s.t, Ready, row.State())
			require.Equal(s.t, Attempts{}, row.Attempts)
			members, err := s.c.Workers(s.ctx)
			require.NoError(s.t, err)
			require.Empty(s.t, members)
		},
		"futura-beat": func(s *stage, strike func()) {
			id := s.submit()
			s.claim(s.worker)
			_, _, err := s.c.Cancel(s.ctx, id, "")
			require.NoError(s.t, err)
			strike()
			cancelled, err := s.worker.Heartbeat(s.ctx, Resources{Slots: 1}, 1)
			require.NoError(s.t, err)
			require.Contains(s.t, cancelled, id)
		},
		"futura-idle": func(s *stage, strike func()) {
			strike()
			watch, err := s.worker.GoIdle(s.ctx, ClaimRequest{Free: Resources{Slots: 1}})
			require.NoError(s.t, err)
			require.NotNil(s.t, watch)
			s.submit()
			<-watch.Done()
			require.NoError(s.t, watch.Err())
		},
		"futura-subscribe": func(s *stage, strike func()) {
			id := s.submit(func(sub *Submission) { sub.Spec.Session = "" })
			strike()
			over, missing, err := s.c.Subscribe(s.ctx, "session", []ID{id})
			require.NoError(s.t, err)
			require.Empty(s.t, over)
			require.Empty(s.t, missing)
			f := s.claim(s.worker)
			s.finish(s.worker, Completion{Future: &f[0], Result: &Result{}})
			notices, _, err := s.box.Listen(s.ctx)
			require.NoError(s.t, err)
			require.Len(s.t, notices, 1)
		},
		"futura-chunk": func(s *stage, strike func()) {
			strike()
			args := make([]byte, 300_000)
			args[299_999] = 7
			id := s.submit(func(sub *Submission) { sub.Args = args })
			row, err := s.c.Get(s.ctx, id)
			require.NoError(s.t, err)
			got, err := s.c.Args(s.ctx, id, row.Spec)
			require.NoError(s.t, err)
			require.Equal(s.t, args, got)
		},
		"futura-code": func(s *stage, strike func()) {
			strike()
			info, err := s.c.PutModule(s.ctx, []byte("module"), "name")
			require.NoError(s.t, err)
			got, err := s.c.GetModule(s.ctx, info.CID)
			require.NoError(s.t, err)
			require.Equal(s.t, "module", string(got))
		},
		"futura-janitor": func(s *stage, strike func()) {
			strike()
			_, held, err := s.c.HoldJanitor(s.ctx, s.worker.ID(), nil, 1)
			require.NoError(s.t, err)
			require.True(s.t, held)
			_, held, err = s.c.HoldJanitor(s.ctx, "other", nil, 1)
			require.NoError(s.t, err)
			require.False(s.t, held)
		},
		"futura-ack": func(s *stage, strike func()) {
			s.submit()
			f := s.claim(s.worker)
			s.finish(s.worker, Completion{Future: &f[0], Result: &Result{}})
			_, _, err := s.box.Listen(s.ctx)
			require.NoError(s.t, err)
			strike()
			require.NoError(s.t, s.box.Acknowledge(s.ctx))
			notices, watch, err := s.c.OpenMailbox("session").Listen(s.ctx)
			require.NoError(s.t, err)
			require.Empty(s.t, notices)
			watch.Cancel()
		},
		"futura-session": func(s *stage, strike func()) {
			strike()
			require.NoError(s.t, s.box.Refresh(s.ctx))
			sessions, err := s.c.Sessions(s.ctx)
			require.NoError(s.t, err)
			require.Contains(s.t, sessions, SessionID("session"))
		},
	} {
		for _, fault := range []faultkv.Fault{faultkv.UnknownLanded, faultkv.UnknownLost, faultkv.UnknownLate} {
			t.Run(tag+" "+fault.String(), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				struck := 0
				play(s, func() {
					struck++
					s.faults.FailNext(fault, func(found string) bool { return len(found) > 0 && hasTag(tag, found) })
				})
				s.faults.Flush()
				require.Equal(t, struck, int(s.faults.Counts().Injected[fault]), "the fault did not happen")
				report, err := s.c.Check(s.ctx, CheckOptions{})
				require.NoError(t, err)
				require.Empty(t, report.Problems)
				require.NoError(t, s.faults.Close())
			})
		}
	}
}

// hasTag tells whether a test's name begins with a tag.
func hasTag(name, tag string) bool { return len(name) >= len(tag) && name[:len(tag)] == tag }
