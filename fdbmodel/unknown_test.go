package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/fit"
	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/results"
)

// TestUnknownResults makes one commit of each operation end with an unknown
// result, in each form, and checks that the operation was done once.
func TestUnknownResults(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-submit": func(s *modeltest.Stage, strike func()) {
			strike()
			id := s.Submit()
			require.Equal(s.T, layout.Ready, s.State(id))
			require.Equal(s.T, int64(1), s.Counted(layout.Ready))
		},
		"futura-submit of neighbours": func(s *modeltest.Stage, strike func()) {
			strike()
			_, err := s.C.Submit(s.Ctx, modeltest.Neighbours(20))
			require.NoError(s.T, err)
			require.Equal(s.T, int64(20), s.Counted(layout.Ready))
		},
		"futura-submit with inputs": func(s *modeltest.Stage, strike func()) {
			input := s.Submit()
			strike()
			id := after(s, input)
			require.Equal(s.T, layout.Blocked, s.State(id))
			require.Equal(s.T, int64(1), s.Counted(layout.Blocked))
		},
		"futura-claim that ends with an older one which has ended": func(s *modeltest.Stage, strike func()) {
			inLane := func(sub *fdbmodel.Submission) { sub.Spec.Lane = layout.Lane{Kind: "l", Key: "k"} }
			require.NoError(s.T, lanes.Of(s.C).SetKind(s.Ctx, "l", layout.LaneKind{Width: 2}))
			s.Submit(inLane)
			older := s.Claim(s.Worker)
			require.Equal(s.T, fdbmodel.Applied, s.Finish(s.Worker, failForGood(&older[0])))
			s.Submit(inLane)
			s.Submit(inLane)
			strike()
			newer := s.Claim(s.Worker)
			require.Len(s.T, newer, 2, "so that the list of the claim stays, and nothing is written if it is not seen")
			outcomes, err := s.Worker.Finish(s.Ctx, []fdbmodel.Completion{
				failForGood(&older[0]), {Future: &newer[0], Result: &layout.Result{}},
			})
			require.NoError(s.T, err)
			require.Equal(s.T, []fdbmodel.Outcome{fdbmodel.Lost, fdbmodel.Applied}, outcomes)
		},
		"futura-resolve": func(s *modeltest.Stage, strike func()) {
			input := s.Submit()
			id := after(s, input)
			strike()
			require.Equal(s.T, 1, endAll(s, func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
				require.Equal(s.T, input, f.ID)
				return failForGood(f)
			}))
			s.Faults.Flush()
			require.Equal(s.T, layout.Failed, s.State(id))
			require.Equal(s.T, int64(2), s.Counted(layout.Failed))
		},
		"futura-resolve of links": func(s *modeltest.Stage, strike func()) {
			inputs := submitMany(s, 200)
			strike()
			id := after(s, inputs...)
			resolveAll(s)
			require.Equal(s.T, layout.Blocked, s.State(id))
			require.Equal(s.T, 201, endAll(s, realize))
			require.Equal(s.T, int64(201), s.Counted(layout.Realized))
		},
		"futura-claim": func(s *modeltest.Stage, strike func()) {
			s.Submit()
			s.Submit()
			strike()
			require.Len(s.T, s.Claim(s.Worker), 2)
			require.Empty(s.T, s.Claim(s.Worker))
			require.Equal(s.T, int64(2), s.Counted(layout.Claimed))
		},
		"futura-finish": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)
			strike()
			outcome := s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{Value: []byte("y")}})
			require.Contains(s.T, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Already}, outcome)
			require.Equal(s.T, layout.Realized, s.State(id))
			require.Equal(s.T, int64(1), s.Counted(layout.Realized))
			notices, _, err := s.Box.Listen(s.Ctx)
			require.NoError(s.T, err)
			require.Len(s.T, notices, 1)
		},
		"futura-finish of an input": func(s *modeltest.Stage, strike func()) {
			input, other := s.Submit(), s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Priority = 1 })
			first, both := after(s, input), after(s, input, other)
			f := s.Claim(s.Worker)
			require.Len(s.T, f, 2)
			strike()
			s.Finish(s.Worker, realize(&f[0]))
			s.Faults.Flush()
			s.Finish(s.Worker, realize(&f[1]))
			resolveAll(s)
			require.Equal(s.T, layout.Ready, s.State(first))
			require.Equal(s.T, layout.Ready, s.State(both))
			require.Equal(s.T, int64(2), s.Counted(layout.Ready))
		},
		"futura-finish with a submit that takes what ends with it": func(s *modeltest.Stage, strike func()) {
			input := s.Submit()
			sender := s.Submit()
			f := s.Claim(s.Worker)
			require.Len(s.T, f, 2)
			sent, err := s.C.Prepare(s.Ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"},
				Inputs: []layout.ID{input}}})
			require.NoError(s.T, err)
			ends := []fdbmodel.Completion{realize(&f[0]), realize(&f[1])}
			for i := range ends {
				if f[i].ID == sender {
					ends[i].Beside = &fdbmodel.Beside{Submits: sent}
				}
			}
			strike()
			outcomes, err := s.Worker.Finish(s.Ctx, ends)
			require.NoError(s.T, err)
			require.NotContains(s.T, outcomes, fdbmodel.Lost)
			resolveAll(s)
			require.Equal(s.T, layout.Ready, s.State(sent[0].ID))
			require.Equal(s.T, int64(1), s.Counted(layout.Ready))
			require.Equal(s.T, int64(2), s.Counted(layout.Realized))
		},
		"futura-resolve of checks": func(s *modeltest.Stage, strike func()) {
			input, other := s.Submit(), s.Submit()
			both := after(s, input, other)
			f := s.Claim(s.Worker)
			require.Len(s.T, f, 2)
			strike()
			s.Finish(s.Worker, realize(&f[0]))
			s.Faults.Flush()
			require.Equal(s.T, layout.Blocked, s.State(both))
			s.Finish(s.Worker, realize(&f[1]))
			resolveAll(s)
			require.Equal(s.T, layout.Ready, s.State(both))
		},
		"futura-finish of a failure": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)
			strike()
			s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Exception: &layout.Exception{Kind: layout.KindError}})
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, layout.Delayed, row.State())
			require.Equal(s.T, 1, row.Attempts.Failed)
		},
		"futura-assign to another": func(s *modeltest.Stage, strike func()) {
			id, second := s.Submit(), s.Second()
			outcomes, err := s.C.Assign(s.Ctx, fdbmodel.Assignment{To: s.Worker.ID(), Reason: "reason"}, []layout.ID{id})
			require.NoError(s.T, err)
			require.Equal(s.T, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
			strike()
			move := fdbmodel.Assignment{From: s.Worker.ID(), To: second.ID(), Reason: "reason"}
			outcomes, err = s.C.Assign(s.Ctx, move, []layout.ID{id})
			require.NoError(s.T, err)
			require.Contains(s.T, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Already}, outcomes[0])
			s.Faults.Flush()
			require.Empty(s.T, s.Claim(s.Worker))
			require.Len(s.T, s.Claim(second), 1)
		},
		"futura-finish of an object": func(s *modeltest.Stage, strike func()) {
			id := s.Object()
			f := s.Claim(s.Worker)
			strike()
			s.Finish(s.Worker, modeltest.KeepObject(&f[0]))
			s.Faults.Flush()
			copies, err := results.Of(s.C).Copies(s.Ctx, id)
			require.NoError(s.T, err)
			require.Len(s.T, copies, 1)
		},
		"futura-finish that blocks": func(s *modeltest.Stage, strike func()) {
			input := s.Object()
			endAll(s, modeltest.KeepObject)
			user := after(s, input)
			s.LoseWorker()
			held := s.Claim(s.Worker)
			_, err := results.Of(s.C).ReportLost(s.Ctx, input, s.Token(input), nil)
			require.NoError(s.T, err)
			strike()
			s.Finish(s.Worker, fdbmodel.Completion{Future: &held[0], Block: true})
			require.Equal(s.T, layout.Blocked, s.State(user))
			require.Equal(s.T, int64(1), s.Counted(layout.Blocked))
			resolveAll(s)
			require.Equal(s.T, 2, endAll(s, modeltest.KeepObject))
		},
		"futura-cancel": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			strike()
			outcome, state, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.T, err)
			require.Contains(s.T, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Already}, outcome)
			require.Equal(s.T, layout.Failed, state)
			require.Equal(s.T, int64(1), s.Counted(layout.Failed))
		},
		"futura-configure": func(s *modeltest.Stage, strike func()) {
			strike()
			config, err := admin.Configure(s.Ctx, s.C, func(c *layout.Config) { c.Retention = time.Hour })
			require.NoError(s.T, err)
			require.Equal(s.T, time.Hour, config.Retention)
		},
		"futura-retry": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			_, _, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.T, err)
			strike()
			require.NoError(s.T, s.C.Retry(s.Ctx, id))
			require.Equal(s.T, layout.Ready, s.State(id))
		},
		"futura-retry with inputs": func(s *modeltest.Stage, strike func()) {
			input := s.Submit()
			user := after(s, input)
			_, _, err := s.C.Cancel(s.Ctx, user, "")
			require.NoError(s.T, err)
			strike()
			require.NoError(s.T, s.C.Retry(s.Ctx, user))
			require.Equal(s.T, layout.Blocked, s.State(user))
			resolveAll(s)
			require.Equal(s.T, 2, endAll(s, realize))
		},
		"futura-discard": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			_, _, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.T, err)
			strike()
			require.NoError(s.T, s.C.Discard(s.Ctx, id))
			require.Equal(s.T, layout.State(0), s.State(id))
			require.Equal(s.T, int64(0), s.Counted(layout.Failed))
		},
		"futura-discard of many": func(s *modeltest.Stage, strike func()) {
			ids := []layout.ID{s.Submit(), s.Submit()}
			_, err := s.C.CancelMany(s.Ctx, ids, "")
			require.NoError(s.T, err)
			strike()
			_, err = s.C.DiscardMany(s.Ctx, ids)
			require.NoError(s.T, err)
			require.Equal(s.T, int64(0), s.Counted(layout.Failed))
		},
		"futura-promote": func(s *modeltest.Stage, strike func()) {
			id := s.Submit(func(sub *fdbmodel.Submission) { sub.NotBefore = s.C.Now().Add(time.Second) })
			s.Clock.Advance(2 * time.Second)
			strike()
			_, _, err := maintenance.Of(s.C).PromoteDue(s.Ctx)
			require.NoError(s.T, err)
			require.Equal(s.T, layout.Ready, s.State(id))
			require.Equal(s.T, int64(1), s.Counted(layout.Ready))
		},
		"futura-nofit": func(s *modeltest.Stage, strike func()) {
			id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Queue = "nobodys" })
			var unschedulable fit.Unschedulable
			for range 4 {
				_, _, err := fit.EndInfeasible(s.Ctx, s.C, &unschedulable)
				require.NoError(s.T, err)
				s.Clock.Advance(s.C.Config().InfeasibleAfter / 4)
			}
			strike()
			_, _, err := fit.EndInfeasible(s.Ctx, s.C, &unschedulable)
			require.NoError(s.T, err)
			require.Equal(s.T, layout.Failed, s.State(id))
			require.Equal(s.T, int64(1), s.Counted(layout.Failed))
		},
		"futura-expire": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			_, _, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.T, err)
			s.Clock.Advance(2 * time.Minute)
			strike()
			_, _, err = maintenance.Of(s.C).ExpireDone(s.Ctx)
			require.NoError(s.T, err)
			require.Equal(s.T, layout.State(0), s.State(id))
			require.Equal(s.T, int64(0), s.Counted(layout.Failed))
		},
		"futura-expire of what is pinned": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			_, _, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.T, err)
			require.NoError(s.T, results.Of(s.C).Pin(s.Ctx, id, "report", ""))
			s.Clock.Advance(2 * time.Minute)
			strike()
			_, _, err = maintenance.Of(s.C).ExpireDone(s.Ctx)
			require.NoError(s.T, err)
			s.Faults.Flush()
			listed := 0
			for shard := range s.C.Config().Shards {
				done := kv.Prefix(s.C.Keys().DoneOf(shard))
				require.NoError(s.T, s.C.EachKey(s.Ctx, done, func(kv.KeyValue) error { listed++; return nil }))
			}
			require.Equal(s.T, 1, listed)
			require.Equal(s.T, layout.Failed, s.State(id))
		},
		"futura-reap": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			held := s.Claim(s.Worker)
			require.NoError(s.T, s.Worker.Begin(s.Ctx, &held[0]))
			members, err := s.C.Workers(s.Ctx)
			require.NoError(s.T, err)
			strike()
			dead, err := s.C.DeclareDead(s.Ctx, members[0].ID, members[0].Beat)
			require.NoError(s.T, err)
			require.True(s.T, dead)
			strike()
			_, err = s.C.ReapClaims(s.Ctx, members[0].ID)
			require.NoError(s.T, err)
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, layout.Delayed, row.State())
			require.Equal(s.T, 1, row.Attempts.Crashes)
			_, err = s.Worker.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
			require.ErrorIs(s.T, err, fdbmodel.ErrReaped)
			strike()
			require.NoError(s.T, s.Worker.Leave(s.Ctx))
			row, err = s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, layout.Attempts{Due: row.Attempts.Due}, row.Attempts, "the worker is alive after all")
		},
		"futura-begin": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			held := s.Claim(s.Worker)
			strike()
			require.NoError(s.T, s.Worker.Begin(s.Ctx, &held[0]))
			require.Equal(s.T, fdbmodel.Applied, s.Finish(s.Worker, fdbmodel.Completion{Future: &held[0], Relinquish: true}))
			s.Faults.Flush()
			report, err := audit.Check(s.Ctx, s.C, audit.Options{})
			require.NoError(s.T, err)
			require.Empty(s.T, report.Problems, "nothing is committed behind the end of the run")
			held = s.Claim(s.Worker)
			require.NoError(s.T, s.Worker.Begin(s.Ctx, &held[0]))
			_, err = s.C.Register(s.Ctx, s.Info())
			require.NoError(s.T, err)
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, 1, row.Attempts.Crashes)
			require.ErrorIs(s.T, s.Worker.Begin(s.Ctx, &held[0]), fdbmodel.ErrReaped)
		},
		"futura-begin of what is absolved": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			held := s.Claim(s.Worker)
			require.NoError(s.T, s.Worker.Begin(s.Ctx, &held[0]))
			strike()
			require.NoError(s.T, s.Worker.Absolve(s.Ctx, &held[0]))
			require.NoError(s.T, s.Worker.Begin(s.Ctx, &held[0]))
			s.Faults.Flush()
			_, err := s.C.Register(s.Ctx, s.Info())
			require.NoError(s.T, err)
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, 1, row.Attempts.Crashes, "what was absolved before it was begun again stays begun")
		},
		"futura-register": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			old := s.Claim(s.Worker)
			strike()
			heir, err := s.C.Register(s.Ctx, s.Info())
			require.NoError(s.T, err)
			require.Equal(s.T, layout.Delayed, s.State(id))
			require.Equal(s.T, fdbmodel.Lost, s.Finish(s.Worker, fdbmodel.Completion{Future: &old[0], Result: &layout.Result{}}))
			s.Clock.Advance(time.Minute)
			_, _, err = maintenance.Of(s.C).PromoteDue(s.Ctx)
			require.NoError(s.T, err)
			require.Len(s.T, s.Claim(heir), 1)
		},
		"futura-leave": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			s.Claim(s.Worker)
			strike()
			require.NoError(s.T, s.Worker.Leave(s.Ctx))
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, layout.Ready, row.State())
			require.Equal(s.T, layout.Attempts{}, row.Attempts)
			members, err := s.C.Workers(s.Ctx)
			require.NoError(s.T, err)
			require.Empty(s.T, members)
		},
		"futura-beat": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			s.Claim(s.Worker)
			_, _, err := s.C.Cancel(s.Ctx, id, "")
			require.NoError(s.T, err)
			strike()
			cancelled, err := s.Worker.Heartbeat(s.Ctx, layout.Heartbeat{Free: layout.Resources{Slots: 1}, Running: 1})
			require.NoError(s.T, err)
			require.Contains(s.T, cancelled, id)
		},
		"futura-idle": func(s *modeltest.Stage, strike func()) {
			strike()
			watch, err := s.Worker.EnterIdleRing(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}})
			require.NoError(s.T, err)
			require.NotNil(s.T, watch)
			s.Submit()
			<-watch.Done()
			require.NoError(s.T, watch.Err())
		},
		"futura-chunk": func(s *modeltest.Stage, strike func()) {
			strike()
			args := make([]byte, 300_000)
			args[299_999] = 7
			id := s.Submit(func(sub *fdbmodel.Submission) { sub.Args = args })
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			got, err := s.C.Args(s.Ctx, id, row.Spec)
			require.NoError(s.T, err)
			require.Equal(s.T, args, got)
		},
		"futura-code": func(s *modeltest.Stage, strike func()) {
			strike()
			info, err := modules.Of(s.C).Put(s.Ctx, []byte("module"), "name")
			require.NoError(s.T, err)
			got, err := modules.Of(s.C).Get(s.Ctx, info.CID)
			require.NoError(s.T, err)
			require.Equal(s.T, "module", string(got))
		},
		"futura-code of aliases": func(s *modeltest.Stage, strike func()) {
			info, err := modules.Of(s.C).Put(s.Ctx, []byte("module"), "")
			require.NoError(s.T, err)
			strike()
			require.NoError(s.T, modules.Of(s.C).SetAlias(s.Ctx, "name", info.CID))
			function, err := s.C.ResolveFunction(s.Ctx, "wasm:name")
			require.NoError(s.T, err)
			require.Equal(s.T, "wasm:"+info.CID, function)
			strike()
			require.NoError(s.T, modules.Of(s.C).RemoveAlias(s.Ctx, "name"))
			require.ErrorIs(s.T, modules.Of(s.C).RemoveAlias(s.Ctx, "name"), fdbmodel.ErrNotFound)
		},
		"futura-code of a removal": func(s *modeltest.Stage, strike func()) {
			info, err := modules.Of(s.C).Put(s.Ctx, []byte("module"), "name")
			require.NoError(s.T, err)
			strike()
			removed, err := modules.Of(s.C).Remove(s.Ctx, info.CID, false)
			require.NoError(s.T, err)
			require.Equal(s.T, []string{"name"}, removed.Aliases)
			_, err = modules.Of(s.C).Get(s.Ctx, info.CID)
			require.ErrorIs(s.T, err, fdbmodel.ErrNotFound)
		},
		"futura-janitor": func(s *modeltest.Stage, strike func()) {
			strike()
			_, held, err := maintenance.Of(s.C).Acquire(s.Ctx, s.Worker.ID(), nil, 1)
			require.NoError(s.T, err)
			require.True(s.T, held)
			_, held, err = maintenance.Of(s.C).Acquire(s.Ctx, "other", nil, 1)
			require.NoError(s.T, err)
			require.False(s.T, held)
		},
		"futura-janitor release": func(s *modeltest.Stage, strike func()) {
			_, held, err := maintenance.Of(s.C).Acquire(s.Ctx, "gone", nil, 1)
			require.NoError(s.T, err)
			require.True(s.T, held)
			strike()
			require.NoError(s.T, maintenance.Of(s.C).Release(s.Ctx, "gone"))
			record, held, err := maintenance.Of(s.C).Acquire(s.Ctx, "next", nil, 1)
			require.NoError(s.T, err)
			require.True(s.T, held)
			present, _, err := maintenance.Of(s.C).Present(s.Ctx)
			require.NoError(s.T, err)
			require.Equal(s.T, record, present)
		},
	})
}

// TestAnUnknownResultIsRememberedBesideADamagedLane: a change that is begun anew without the lane may have happened.
func TestAnUnknownResultIsRememberedBesideADamagedLane(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	const tag = "futura-change"
	s.Faults.FailNext(faultkv.UnknownCommitted, func(found string) bool { return found == tag })
	var maybe []bool
	_, err := s.C.Change(s.Ctx, kv.Options{Tag: tag}, func(tx kv.Attempt, _ *fdbmodel.WriteSet) error {
		tx.AddWriteConflictKey([]byte("a"))
		if maybe = append(maybe, tx.MaybeCommitted); len(maybe) == 2 {
			return &lane.DamagedError{Lanes: []layout.Lane{{Kind: "l", Key: "k"}}, Err: layout.ErrBadRecord}
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []bool{false, true, true}, maybe)
}
