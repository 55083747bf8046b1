package audit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

const repairTag = "futura-repair"

// damage writes past the model, and returns what a check finds of that.
func damage(s *modeltest.Stage, how func(tx kv.Tx, keys layout.Keyspace)) audit.Report {
	s.T.Helper()
	_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
		how(tx, s.C.Keys())
		return nil
	})
	require.NoError(s.T, err)
	report, err := audit.Check(s.Ctx, s.C, audit.Options{})
	require.NoError(s.T, err)
	require.NotZero(s.T, report.Repairable())
	return report
}

func rowOf(s *modeltest.Stage, id layout.ID) *layout.Row {
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(s.T, err)
	return &row
}

// inLane submits two futures to a lane for one.
func inLane(s *modeltest.Stage) (lane layout.Lane, ids [2]layout.ID) {
	require.NoError(s.T, lanes.Of(s.C).SetKind(s.Ctx, "narrow", layout.LaneKind{Width: 1}))
	lane = layout.Lane{Kind: "narrow", Key: "a"}
	for i := range ids {
		ids[i] = s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = lane })
	}
	return lane, ids
}

// TestUnknownRepairs requires that a repair whose commit has an unknown result is made once.
func TestUnknownRepairs(t *testing.T) {
	t.Parallel()
	plays := map[string]func(*modeltest.Stage) func(kv.Tx, layout.Keyspace){
		" of a place": func(s *modeltest.Stage) func(kv.Tx, layout.Keyspace) {
			row := rowOf(s, s.Submit())
			return func(tx kv.Tx, keys layout.Keyspace) { tx.Clear(keys.Ready(row.ID, row.Spec)) }
		},
		" of a counter": func(s *modeltest.Stage) func(kv.Tx, layout.Keyspace) {
			id := s.Submit()
			return func(tx kv.Tx, keys layout.Keyspace) {
				key := keys.Count(id.Shard(keys.Shards), layout.DefaultQueue, "", layout.Ready)
				tx.Atomic(kv.Add, key, layout.EncodeCounter(5))
			}
		},
		" of a lane": func(s *modeltest.Stage) func(kv.Tx, layout.Keyspace) {
			lane, _ := inLane(s)
			return func(tx kv.Tx, keys layout.Keyspace) {
				tx.Set(keys.Lane(lane), layout.Encode(&layout.LaneRecord{Open: 2, Lined: true}))
			}
		},
		" of a done list": func(s *modeltest.Stage) func(kv.Tx, layout.Keyspace) {
			id := s.Submit()
			_, _, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.T, err)
			return func(tx kv.Tx, keys layout.Keyspace) { tx.ClearRange(kv.Prefix(keys.DoneOf(id.Shard(keys.Shards)))) }
		},
	}
	tagged := map[string]func(s *modeltest.Stage, strike func()){}
	for name, play := range plays {
		tagged[repairTag+name] = func(s *modeltest.Stage, strike func()) {
			report := damage(s, play(s))
			strike()
			_, err := audit.Repair(s.Ctx, s.C, report, audit.Options{})
			require.NoError(s.T, err)
		}
	}
	modeltest.PlayUnknown(t, tagged)
}

