package mailbox_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// end submits a future of a session, and ends it.
func end(s *modeltest.Stage, session layout.SessionID) {
	s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Session = session })
	f := s.Claim(s.Worker)
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{}})
}

// TestMailIsHeard has those who hear of a session's mail called once it is there, until
// they stop.
func TestMailIsHeard(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	var first, second, other int
	box := mailbox.Open(s.C, "a")
	stop := box.Hear(func() {
		first++
		notices, watch, err := box.Listen(s.Ctx)
		require.NoError(t, err)
		watch.Cancel()
		require.Len(t, notices, 1)
	})
	stopSecond := mailbox.Open(s.C, "a").Hear(func() { second++ })
	mailbox.Open(s.C, "b").Hear(func() { other++ })()
	end(s, "a")
	end(s, "b")
	require.Equal(t, []int{1, 1, 0}, []int{first, second, other})
	stop()
	stop()
	end(s, "a")
	require.Equal(t, []int{1, 2, 0}, []int{first, second, other})
	stopSecond()
	require.Zero(t, mailbox.Hearers(s.C))
}

// TestMailComesWithAWatchForTheNext has a notice arrive after the mail before it was read.
func TestMailComesWithAWatchForTheNext(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	box := mailbox.Open(s.C, "a")
	end(s, "a")
	for range 3 {
		notices, watch, err := box.Listen(s.Ctx)
		require.NoError(t, err)
		require.Len(t, notices, 1)
		require.NotNil(t, watch)
		select {
		case <-watch.Done():
			require.Fail(t, "nothing has come")
		default:
		}
		end(s, "a")
		<-watch.Done()
		require.NoError(t, watch.Err())
	}
}

// TestTheEndOfADependantIsHeard has a future fail with its input: its client hears of it at
// once, as of any end.
func TestTheEndOfADependantIsHeard(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	var heard []layout.ID
	s.C.OnNotices(func(mail map[layout.SessionID][]layout.Notice, _ kv.Version) {
		for _, n := range mail["session"] {
			heard = append(heard, n.ID)
		}
	})
	input := s.Submit()
	user := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{input} })
	claimed := s.Claim(s.Worker)
	require.Len(t, claimed, 1)
	_, err := s.Worker.Finish(s.Ctx, []fdbmodel.Completion{{Future: &claimed[0], Permanent: true,
		Exception: &layout.Exception{Kind: layout.KindError}}})
	require.NoError(t, err)
	require.Equal(t, layout.Failed, s.State(user))
	require.Equal(t, []layout.ID{input, user}, heard)
}

