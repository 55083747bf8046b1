package fdbmodel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// stage is a cluster whose next commit of a tag can be made to fail.
type stage struct {
	t      *testing.T
	Ctx    context.Context
	C      *fdbmodel.Cluster
	faults *faultkv.Database
	Clock  *clock.Virtual
	Worker *fdbmodel.Registration
	box    *fdbmodel.Mailbox
}

func NewStage(t *testing.T) *stage {
	s := &stage{t: t, Ctx: context.Background(), Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000))}
	s.faults = faultkv.Wrap(storetest.New(t), faultkv.Options{LateAfter: -1})
	var err error
	s.C, err = fdbmodel.Open(s.Ctx, s.faults, "unknown", fdbmodel.Options{
		Clock: s.Clock, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Config: layout.Config{Retention: time.Minute},
	})
	require.NoError(t, err)
	s.box = s.C.OpenMailbox("session")
	s.Worker, err = s.C.Register(s.Ctx, s.info())
	require.NoError(t, err)
	return s
}

func (s *stage) info() layout.WorkerInfo {
	return layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 8}, Address: "10.0.0.1:1"}
}

func (s *stage) Submit(change ...func(*fdbmodel.Submission)) layout.ID {
	sub := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Session: "session", MaxRetries: 1}, Args: []byte("x")}
	for _, fn := range change {
		fn(&sub)
	}
	got, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{sub})
	require.NoError(s.t, err)
	return got[0].ID
}

func (s *stage) Claim(w *fdbmodel.Registration) []fdbmodel.ClaimedFuture {
	answer, err := w.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 8}, Max: 8})
	require.NoError(s.t, err)
	return answer.Futures
}

func (s *stage) finish(w *fdbmodel.Registration, done fdbmodel.Completion) fdbmodel.Outcome {
	outcomes, err := w.Finish(s.Ctx, []fdbmodel.Completion{done})
	require.NoError(s.t, err)
	return outcomes[0]
}

func (s *stage) state(id layout.ID) layout.State {
	row, err := s.C.Get(s.Ctx, id)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return 0
	}
	require.NoError(s.t, err)
	return row.State()
}

