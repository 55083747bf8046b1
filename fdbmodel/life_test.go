package fdbmodel_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/clock"
)

// failing is an attempt that fails and is due again at once.
func failing(f *fdbmodel.ClaimedFuture, message string) fdbmodel.Completion {
	now := time.Duration(0)
	return fdbmodel.Completion{Future: f, RetryIn: &now, Exception: &layout.Exception{
		Kind: layout.KindError, Message: message,
	}}
}

// TestHistoryOfAttempts: none for a future that fails once, and the last ones of one
// that fails often.
func TestHistoryOfAttempts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.Submit(func(s *fdbmodel.Submission) { s.Spec.MaxRetries = layout.MaxHistory + 2 })
	started := s.clock.Now()
	for n := 1; n <= layout.MaxHistory+3; n++ {
		s.clock.Advance(time.Second)
		f := s.claimOne()
		c := failing(f, strings.Repeat("x", layout.MaxHistoryText+n))
		c.Started = started
		s.finish(c)
		row := s.row(id)
		if n == 1 {
			require.Nil(t, row.History)
		}
		past := row.PastAttempts()
		require.Len(t, past, min(n, layout.MaxHistory+1))
		for i, p := range past {
			require.Equal(t, n-len(past)+i+1, p.Attempt)
			require.Equal(t, s.worker.ID(), p.Worker)
			require.Equal(t, layout.KindError, p.Kind)
			require.Equal(t, layout.Millis(started), p.StartedAt)
			require.Equal(t, layout.Millis(started.Add(time.Duration(p.Attempt)*time.Second)), p.At)
			if i < len(past)-1 {
				require.Len(t, p.Message, layout.MaxHistoryText)
			}
		}
	}
	require.Equal(t, layout.Failed, s.State(id))
	s.check()
}

// TestHistoryAfterARetry goes on, and an end without a run is no attempt.
func TestHistoryAfterARetry(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.Submit(func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 1 })
	s.finish(failing(s.claimOne(), "first"))
	s.finish(failing(s.claimOne(), "second"))
	require.NoError(t, s.cluster.Retry(s.ctx, id))
	require.Len(t, ptr(s.row(id)).PastAttempts(), 2)
	s.finish(failing(s.claimOne(), "third"))
	_, _, err := s.cluster.Cancel(s.ctx, id, "enough")
	require.NoError(t, err)
	row := s.row(id)
	require.Equal(t, layout.KindCancelled, row.Exception.Kind)
	var messages []string
	for _, p := range row.PastAttempts() {
		messages = append(messages, p.Message)
	}
	require.Equal(t, []string{"first", "second", "third"}, messages)
	s.check()
}

// TestADeathIsInTheHistory of the futures that the worker held.
func TestADeathIsInTheHistory(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.Submit()
	s.claimOne()
	s.declareDead()
	_, err := s.cluster.ReapClaims(s.ctx, s.worker.ID())
	require.NoError(t, err)
	past := ptr(s.row(id)).PastAttempts()
	require.Len(t, past, 1)
	require.Equal(t, layout.KindLost, past[0].Kind)
	require.Equal(t, s.worker.ID(), past[0].Worker)
	s.check()
}

// TestProgressBelongsToTheClaim: it is that of the attempt that runs or ran last, and
// nobody else writes any.
func TestProgressBelongsToTheClaim(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.Submit(func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 5 })
	f := s.claimOne()
	require.Nil(t, ptr(s.row(id)).Reported())
	report := func(f *fdbmodel.ClaimedFuture, done int64) error {
		_, err := s.worker.WriteProgress(s.ctx, func() []fdbmodel.Progress {
			return []fdbmodel.Progress{{Future: f, Done: done, Total: 9, Text: strings.Repeat("é", 200), At: s.clock.Now()}}
		})
		return err
	}
	require.NoError(t, report(f, 1))
	got := ptr(s.row(id)).Reported()
	require.Equal(t, f.Token, got.Token)
	require.Equal(t, int64(1), got.Done)
	require.LessOrEqual(t, len(got.Text), layout.MaxProgressText)
	require.True(t, strings.HasSuffix(got.Text, "(cut)"))

	c := failing(f, "m")
	c.Progress = &fdbmodel.Progress{Future: f, Done: 7, At: s.clock.Now()}
	s.finish(c)
	require.Equal(t, int64(7), ptr(s.row(id)).Reported().Done, "what the last attempt came to")
	second := s.claimOne()
	require.Nil(t, ptr(s.row(id)).Reported(), "the second has told nothing")
	s.finish(fdbmodel.Completion{Future: second, Result: &layout.Result{Value: []byte("v")}})
	require.Nil(t, ptr(s.row(id)).Reported())
	s.check()
	require.NoError(t, s.cluster.Discard(s.ctx, id))
	s.check()
}

