package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// expires has a future end if it waits for so long.
func expires(s *modeltest.Stage, in time.Duration) func(*fdbmodel.Submission) {
	return func(sub *fdbmodel.Submission) { sub.Spec.ExpiresAt = layout.Millis(s.Clock.Now().Add(in)) }
}

// deadline has a future end after so long.
func deadline(s *modeltest.Stage, in time.Duration) func(*fdbmodel.Submission) {
	return func(sub *fdbmodel.Submission) { sub.Spec.Deadline = layout.Millis(s.Clock.Now().Add(in)) }
}

func endOverdue(s *modeltest.Stage) (ended int) {
	for {
		n, next, err := maintenance.Of(s.C).EndOverdue(s.Ctx)
		require.NoError(s.T, err)
		ended += n
		if next.IsZero() || next.After(s.Clock.Now()) {
			require.Empty(s.T, s.Problems())
			return ended
		}
	}
}

func failureOf(s *modeltest.Stage, id layout.ID) *layout.Exception {
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(s.T, err)
	require.Equal(s.T, layout.Failed, row.State())
	return row.Exception
}

// limitKeys is how many futures a janitor is led to.
func limitKeys(s *modeltest.Stage) (n int) {
	for shard := range s.C.Config().Shards {
		require.NoError(s.T, s.C.EachKey(s.Ctx, kv.Prefix(s.C.Keys().LimitsOf(shard)), func(kv.KeyValue) error {
			n++
			return nil
		}))
	}
	return n
}

// TestWhatWaitsTooLongEnds has futures in each place wait.
func TestWhatWaitsTooLongEnds(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit(func(sub *fdbmodel.Submission) { sub.NotBefore = s.Clock.Now().Add(time.Hour) })
	ready := s.Submit(expires(s, time.Minute))
	delayed := s.Submit(expires(s, time.Minute), func(sub *fdbmodel.Submission) {
		sub.NotBefore = s.Clock.Now().Add(time.Hour)
	})
	blocked := s.Submit(expires(s, time.Minute), func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{input} })
	late := s.Submit(deadline(s, time.Minute))
	longer := s.Submit(deadline(s, time.Hour), expires(s, 2*time.Minute))
	require.Equal(t, 5, limitKeys(s))
	require.Zero(t, endOverdue(s))
	_, next, err := maintenance.Of(s.C).EndOverdue(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, time.Minute, next.Sub(s.Clock.Now()))
	s.Clock.Advance(time.Minute)
	require.Equal(t, 4, endOverdue(s))
	for _, id := range []layout.ID{ready, delayed, blocked} {
		require.Equal(t, layout.KindExpired, failureOf(s, id).Kind)
		require.Contains(t, failureOf(s, id).Message, "waited longer than it may")
	}
	require.Equal(t, layout.KindDeadline, failureOf(s, late).Kind)
	require.Equal(t, layout.Ready, s.State(longer))
	require.Equal(t, 1, limitKeys(s))
	_, _, err = s.C.Cancel(s.Ctx, longer, "")
	require.NoError(t, err)
	require.Zero(t, limitKeys(s))
}

// TestNoAttemptBeginsAfterTheTime has claims end after the time of their futures.
func TestNoAttemptBeginsAfterTheTime(t *testing.T) {
	t.Parallel()
	wait := time.Second
	for name, done := range map[string]fdbmodel.Completion{
		"fail":       {Exception: &layout.Exception{Kind: layout.KindError, Message: "why"}},
		"relinquish": {Relinquish: true}, "reject": {Reject: true}, "snooze": {Snooze: &wait}, "expire": {Expire: true},
	} {
		s := modeltest.NewStage(t)
		id := s.Submit(expires(s, time.Minute))
		f := s.Claim(s.Worker)
		s.Clock.Advance(2 * time.Minute)
		require.Zero(t, endOverdue(s), "it runs")
		require.Zero(t, limitKeys(s))
		done.Future = &f[0]
		require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, done), name)
		e := failureOf(s, id)
		require.Equal(t, layout.KindExpired, e.Kind, name)
		if name == "fail" {
			require.Contains(t, e.Message, "attempt 1 failed (error): why")
		}
		require.Empty(t, s.Problems(), name)
	}
	s := modeltest.NewStage(t)
	id := s.Submit(expires(s, time.Minute))
	f := s.Claim(s.Worker)
	s.Clock.Advance(2 * time.Minute)
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, realize(&f[0])))
	require.Equal(t, layout.Realized, s.State(id), "what began in time may end later")
}