func (s *stage) counted(state layout.State) int64 {
	counts, err := s.C.Counts(s.Ctx)
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
			id := s.Submit()
			require.Equal(s.t, layout.Ready, s.state(id))
			require.Equal(s.t, int64(1), s.counted(layout.Ready))
		},
		"futura-submit of neighbours": func(s *stage, strike func()) {
			strike()
			_, err := s.C.Submit(s.Ctx, neighbours(20))
			require.NoError(s.t, err)
			require.Equal(s.t, int64(20), s.counted(layout.Ready))
		},
		"futura-claim": func(s *stage, strike func()) {
			s.Submit()
			s.Submit()
			strike()
			require.Len(s.t, s.Claim(s.Worker), 2)
			require.Empty(s.t, s.Claim(s.Worker))
			require.Equal(s.t, int64(2), s.counted(layout.Claimed))
		},
		"futura-finish": func(s *stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)
			strike()
			outcome := s.finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{Value: []byte("y")}})
			require.Contains(s.t, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Already}, outcome)
			require.Equal(s.t, layout.Realized, s.state(id))
			require.Equal(s.t, int64(1), s.counted(layout.Realized))
			notices, _, err := s.box.Listen(s.Ctx)
			require.NoError(s.t, err)
			require.Len(s.t, notices, 1)
		},
		"futura-finish of a failure": func(s *stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)
			strike()
			s.finish(s.Worker, fdbmodel.Completion{Future: &f[0], Exception: &layout.Exception{Kind: layout.KindError}})
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.t, err)
			require.Equal(s.t, layout.Delayed, row.State())
			require.Equal(s.t, 1, row.Attempts.Failed)
		},
		"futura-cancel": func(s *stage, strike func()) {
			id := s.Submit()
			strike()
			outcome, state, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.t, err)
			require.Contains(s.t, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Already}, outcome)
			require.Equal(s.t, layout.Failed, state)
			require.Equal(s.t, int64(1), s.counted(layout.Failed))
		},
		"futura-configure": func(s *stage, strike func()) {
			strike()
			config, err := s.C.Configure(s.Ctx, func(c *layout.Config) { c.Retention = time.Hour })
			require.NoError(s.t, err)
			require.Equal(s.t, time.Hour, config.Retention)
		},
		"futura-retry": func(s *stage, strike func()) {
			id := s.Submit()
			_, _, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.t, err)
			strike()
			require.NoError(s.t, s.C.Retry(s.Ctx, id))
			require.Equal(s.t, layout.Ready, s.state(id))
		},
		"futura-discard": func(s *stage, strike func()) {
			id := s.Submit()
			_, _, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.t, err)
			strike()
			require.NoError(s.t, s.C.Discard(s.Ctx, id))
			require.Equal(s.t, layout.State(0), s.state(id))
			require.Equal(s.t, int64(0), s.counted(layout.Failed))
		},
		"futura-discard of many": func(s *stage, strike func()) {
			ids := []layout.ID{s.Submit(), s.Submit()}
			_, err := s.C.CancelMany(s.Ctx, ids, "")
			require.NoError(s.t, err)
			strike()
			_, err = s.C.DiscardMany(s.Ctx, ids)
			require.NoError(s.t, err)
			require.Equal(s.t, int64(0), s.counted(layout.Failed))
		},
		"futura-promote": func(s *stage, strike func()) {
			id := s.Submit(func(sub *fdbmodel.Submission) { sub.NotBefore = s.C.Now().Add(time.Second) })
			s.Clock.Advance(2 * time.Second)
			strike()
			_, _, err := s.C.PromoteDue(s.Ctx, id.Shard(s.C.Config().Shards))
			require.NoError(s.t, err)
			require.Equal(s.t, layout.Ready, s.state(id))
			require.Equal(s.t, int64(1), s.counted(layout.Ready))
		},
		"futura-expire": func(s *stage, strike func()) {
			id := s.Submit()
			_, _, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.t, err)
			s.Clock.Advance(2 * time.Minute)
			strike()
			_, _, _, err = s.C.ExpireDone(s.Ctx, id.Shard(s.C.Config().Shards))
			require.NoError(s.t, err)
			require.Equal(s.t, layout.State(0), s.state(id))
			require.Equal(s.t, int64(0), s.counted(layout.Failed))
		},
		"futura-reap": func(s *stage, strike func()) {
			id := s.Submit()
			s.Claim(s.Worker)
			members, err := s.C.Workers(s.Ctx)
			require.NoError(s.t, err)
			strike()
			dead, err := s.C.DeclareDead(s.Ctx, members[0].ID, members[0].Beat)
			require.NoError(s.t, err)
			require.True(s.t, dead)
			strike()
			_, err = s.C.ReapClaims(s.Ctx, members[0].ID)
			require.NoError(s.t, err)
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.t, err)
			require.Equal(s.t, layout.Ready, row.State())
			require.Equal(s.t, 1, row.Attempts.Crashes)
			_, err = s.Worker.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
			require.ErrorIs(s.t, err, fdbmodel.ErrReaped)
		},
		"futura-register": func(s *stage, strike func()) {
			id := s.Submit()
			old := s.Claim(s.Worker)
			strike()
			heir, err := s.C.Register(s.Ctx, s.info())
			require.NoError(s.t, err)
			require.Equal(s.t, layout.Ready, s.state(id))
			require.Equal(s.t, fdbmodel.Lost, s.finish(s.Worker, fdbmodel.Completion{Future: &old[0], Result: &layout.Result{}}))
			require.Len(s.t, s.Claim(heir), 1)
		},
		"futura-leave": func(s *stage, strike func()) {
			id := s.Submit()
			s.Claim(s.Worker)
			strike()
			require.NoError(s.t, s.Worker.Leave(s.Ctx))
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.t, err)
			require.Equal(s.t, layout.Ready, row.State())
			require.Equal(s.t, layout.Attempts{}, row.Attempts)
			members, err := s.C.Workers(s.Ctx)
			require.NoError(s.t, err)
			require.Empty(s.t, members)
		},
		"futura-beat": func(s *stage, strike func()) {
			id := s.Submit()
			s.Claim(s.Worker)
			_, _, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.t, err)
			strike()
			cancelled, err := s.Worker.Heartbeat(s.Ctx, layout.Resources{Slots: 1}, 1)
			require.NoError(s.t, err)
			require.Contains(s.t, cancelled, id)
		},
		"futura-idle": func(s *stage, strike func()) {
			strike()
			watch, err := s.Worker.GoIdle(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}})
			require.NoError(s.t, err)
			require.NotNil(s.t, watch)
			s.Submit()
			<-watch.Done()
			require.NoError(s.t, watch.Err())
		},
		"futura-subscribe": func(s *stage, strike func()) {
			id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Session = "" })
			strike()
			over, missing, err := s.C.Subscribe(s.Ctx, "session", []layout.ID{id})
			require.NoError(s.t, err)
			require.Empty(s.t, over)
			require.Empty(s.t, missing)
			f := s.Claim(s.Worker)
			s.finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{}})
			notices, _, err := s.box.Listen(s.Ctx)
			require.NoError(s.t, err)
			require.Len(s.t, notices, 1)
		},
		"futura-chunk": func(s *stage, strike func()) {
			strike()
			args := make([]byte, 300_000)
			args[299_999] = 7
			id := s.Submit(func(sub *fdbmodel.Submission) { sub.Args = args })
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.t, err)
			got, err := s.C.Args(s.Ctx, id, row.Spec)
			require.NoError(s.t, err)
			require.Equal(s.t, args, got)
		},
		"futura-code": func(s *stage, strike func()) {
			strike()
			info, err := s.C.PutModule(s.Ctx, []byte("module"), "name")
			require.NoError(s.t, err)
			got, err := s.C.GetModule(s.Ctx, info.CID)
			require.NoError(s.t, err)
			require.Equal(s.t, "module", string(got))
		},
		"futura-janitor": func(s *stage, strike func()) {
			strike()
			_, held, err := s.C.HoldJanitor(s.Ctx, s.Worker.ID(), nil, 1)
			require.NoError(s.t, err)
			require.True(s.t, held)
			_, held, err = s.C.HoldJanitor(s.Ctx, "other", nil, 1)
			require.NoError(s.t, err)
			require.False(s.t, held)
		},
		"futura-ack": func(s *stage, strike func()) {
			s.Submit()
			f := s.Claim(s.Worker)
			s.finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{}})
			_, _, err := s.box.Listen(s.Ctx)
			require.NoError(s.t, err)
			strike()
			require.NoError(s.t, s.box.Acknowledge(s.Ctx))
			notices, watch, err := s.C.OpenMailbox("session").Listen(s.Ctx)
			require.NoError(s.t, err)
			require.Empty(s.t, notices)
			watch.Cancel()
		},
		"futura-session": func(s *stage, strike func()) {
			strike()
			require.NoError(s.t, s.box.Refresh(s.Ctx))
			sessions, err := s.C.Sessions(s.Ctx)
			require.NoError(s.t, err)
			require.Contains(s.t, sessions, layout.SessionID("session"))
		},
	} {
		for _, fault := range []faultkv.Fault{faultkv.UnknownLanded, faultkv.UnknownLost, faultkv.UnknownLate} {
			t.Run(tag+" "+fault.String(), func(t *testing.T) {
				t.Parallel()
				s := NewStage(t)
				struck := 0
				play(s, func() {
					struck++
					s.faults.FailNext(fault, func(found string) bool { return len(found) > 0 && hasTag(tag, found) })
				})
				s.faults.Flush()
				require.Equal(t, struck, int(s.faults.Counts().Injected[fault]), "the fault did not happen")
				report, err := audit.Check(s.Ctx, s.C, audit.Options{})
				require.NoError(t, err)
				require.Empty(t, report.Problems)
				require.NoError(t, s.faults.Close())
			})
		}
	}
}

// hasTag tells whether a test's name begins with a tag.
func hasTag(name, tag string) bool { return len(name) >= len(tag) && name[:len(tag)] == tag }