// TestProgressOfTheDead: a worker that was declared dead is not even asked.
func TestProgressOfTheDead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.Submit()
	f := s.claimOne()
	s.declareDead()
	_, err := s.worker.WriteProgress(s.ctx, func() []fdbmodel.Progress {
		t.Error("asked for the progress of claims that it may have lost")
		return []fdbmodel.Progress{{Future: f}}
	})
	require.ErrorIs(t, err, fdbmodel.ErrReaped)
	require.Nil(t, s.row(id).Progress)
}

// TestProgressAndTheEndOfItsClaim: a claim that ends while its progress is on the way
// makes that begin again, and then it is not collected.
func TestProgressAndTheEndOfItsClaim(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*lifeStage, *fdbmodel.ClaimedFuture){
		"realized": func(s *lifeStage, f *fdbmodel.ClaimedFuture) {
			s.finish(fdbmodel.Completion{Future: f, Result: &layout.Result{}})
			require.NoError(s.t, s.cluster.Discard(s.ctx, f.ID))
		},
		"given back": func(s *lifeStage, f *fdbmodel.ClaimedFuture) {
			s.finish(fdbmodel.Completion{Future: f, Relinquish: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.Submit()
			f := s.claimOne()
			calls := 0
			n, err := s.worker.WriteProgress(s.ctx, func() []fdbmodel.Progress {
				if calls++; calls == 1 {
					end(s, f)
					return []fdbmodel.Progress{{Future: f, Done: 1}}
				}
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, 2, calls)
			require.Zero(t, n)
			s.check()
		})
	}
}

func ptr(r layout.Row) *layout.Row { return &r }

// lifeStage is a stage whose worker takes one future at a time.
type lifeStage struct {
	*modeltest.Stage
	t       *testing.T
	ctx     context.Context
	cluster *fdbmodel.Cluster
	worker  *fdbmodel.Registration
	clock   *clock.Virtual
}

func newStage(t *testing.T) *lifeStage {
	s := modeltest.NewStage(t)
	return &lifeStage{s, t, s.Ctx, s.C, s.Worker, s.Clock}
}

func (s *lifeStage) claimOne() *fdbmodel.ClaimedFuture {
	all := s.Claim(s.worker)
	require.Len(s.t, all, 1)
	return &all[0]
}

func (s *lifeStage) finish(c fdbmodel.Completion) {
	require.Equal(s.t, fdbmodel.Applied, s.Finish(s.worker, c))
}

func (s *lifeStage) row(id layout.ID) layout.Row {
	row, err := s.cluster.Get(s.ctx, id)
	require.NoError(s.t, err)
	return row
}

func (s *lifeStage) declareDead() {
	members, err := s.cluster.Workers(s.ctx)
	require.NoError(s.t, err)
	for _, m := range members {
		_, err := s.cluster.DeclareDead(s.ctx, m.ID, m.Beat)
		require.NoError(s.t, err)
	}
}

func (s *lifeStage) check() {
	modeltest.RequireSound(s.t, s.cluster)
}

// TestUnknownResultsOfProgress: what commits late replaces nothing newer, and leaves
// nothing behind.
func TestUnknownResultsOfProgress(t *testing.T) {
	t.Parallel()
	report := func(s *modeltest.Stage, f *fdbmodel.ClaimedFuture, done int64) {
		n, err := s.Worker.WriteProgress(s.Ctx, func() []fdbmodel.Progress {
			return []fdbmodel.Progress{{Future: f, Done: done, At: s.Clock.Now()}}
		})
		require.NoError(s.T, err)
		require.Equal(s.T, 1, n)
	}
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-progress": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)
			strike()
			report(s, &f[0], 1)
			report(s, &f[0], 2)
			s.Faults.Flush()
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, int64(2), row.Reported().Done)
		},
		"futura-progress of one that ends": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)
			strike()
			report(s, &f[0], 1)
			s.Finish(s.Worker, realize(&f[0]))
			require.NoError(s.T, s.C.Discard(s.Ctx, id))
			s.Faults.Flush()
			require.Equal(s.T, layout.State(0), s.State(id))
		},
	})
}