// TestRepairMeetsChanges has something happen before the commit of a repair.
func TestRepairMeetsChanges(t *testing.T) {
	t.Parallel()
	cancel := func(s *modeltest.Stage, id layout.ID) {
		_, _, err := s.C.Cancel(s.Ctx, id, "")
		require.NoError(s.T, err)
	}
	type meeting struct {
		report    audit.Report
		meanwhile func()
		state     layout.State
		id        layout.ID
	}
	for name, play := range map[string]func(s *modeltest.Stage) meeting{
		"a future without its place is cancelled": func(s *modeltest.Stage) meeting {
			row := rowOf(s, s.Submit())
			report := damage(s, func(tx kv.Tx, keys layout.Keyspace) { tx.Clear(keys.Ready(row.ID, row.Spec)) })
			return meeting{report, func() { cancel(s, row.ID) }, layout.Failed, row.ID}
		},
		"a future goes back to a stray place": func(s *modeltest.Stage) meeting {
			id := s.Submit()
			claimed := s.Claim(s.Worker)
			row := rowOf(s, id)
			report := damage(s, func(tx kv.Tx, keys layout.Keyspace) {
				tx.Set(keys.Ready(id, row.Spec), []byte("go:f"))
			})
			return meeting{report, func() {
				s.Finish(s.Worker, fdbmodel.Completion{Future: &claimed[0], Relinquish: true})
			}, layout.Ready, id}
		},
		"futures are submitted while they are counted": func(s *modeltest.Stage) meeting {
			id := s.Submit()
			report := damage(s, func(tx kv.Tx, keys layout.Keyspace) {
				for shard := range keys.Shards {
					key := keys.Count(shard, layout.DefaultQueue, "", layout.Ready)
					tx.Atomic(kv.Add, key, layout.EncodeCounter(5))
				}
			})
			return meeting{report, func() {
				for range 32 {
					s.Submit()
				}
			}, layout.Ready, id}
		},
		"another one repairs a counter": func(s *modeltest.Stage) meeting {
			id := s.Submit()
			report := damage(s, func(tx kv.Tx, keys layout.Keyspace) {
				key := keys.Count(0, layout.DefaultQueue, "", layout.Ready)
				tx.Atomic(kv.Add, key, layout.EncodeCounter(5))
			})
			return meeting{report, func() {
				_, err := audit.Repair(s.Ctx, s.C, report, audit.Options{})
				require.NoError(s.T, err)
			}, layout.Ready, id}
		},
		"a lane admits another while it is counted": func(s *modeltest.Stage) meeting {
			lane, ids := inLane(s)
			report := damage(s, func(tx kv.Tx, keys layout.Keyspace) {
				tx.Set(keys.Lane(lane), layout.Encode(&layout.LaneRecord{Open: 2, Lined: true}))
			})
			return meeting{report, func() { cancel(s, ids[0]) }, layout.Ready, ids[1]}
		},
		"a future leaves a lane that is not counted again": func(s *modeltest.Stage) meeting {
			lane, ids := inLane(s)
			report := damage(s, func(tx kv.Tx, keys layout.Keyspace) {
				tx.Set(keys.Lane(lane), layout.Encode(&layout.LaneRecord{Open: 1}))
			})
			return meeting{report, func() { cancel(s, ids[1]) }, layout.Failed, ids[1]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			m := play(s)
			_, err := audit.Repair(s.Ctx, s.Interrupted(repairTag, m.meanwhile), m.report, audit.Options{})
			require.NoError(t, err)
			require.Equal(t, m.state, s.State(m.id))
			require.Empty(t, s.Problems())
		})
	}
}

// TestRepairDoesNotReviveAnInput removes an input that does not know of its use, before the commit
// of the repair that would tell it.
func TestRepairDoesNotReviveAnInput(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	s.Finish(s.Worker, fdbmodel.Completion{Future: &s.Claim(s.Worker)[0], Result: &layout.Result{}})
	user := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{input} })
	report := damage(s, func(tx kv.Tx, keys layout.Keyspace) {
		tx.Clear(keys.Dependant(input, user))
		tx.Clear(keys.HasDependants(input))
	})
	c := s.Interrupted(repairTag, func() { require.NoError(t, s.C.Discard(s.Ctx, input)) })
	_, err := audit.Repair(s.Ctx, c, report, audit.Options{})
	require.NoError(t, err)
	require.Nil(t, s.Read(s.C.Keys().HasDependants(input)))
	require.Nil(t, s.Read(s.C.Keys().Dependant(input, user)))
}

// TestAReleasedInputIsNotUsedAgain brings back the use of an input by a future that has ended, and repairs that,
// before the future's own dependants are told of its end.
func TestAReleasedInputIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	user := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{input} })
	last := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{user} })
	used := s.C.Keys().Dependant(input, user)
	c := s.Interrupted("futura-resolve", func() {
		require.NotNil(t, s.Read(s.C.Keys().Resolve(user)))
		require.Nil(t, s.Read(used))
		report := damage(s, func(tx kv.Tx, _ layout.Keyspace) { tx.Set(used, layout.Mark()) })
		_, err := audit.Repair(s.Ctx, s.C, report, audit.Options{})
		require.NoError(t, err)
		require.Nil(t, s.Read(used))
	})
	_, _, err := c.Cancel(s.Ctx, user, "")
	require.NoError(t, err)
	require.Equal(t, layout.Failed, s.State(last))
	require.Empty(t, s.Problems())
}

