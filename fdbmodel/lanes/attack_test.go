package lanes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/storetest"
)

// inLanes are submissions to one lane each.
func (s laneStage) inLanes(keys ...string) []fdbmodel.Submission {
	subs := make([]fdbmodel.Submission, len(keys))
	for i, key := range keys {
		subs[i].Spec = layout.Spec{Function: "go:f", Lane: s.lane(key)}
	}
	return subs
}

// TestOneTransactionSubmitsToALaneAgainAndAgain has a caller's transaction submit to one
// lane several times: all get in line, in their order.
func TestOneTransactionSubmitsToALaneAgainAndAgain(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]layout.LaneKind{
		"full": {}, "with room": {Width: 3}, "with turns": {Width: 3, Total: 1},
		"with a rate": {Width: 9, Rate: 10, Every: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, k)
			if name == "full" {
				s.submit("x")
			}
			var ids []layout.ID
			_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
				ids = nil
				for range 6 {
					s.Clock.Advance(60 * time.Millisecond) // so that there is room again where others are in line
					answers, err := s.C.SubmitTx(s.Ctx, tx, s.inLanes("x", "y"))
					if err != nil {
						return err
					}
					ids = append(ids, answers[0].ID)
				}
				return nil
			})
			require.NoError(t, err)
			s.check()
			line := s.line("x")
			require.NotEmpty(t, line)
			require.Equal(t, ids[len(ids)-len(line):], line)
			ended := 0
			for range 40 {
				ended += len(s.end())
				s.Clock.Advance(60 * time.Millisecond)
				_, _, err := s.L.AdmitDue(s.Ctx)
				require.NoError(t, err)
			}
			require.GreaterOrEqual(t, ended, 12)
			s.check()
		})
	}
}

// TestARateThatIsRaisedHoldsAtOnce has a lane that a slow rate holds back obey a faster
// one, and none.
func TestARateThatIsRaisedHoldsAtOnce(t *testing.T) {
	t.Parallel()
	for name, faster := range map[string]layout.LaneKind{
		"faster": {Width: 200, Rate: 1000, Every: time.Second}, "none": {Width: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{Width: 200, Rate: 1, Every: 24 * time.Hour})
			n := storetest.Fewer(200, 50)
			for range n {
				s.submit("x")
			}
			s.submit("idle")
			require.Equal(t, 1, s.open("x"))
			require.NoError(t, s.L.SetKind(s.Ctx, "k", faster))
			for range 20 {
				s.Clock.Advance(50 * time.Millisecond)
				_, _, err := s.L.AdmitDue(s.Ctx)
				require.NoError(t, err)
				s.check()
			}
			require.Equal(t, n, s.open("x"))
			s.submit("idle")
			require.Equal(t, 2, s.open("idle"))
			s.check()
		})
	}
}

// TestABlockedFutureHoldsUpNobodyItWaitsFor has a future whose input was lost wait for
// that in the same lane.
func TestABlockedFutureHoldsUpNobodyItWaitsFor(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	input := s.submit("x", func(sub *fdbmodel.Submission) {
		sub.Spec.AsObject, sub.Spec.AllowReconstruction = true, true
	})
	user := s.submit("x", func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{input} })
	f := s.Claim(s.Worker)[0]
	s.Finish(s.Worker, modeltest.KeepObject(&f))
	f = s.Claim(s.Worker)[0]
	require.Equal(t, user, f.ID)
	row, err := s.C.Get(s.Ctx, input)
	require.NoError(t, err)
	_, err = results.Of(s.C).ReportLost(s.Ctx, input, row.Result.Token, []layout.WorkerID{s.Worker.ID()})
	require.NoError(t, err)
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Block: true})
	require.Equal(t, layout.Blocked, s.State(user))
	require.Equal(t, []layout.ID{input}, s.end())
	require.Equal(t, []layout.ID{user}, s.end())
	s.check()
}

// TestTheFirstInLineThatCannotBeRead has records of a newer version before and behind
// others: those wait until they can be read, and hold up nobody.
func TestTheFirstInLineThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	running := s.submit("x")
	var newer []layout.ID
	values := map[layout.ID][]byte{}
	write := func(id layout.ID, value []byte) (old []byte) {
		_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) (err error) {
			if old, err = tx.Get(s.C.Keys().Spec(id)).Wait(s.Ctx); err == nil {
				tx.Set(s.C.Keys().Spec(id), value)
			}
			return err
		})
		require.NoError(t, err)
		return old
	}
	for range 40 {
		id := s.submit("x")
		newer, values[id] = append(newer, id), write(id, newerRecord)
	}
	next := s.submit("x")
	require.Equal(t, []layout.ID{running}, s.end())
	require.Equal(t, []layout.ID{next}, s.end())
	require.Len(t, s.line("x"), len(newer))
	last := s.submit("x")
	require.Equal(t, []layout.ID{last}, s.end())
	for id, value := range values {
		write(id, value)
	}
	for _, want := range newer {
		s.Clock.Advance(2 * time.Second)
		_, _, err := s.L.AdmitDue(s.Ctx)
		require.NoError(t, err)
		require.Equal(t, []layout.ID{want}, s.end())
	}
	s.check()
}

// TestACallersTransactionReplacesInALane has a transaction cancel a future of a lane and
// submit another to it: what was admitted hands over its slot, what was in line its
// place, also if the transaction can't read who is in line by then.
func TestACallersTransactionReplacesInALane(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]layout.LaneKind{"alone": {}, "in turns": {Total: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, k)
			submit := func(keys ...string) (ids []layout.ID) {
				_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
					ids = nil
					for _, key := range keys {
						subs := s.inLanes(key)
						if key == "x" {
							subs[0].Unique = &fdbmodel.Unique{Key: "u", OnConflict: fdbmodel.ConflictReplace}
						}
						answers, err := s.C.SubmitTx(s.Ctx, tx, subs)
						if err != nil {
							return err
						}
						ids = append(ids, answers[0].ID)
					}
					return nil
				})
				require.NoError(t, err)
				s.check()
				_, _, err = s.L.AdmitDue(s.Ctx) // who is in line is left to a janitor
				require.NoError(t, err)
				return ids
			}
			first := submit("x")[0]
			behind := s.submit(map[string]string{"alone": "x", "in turns": "y"}[name])
			second := submit("x")[0]
			require.Equal(t, layout.Failed, s.State(first))
			require.Equal(t, []layout.ID{second}, s.line("x"))
			require.Equal(t, []layout.ID{behind}, s.end())
			require.Equal(t, []layout.ID{second}, s.end())

			first = submit("x")[0]
			others := submit("z", "x", "z")
			require.Equal(t, layout.Failed, s.State(first))
			var ended []layout.ID
			for range 8 {
				_, _, err := s.L.AdmitDue(s.Ctx)
				require.NoError(t, err)
				ended = append(ended, s.end()...)
				s.check()
			}
			require.ElementsMatch(t, others, ended)
		})
	}
}