// TestUnknownResults injects each form of an unknown result into commits of sessions.
func TestUnknownResults(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-subscribe": func(s *modeltest.Stage, strike func()) {
			id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Session = "" })
			strike()
			over, missing, err := s.Box.Subscribe(s.Ctx, []layout.ID{id})
			require.NoError(s.T, err)
			require.Empty(s.T, over)
			require.Empty(s.T, missing)
			f := s.Claim(s.Worker)
			s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{}})
			notices, _, err := s.Box.Listen(s.Ctx)
			require.NoError(s.T, err)
			require.Len(s.T, notices, 1)
		},
		"futura-subscribe after an unsubscribe": func(s *modeltest.Stage, strike func()) {
			id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Session = "" })
			strike()
			require.NoError(s.T, s.Box.Unsubscribe(s.Ctx, []layout.ID{id}))
			_, _, err := s.Box.Subscribe(s.Ctx, []layout.ID{id})
			require.NoError(s.T, err)
			s.Faults.Flush() // the late twin does not undo it
			f := s.Claim(s.Worker)
			s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{}})
			notices, _, err := s.Box.Listen(s.Ctx)
			require.NoError(s.T, err)
			require.Len(s.T, notices, 1)
		},
		"futura-subscribe in the place of one that is gone": func(s *modeltest.Stage, strike func()) {
			id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Session = "" })
			for n := range layout.MaxSubscribers {
				_, _, err := mailbox.Open(s.C, layout.SessionID(fmt.Sprint(n))).Subscribe(s.Ctx, []layout.ID{id})
				require.NoError(s.T, err)
			}
			strike()
			_, _, err := s.Box.Subscribe(s.Ctx, []layout.ID{id})
			require.NoError(s.T, err)
			// One of them comes back, which a late twin does not undo.
			_, _, err = mailbox.Open(s.C, "7").Subscribe(s.Ctx, []layout.ID{id})
			require.NoError(s.T, err)
			s.Faults.Flush()
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.ElementsMatch(s.T, []layout.SessionID{"session", "7"}, row.Subscribers)
		},
		"futura-session that comes back": func(s *modeltest.Stage, strike func()) {
			strike()
			require.NoError(s.T, s.Box.Close(s.Ctx))
			require.NoError(s.T, s.Box.Refresh(s.Ctx))
			s.Faults.Flush()
			sessions, err := maintenance.Of(s.C).Sessions(s.Ctx)
			require.NoError(s.T, err)
			require.NotNil(s.T, sessions["session"])
		},
		"futura-ack": func(s *modeltest.Stage, strike func()) {
			s.Submit()
			f := s.Claim(s.Worker)
			s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{}})
			_, _, err := s.Box.Listen(s.Ctx)
			require.NoError(s.T, err)
			strike()
			require.NoError(s.T, s.Box.Acknowledge(s.Ctx))
			notices, watch, err := mailbox.Open(s.C, "session").Listen(s.Ctx)
			require.NoError(s.T, err)
			require.Empty(s.T, notices)
			watch.Cancel()
		},
		"futura-session": func(s *modeltest.Stage, strike func()) {
			strike()
			require.NoError(s.T, s.Box.Refresh(s.Ctx))
			sessions, err := maintenance.Of(s.C).Sessions(s.Ctx)
			require.NoError(s.T, err)
			require.Contains(s.T, sessions, layout.SessionID("session"))
		},
	})
}

// TestManySessionsAwaitOneFuture: those that were removed make room for others, and one that finds none hears of the
// end when it asks again.
func TestManySessionsAwaitOneFuture(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	var boxes []*mailbox.Mailbox
	session := func(n int) layout.SessionID { return layout.SessionID(fmt.Sprintf("s%03d", n)) }
	subscribe := func(n int) (over []layout.Notice) {
		for len(boxes) <= n {
			boxes = append(boxes, mailbox.Open(s.C, session(len(boxes))))
		}
		require.NoError(t, boxes[n].Refresh(s.Ctx))
		over, missing, err := boxes[n].Subscribe(s.Ctx, []layout.ID{id})
		require.NoError(t, err)
		require.Empty(t, missing)
		return over
	}
	subscribers := func() []layout.SessionID {
		row, err := s.C.Get(s.Ctx, id)
		require.NoError(t, err)
		return row.Subscribers
	}
	for n := range layout.MaxSubscribers + 1 {
		require.Empty(t, subscribe(n))
	}
	require.Empty(t, subscribe(0), "again")
	require.Len(t, subscribers(), layout.MaxSubscribers)
	require.NotContains(t, subscribers(), session(layout.MaxSubscribers))
	require.NoError(t, boxes[7].Close(s.Ctx))
	require.Empty(t, subscribe(layout.MaxSubscribers))
	require.Contains(t, subscribers(), session(layout.MaxSubscribers))
	require.NotContains(t, subscribers(), session(7))
	require.Len(t, subscribers(), layout.MaxSubscribers)
	require.Empty(t, subscribe(layout.MaxSubscribers+1))
	for _, box := range boxes[:100] {
		require.NoError(t, box.Close(s.Ctx))
	}
	require.Empty(t, subscribe(layout.MaxSubscribers+1))
	require.Len(t, subscribers(), layout.MaxSubscribers-99+1)
	require.Empty(t, subscribe(layout.MaxSubscribers+2))
	f := s.Claim(s.Worker)
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{}})
	notices, _, err := boxes[layout.MaxSubscribers+2].Listen(s.Ctx)
	require.NoError(t, err)
	require.Len(t, notices, 1)
	require.Len(t, subscribe(0), 1, "it is over")
	s.RequireSound()
}