// TestALaneIsLookedAtAfterItsRepair requires that what waits in line of a lane with room is
// admitted, and no more.
func TestALaneIsLookedAtAfterItsRepair(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*layout.LaneRecord{
		"it counts too many":   {Open: 7, Lined: true},
		"it counts too few":    {Lined: true},
		"it knows of no line":  {Open: 1},
		"nothing is known":     nil,
		"it waits for no turn": {Open: 1, Lined: true, Turn: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			lane, ids := inLane(s)
			damage(s, func(tx kv.Tx, keys layout.Keyspace) {
				if tx.Clear(keys.Lane(lane)); r != nil {
					tx.Set(keys.Lane(lane), layout.Encode(r))
				}
			})
			require.Empty(t, repair(t, s.C).Problems)
			s.Clock.Advance(time.Second)
			_, _, err := lanes.Of(s.C).AdmitDue(s.Ctx)
			require.NoError(t, err)
			require.Empty(t, s.Problems())
			require.True(t, rowOf(s, ids[1]).InLine(), "the lane is for one")
			claimed := s.Claim(s.Worker)
			require.Len(t, claimed, 1)
			require.Equal(t, ids[0], claimed[0].ID)
			s.Finish(s.Worker, fdbmodel.Completion{Future: &claimed[0], Result: &layout.Result{}})
			_, _, err = lanes.Of(s.C).AdmitDue(s.Ctx)
			require.NoError(t, err)
			require.Len(t, s.Claim(s.Worker), 1)
			require.Empty(t, s.Problems())
		})
	}
}

// TestALaneThatIsNotCountedAdmitsNone has a future that can't be read, so that what lanes have
// admitted is not known.
func TestALaneThatIsNotCountedAdmitsNone(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	lane, ids := inLane(s)
	s.Store(s.C.Keys().Lane(lane), layout.Encode(&layout.LaneRecord{Lined: true}))
	report := damage(s, func(tx kv.Tx, keys layout.Keyspace) {
		tx.Clear(keys.Ready(ids[0], rowOf(s, ids[0]).Spec))
	})
	s.Store(s.C.Keys().Spec(s.Submit()), []byte{layout.RecordVersion, 0xc1})
	did, err := audit.Repair(s.Ctx, s.C, report, audit.Options{})
	require.NoError(t, err)
	require.Equal(t, map[audit.Invariant]int64{layout.PlaceReady: 1}, did.Repaired)
	require.NotEmpty(t, did.Unsettled)
	s.Clock.Advance(time.Second)
	_, _, err = lanes.Of(s.C).AdmitDue(s.Ctx)
	require.NoError(t, err)
	require.True(t, rowOf(s, ids[1]).InLine())
}

// TestACountThatCanNotBeWrittenIsSaid has lanes that count wrongly, one of them in a record that
// can't be read: that one is left, and not told as repaired.
func TestACountThatCanNotBeWrittenIsSaid(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	lane, _ := inLane(s)
	other := layout.Lane{Kind: lane.Kind, Key: "b"}
	s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = other })
	report := damage(s, func(tx kv.Tx, keys layout.Keyspace) {
		tx.Set(keys.Lane(lane), []byte{layout.RecordVersion, 0xc1})
		tx.Set(keys.Lane(other), layout.Encode(&layout.LaneRecord{Open: 7}))
	})
	did, err := audit.Repair(s.Ctx, s.C, report, audit.Options{})
	require.NoError(t, err)
	require.Equal(t, map[audit.Invariant]int64{audit.InvariantLane: 1}, did.Repaired)
	require.Equal(t, []string{"lanes, as something that they count can't be read"}, did.Unsettled)
	did, err = audit.Repair(s.Ctx, s.C, report, audit.Options{})
	require.NoError(t, err)
	require.Empty(t, did.Repaired)
	require.NotEmpty(t, did.Unsettled)
}

// TestRepairedFuturesOfADeadWorkerGoBack requires that a claim in no list, of a worker that is
// gone, is taken back once it is in one again.
func TestRepairedFuturesOfADeadWorkerGoBack(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for range 5 {
		s.Submit()
	}
	claimed := s.Claim(s.Worker)
	require.Len(t, claimed, 5)
	damage(s, func(tx kv.Tx, keys layout.Keyspace) {
		tx.ClearRange(kv.Prefix(keys.WorkerAll(s.Worker.ID())))
		tx.Clear(keys.Address(s.Info().Address))
	})
	require.Empty(t, repair(t, s.C).Problems)
	n, err := s.C.ReapClaims(s.Ctx, s.Worker.ID())
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.Empty(t, s.Problems())
	_, _, err = maintenance.Of(s.C).PromoteDue(s.Ctx)
	require.NoError(t, err)
	require.EqualValues(t, 5, s.Counted(layout.Ready)+s.Counted(layout.Delayed))
}
