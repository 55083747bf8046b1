package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

// TestARepeatedSubmitSaysWhatDiffers submits a key again, with one setting changed at a time:
// the first submit counts, and the answer names what the repeated one has otherwise.
func TestARepeatedSubmitSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	now := m.c.Now()
	submission := func() fdbmodel.Submission {
		return fdbmodel.Submission{Key: "k", Args: []byte("args"), NotBefore: now.Add(time.Hour), Spec: layout.Spec{
			Function: "go:f", Priority: 7, MaxRetries: 3, Timeout: time.Minute, Label: "l", Tags: []string{"a"},
			Requirements: layout.Requirements{CPU: 10, Labels: map[string]string{"zone": "a"}},
			ExpiresAt:    layout.Millis(now.Add(2 * time.Hour)), Deadline: layout.Millis(now.Add(3 * time.Hour)),
		}}
	}
	submit := func(subs ...fdbmodel.Submission) fdbmodel.Submitted {
		answers, err := m.c.Submit(m.ctx, subs)
		require.NoError(t, err)
		return answers[len(answers)-1]
	}
	first := submit(submission())
	require.Empty(t, first.Differs)
	changes := map[string]func(*fdbmodel.Submission){
		"":             func(*fdbmodel.Submission) {},
		"priority":     func(s *fdbmodel.Submission) { s.Spec.Priority = 8 },
		"delay":        func(s *fdbmodel.Submission) { s.NotBefore = time.Time{} },
		"retries":      func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 0 },
		"backoff":      func(s *fdbmodel.Submission) { s.Spec.Backoff.Base = time.Minute },
		"timeout":      func(s *fdbmodel.Submission) { s.Spec.Timeout = 0 },
		"expiry":       func(s *fdbmodel.Submission) { s.Spec.ExpiresAt = 0 },
		"deadline":     func(s *fdbmodel.Submission) { s.Spec.Deadline += 60_000 },
		"requirements": func(s *fdbmodel.Submission) { s.Spec.Requirements.Labels = nil },
		"memory growth": func(s *fdbmodel.Submission) {
			s.Spec.Growth = &layout.Growth{Factor: 2, Max: 1 << 30}
			s.Spec.Requirements.RAM = 1 << 20
		},
		"label":               func(s *fdbmodel.Submission) { s.Spec.Label = "" },
		"tags":                func(s *fdbmodel.Submission) { s.Spec.Tags = []string{"b"} },
		"place of the result": func(s *fdbmodel.Submission) { s.Spec.AsObject = true },
		"priority, retries":   func(s *fdbmodel.Submission) { s.Spec.Priority, s.Spec.MaxRetries = 1, 1 },
	}
	for differs, change := range changes {
		again, twin := submission(), submission()
		change(&again)
		answer := submit(again)
		require.True(t, answer.Existed)
		require.Equal(t, first.ID, answer.ID)
		if differs == "memory growth" {
			require.Equal(t, "requirements, memory growth", answer.Differs)
			continue
		}
		require.Equal(t, differs, answer.Differs)
		twin.Key, again.Key = "twin "+differs, "twin "+differs
		require.Equal(t, differs, submit(twin, again).Differs, "in one transaction")
	}
}

// TestARepeatedSubmitIsAsLateAsTheFirst repeats a submit whose times count from the submit,
// before the delay is over and after it.
func TestARepeatedSubmitIsAsLateAsTheFirst(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	submit := func(delay, expires time.Duration) fdbmodel.Submitted {
		now := m.c.Now()
		s := fdbmodel.Submission{Key: "k", Spec: layout.Spec{Function: "go:f"}}
		if delay > 0 {
			s.NotBefore = now.Add(delay)
		}
		s.Spec.ExpiresAt = layout.Millis(now.Add(expires))
		answers, err := m.c.Submit(m.ctx, []fdbmodel.Submission{s})
		require.NoError(t, err)
		return answers[0]
	}
	submit(time.Minute, time.Hour)
	m.clock.Advance(30 * time.Second)
	require.Empty(t, submit(time.Minute, time.Hour).Differs)
	require.Empty(t, submit(30*time.Second, time.Hour).Differs, "it is the same time")
	require.Equal(t, "delay", submit(40*time.Second, time.Hour).Differs)
	require.Equal(t, "expiry", submit(time.Minute, 2*time.Hour).Differs)
	m.clock.Advance(time.Minute)
	_, _, err := maintenance.Of(m.c).PromoteDue(m.ctx)
	require.NoError(t, err)
	require.Empty(t, submit(time.Minute, time.Hour).Differs)
	require.Empty(t, submit(0, time.Hour).Differs, "the records don't tell")
	require.Equal(t, "delay", submit(time.Hour, time.Hour).Differs)
}