// TestWhatGoesBackInTimeStillEnds has a future leave its key while it runs.
func TestWhatGoesBackInTimeStillEnds(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(expires(s, time.Minute), func(sub *fdbmodel.Submission) { sub.Spec.MaxRetries = 5 })
	f := s.Claim(s.Worker)
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Expire: true}))
	require.Equal(t, layout.Ready, s.State(id), "its time has not come")
	f = s.Claim(s.Worker)
	long := time.Hour
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], RetryIn: &long,
		Exception: &layout.Exception{Kind: layout.KindError, Message: "why"}})
	require.Equal(t, layout.Delayed, s.State(id))
	s.Clock.Advance(time.Minute)
	require.Equal(t, 1, endOverdue(s))
	require.Equal(t, layout.KindExpired, failureOf(s, id).Kind)
	require.NoError(t, s.C.Retry(s.Ctx, id))
	require.Zero(t, endOverdue(s), "who asks for it again lifts the limit")
	require.Zero(t, limitKeys(s))
	f = s.Claim(s.Worker)
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Relinquish: true})
	require.Equal(t, layout.Ready, s.State(id))
}

func TestDeadWorkerOfAFutureWhoseDeadlineHasPassed(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(deadline(s, time.Minute))
	s.Claim(s.Worker)
	s.Clock.Advance(2 * time.Minute)
	s.LoseWorker()
	e := failureOf(s, id)
	require.Equal(t, layout.KindDeadline, e.Kind)
	require.Contains(t, e.Message, "its deadline has passed")
	require.Empty(t, s.Problems())
}

func TestSnoozeCostsNoAttempt(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.MaxRetries = 0 })
	for n := range 5 {
		f := s.Claim(s.Worker)
		require.Len(t, f, 1)
		require.Equal(t, 1, f[0].Attempt())
		wait := 3 * time.Second
		require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Snooze: &wait}))
		require.Equal(t, layout.Delayed, s.State(id))
		row, err := s.C.Get(s.Ctx, id)
		require.NoError(t, err)
		require.Equal(t, n+1, row.Attempts.Snoozed)
		require.Equal(t, s.Clock.Now().Add(wait).UnixMilli(), row.Attempts.Due)
		s.Clock.Advance(wait)
		_, _, err = maintenance.Of(s.C).PromoteDue(s.Ctx)
		require.NoError(t, err)
	}
	require.Empty(t, s.Problems())
}

// TestUnknownResultsOfTime is TestUnknownResults for futures that wait for a time.
func TestUnknownResultsOfTime(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-overdue": func(s *modeltest.Stage, strike func()) {
			id := s.Submit(expires(s, time.Minute))
			s.Clock.Advance(time.Minute)
			strike()
			endOverdue(s)
			s.Faults.Flush()
			require.Equal(s.T, layout.KindExpired, failureOf(s, id).Kind)
			require.Equal(s.T, int64(1), s.Counted(layout.Failed))
			notices, _, err := s.Box.Listen(s.Ctx)
			require.NoError(s.T, err)
			require.Len(s.T, notices, 1)
		},
		"futura-finish that snoozes": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)
			wait := time.Minute
			strike()
			outcome := s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Snooze: &wait})
			require.Contains(s.T, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Lost}, outcome)
			s.Faults.Flush()
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, 1, row.Attempts.Snoozed)
		},
	})
}
