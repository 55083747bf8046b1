package steps_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// TestUnknownResultsOfSteps is TestUnknownResults for steps.
func TestUnknownResultsOfSteps(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-step that is recorded": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)[0]
			strike()
			require.Equal(s.T, []bool{true}, write(s, entry(&f, 1, "charge", true)))
			require.Equal(s.T, []bool{true}, write(s, entry(&f, 2, "ship", false)))
			s.Faults.Flush()
			require.Equal(s.T, []string{"charge", "ship"}, names(s, id))
		},
		"futura-step whose claim ends meanwhile": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)[0]
			e := entry(&f, 1, "charge", true)
			asked := 0
			e.Ended = func() bool {
				if asked++; asked == 2 { // the claim ends between the attempts of the transaction
					s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Relinquish: true})
				}
				return false
			}
			strike()
			recorded := write(s, e)
			s.Faults.Flush()
			require.Equal(s.T, recorded[0], len(names(s, id)) == 1, "what it says, and what is there")
			require.Equal(s.T, layout.Ready, s.State(id))
		},
		"futura-step of a poison candidate": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)[0]
			require.NoError(s.T, s.Worker.Begin(s.Ctx, &f))
			strike()
			require.Equal(s.T, []bool{true}, write(s, entry(&f, 1, "charge", true)))
			s.Faults.Flush()
			_, err := s.C.Register(s.Ctx, s.Info())
			require.NoError(s.T, err)
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, 1, row.Attempts.Suspicion())
			require.Zero(s.T, row.Attempts.Crashes, "it got further")
		},
		"futura-startover of one that failed": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)[0]
			write(s, entry(&f, 1, "charge", true))
			s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Permanent: true,
				Exception: &layout.Exception{Kind: layout.KindError}})
			strike()
			require.NoError(s.T, steps.Of(s.C).StartOver(s.Ctx, id))
			s.Faults.Flush()
			require.Equal(s.T, layout.Ready, s.State(id))
			require.Empty(s.T, names(s, id))
		},
	})
}

func entry(f *fdbmodel.ClaimedFuture, number int, name string, first bool) steps.Entry {
	return steps.Entry{Future: f, Name: name, First: first, Record: steps.Record{
		Token: f.Token, Number: number, Attempt: f.Attempt(), Value: []byte(name), Size: int64(len(name)), At: 1,
	}}
}

func write(s *modeltest.Stage, entries ...steps.Entry) []bool {
	recorded, _, err := steps.Of(s.C).Write(s.Ctx, s.Worker, entries)
	require.NoError(s.T, err)
	return recorded
}

func names(s *modeltest.Stage, id layout.ID) []string {
	all, err := steps.Of(s.C).List(s.Ctx, id)
	require.NoError(s.T, err)
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}
