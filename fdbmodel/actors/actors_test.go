package actors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/clock"
)

func ref(key string) actors.Ref { return actors.Ref{Type: "account", Key: key} }

func read(s *modeltest.Stage, key string) actors.State {
	state, err := actors.Of(s.C).Read(s.Ctx, ref(key))
	require.NoError(s.T, err)
	return state
}

// claim submits a future and claims it.
func claim(s *modeltest.Stage) *fdbmodel.ClaimedFuture {
	s.Submit()
	return &s.Claim(s.Worker)[0]
}

// write is a completion that writes the states of actors.
func write(s *modeltest.Stage, f *fdbmodel.ClaimedFuture, value string, states ...actors.State) fdbmodel.Completion {
	changes := make([]actors.Change, len(states))
	for i := range states {
		changes[i] = actors.Change{Read: states[i], Write: true, Value: []byte(value)}
	}
	beside, after, err := actors.Of(s.C).Turn(f, changes)
	require.NoError(s.T, err)
	require.Len(s.T, after, len(states))
	return fdbmodel.Completion{Future: f, Result: &layout.Result{Value: []byte(value)}, Beside: beside}
}

// TestATurnEndsOnWhatItHasRead has two attempts read one state: the second one to end is
// relinquished, also if both end in one transaction.
func TestATurnEndsOnWhatItHasRead(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{false, true} {
		s := modeltest.NewStage(t)
		first, second := claim(s), claim(s)
		done := []fdbmodel.Completion{
			write(s, first, "1", read(s, "a"), read(s, "b")), write(s, second, "2", read(s, "b"), read(s, "c")),
		}
		if together {
			_, err := s.Worker.Finish(s.Ctx, done)
			require.NoError(t, err)
		} else {
			for i := range done {
				require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, done[i]))
			}
		}
		require.Equal(t, layout.Realized, s.State(first.ID))
		require.Equal(t, layout.Ready, s.State(second.ID))
		for key, version := range map[string]int64{"a": 1, "b": 1, "c": 0} {
			require.Equal(t, version, read(s, key).Head.Version, key)
		}
		b := read(s, "b")
		require.Equal(t, "1", string(b.Value))
		require.Equal(t, first.ID, b.Head.Call)
		s.RequireSound()
	}
}

// TestTheSameVersionOfAnotherStateIsAnother deletes a state that an attempt has read, and has another
// one take its version.
func TestTheSameVersionOfAnotherStateIsAnother(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Finish(s.Worker, write(s, claim(s), "1", read(s, "a")))
	slow := claim(s)
	late := write(s, slow, "late", read(s, "a"))
	require.NoError(t, actors.Of(s.C).Delete(s.Ctx, ref("a")))
	require.ErrorIs(t, actors.Of(s.C).Delete(s.Ctx, ref("a")), fdbmodel.ErrNotFound)
	s.Finish(s.Worker, write(s, claim(s), "2", read(s, "a")))
	require.Equal(t, int64(1), read(s, "a").Head.Version)
	s.Finish(s.Worker, late)
	require.Equal(t, layout.Ready, s.State(slow.ID))
	require.Equal(t, "2", string(read(s, "a").Value))
}

// TestAnEmptyValueIsNoAbsentOne has attempts expect a key to be absent, and to be there, that is there and empty.
func TestAnEmptyValueIsNoAbsentOne(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	key := append(s.C.Keys().Incoming(), "/empty"...)
	_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(key, nil)
		return nil
	})
	require.NoError(t, err)
	for _, expected := range []struct {
		value []byte
		state layout.State
	}{{nil, layout.Ready}, {[]byte{}, layout.Realized}} {
		f := claim(s)
		s.Finish(s.Worker, fdbmodel.Completion{Future: f, Result: &layout.Result{},
			Beside: &fdbmodel.Beside{Expect: []kv.KeyValue{{Key: key, Value: expected.value}}}})
		require.Equal(t, expected.state, s.State(f.ID))
		if expected.state == layout.Ready {
			require.Equal(t, f.ID, s.Claim(s.Worker)[0].ID)
		}
	}
}

// TestALostClaimWritesNoState has the worker of an attempt lose its claim before the end.
func TestALostClaimWritesNoState(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	f := claim(s)
	done := write(s, f, "1", read(s, "a"))
	told := 0
	done.Beside.Done = func(version kv.Version) {
		require.Equal(t, kv.NoVersion, version)
		told++
	}
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, fdbmodel.Completion{Future: f, Relinquish: true}))
	require.Equal(t, fdbmodel.Lost, s.Finish(s.Worker, done))
	state := read(s, "a")
	require.False(t, state.Exists())
	require.Equal(t, 1, told)
}

// TestAChunkOfSubmitsComesWithTheResult has attempts submit futures, one of them in vain.
func TestFuturesComeWithTheResult(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	good, bad, lost := claim(s), claim(s), claim(s)
	subs := func(lane layout.Lane) []fdbmodel.Submission {
		spec := layout.Spec{Function: "go:f", Lane: lane}
		prepared, err := s.C.Prepare(s.Ctx, []fdbmodel.Submission{{Spec: spec}, {Spec: spec}})
		require.NoError(t, err)
		return prepared
	}
	none := layout.Lane{}
	done := []fdbmodel.Completion{write(s, good, "1", read(s, "a")), write(s, bad, "2", read(s, "b")), write(s, lost, "3")}
	all := [][]fdbmodel.Submission{subs(none), subs(layout.Lane{Kind: "none", Key: "k"}), subs(none)}
	for i := range done {
		done[i].Beside.Submits = all[i]
	}
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, fdbmodel.Completion{Future: lost, Relinquish: true}))
	outcomes, err := s.Worker.Finish(s.Ctx, done)
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Applied, fdbmodel.Lost}, outcomes)
	require.Equal(t, layout.Realized, s.State(good.ID))
	require.Equal(t, layout.Delayed, s.State(bad.ID), "its attempt has failed, and it is tried again")
	b := read(s, "b")
	require.False(t, b.Exists())
	for i, exists := range []bool{true, false, false} {
		for j := range all[i] {
			rows, err := s.C.GetMany(s.Ctx, []layout.ID{all[i][j].ID})
			require.NoError(t, err)
			require.Len(t, rows, map[bool]int{true: 1}[exists])
		}
	}
	s.RequireSound()
}

// TestLargeTurnsEndTogether has attempts end in one call that write, or submit, more than one transaction may.
func TestLargeTurnsEndTogether(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	large := strings.Repeat("x", actors.MaxState)
	var writing, sending []fdbmodel.Completion
	for i := range kv.MaxTxSize/actors.MaxTurnBytes + 2 {
		var states []actors.State
		for n := range 14 {
			states = append(states, read(s, fmt.Sprint(i, " ", n)))
		}
		writes, sends := write(s, claim(s), large, states...), write(s, claim(s), "v")
		writes.Result.Value = nil
		subs := make([]fdbmodel.Submission, 60)
		for n := range subs {
			subs[n] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:g"}, Args: make([]byte, 16<<10)}
		}
		var err error
		sends.Beside.Submits, err = s.C.Prepare(s.Ctx, subs)
		require.NoError(t, err)
		writing, sending = append(writing, writes), append(sending, sends)
	}
	done := append(writing, sending...)
	outcomes, err := s.Worker.Finish(s.Ctx, done)
	require.NoError(t, err)
	for i := range outcomes {
		require.Equal(t, fdbmodel.Applied, outcomes[i])
		require.Equal(t, layout.Realized, done[i].After.State)
	}
}

func TestLimitsOfTurns(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	f, all := claim(s), actors.Of(s.C)
	_, _, err := all.Turn(f, []actors.Change{{Read: read(s, "a"), Write: true, Value: make([]byte, actors.MaxState+1)}})
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	_, _, err = all.Turn(f, make([]actors.Change, actors.MaxTurn+1))
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	var many []actors.Change
	for i := range 20 {
		many = append(many, actors.Change{Read: read(s, fmt.Sprint(i)), Write: true, Value: make([]byte, actors.MaxState)})
	}
	_, _, err = all.Turn(f, many)
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	for _, bad := range []actors.Ref{{}, {Type: "a"}, {Key: "k"}, {Type: "a/b", Key: "k"}, {Type: "a", Key: "\xff"},
		{Type: strings.Repeat("a", 49), Key: "k"}, {Type: "a", Key: strings.Repeat("k", 257)}} {
		_, err := all.Read(s.Ctx, bad)
		require.ErrorIs(t, err, layout.ErrBadName, bad)
		require.ErrorIs(t, all.Delete(s.Ctx, bad), layout.ErrBadName)
	}
	_, _, err = all.Turn(f, make([]actors.Change, actors.MaxTurn))
	require.NoError(t, err)
	longest := actors.Ref{Type: strings.Repeat("a", actors.MaxType), Key: strings.Repeat("k", actors.MaxKey)}
	state, err := all.Read(s.Ctx, longest)
	require.NoError(t, err)
	done := write(s, f, strings.Repeat("x", actors.MaxState), state)
	done.Result.Value = nil
	s.Finish(s.Worker, done)
	require.NoError(t, all.Delete(s.Ctx, longest))
}

// TestALaneOfAnActorNamesIt reads the lanes of actors, and such as no actor has.
func TestALaneOfAnActorNamesIt(t *testing.T) {
	t.Parallel()
	of, is := actors.OfLane(ref("a/b").Lane())
	require.True(t, is)
	require.Equal(t, ref("a/b"), of)
	for _, lane := range []layout.Lane{{}, {Kind: "account", Key: "a"}, {Kind: "actor.", Key: "a"},
		{Kind: "actor.-", Key: "a"}, {Kind: "actor.account"}, {Kind: "actor.account", Key: "\xff"}} {
		_, is := actors.OfLane(lane)
		require.False(t, is, "%v", lane)
	}
}

// TestAHeadSaysSinceWhenItsActorIs has turns change an actor, one of them by a clock that is behind.
func TestAHeadSaysSinceWhenItsActorIs(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	behind, err := fdbmodel.Open(s.Ctx, s.Faults, "unknown", fdbmodel.Options{
		Clock: clock.NewVirtual(s.Clock.Now().Add(-time.Hour))})
	require.NoError(t, err)
	begun := layout.Millis(s.Clock.Now())
	s.Finish(s.Worker, write(s, claim(s), "1", read(s, "a")))
	s.Clock.Advance(time.Minute)
	changed := layout.Millis(s.Clock.Now())
	s.Finish(s.Worker, write(s, claim(s), "2", read(s, "a")))
	for _, want := range []string{"2", "3"} {
		a := read(s, "a")
		require.Equal(t, want, string(a.Value))
		require.Equal(t, begun, a.Head.CreatedAt)
		require.Equal(t, changed, a.Head.At, "it is never before the turn before")
		f := claim(s)
		beside, _, err := actors.Of(behind).Turn(f, []actors.Change{{Read: a, Write: true, Value: []byte("3")}})
		require.NoError(t, err)
		s.Finish(s.Worker, fdbmodel.Completion{Future: f, Result: &layout.Result{}, Beside: beside})
	}
	s.RequireSound()
}

// TestADeletedStateLeavesNothing has a turn delete an actor.
func TestADeletedStateLeavesNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Finish(s.Worker, write(s, claim(s), "1", read(s, "a")))
	f := claim(s)
	beside, _, err := actors.Of(s.C).Turn(f, []actors.Change{{Read: read(s, "a"), Delete: true}})
	require.NoError(t, err)
	s.Finish(s.Worker, fdbmodel.Completion{Future: f, Result: &layout.Result{}, Beside: beside})
	a := read(s, "a")
	require.False(t, a.Exists())
	s.RequireSound()
}

func TestListsOfActors(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all := actors.Of(s.C)
	types, err := all.Types(s.Ctx, 10)
	require.NoError(t, err)
	require.Empty(t, types)
	var states []actors.State
	for i := range 30 {
		states = append(states, read(s, fmt.Sprint(i)))
	}
	other, err := all.Read(s.Ctx, actors.Ref{Type: "acc", Key: "k"})
	require.NoError(t, err)
	s.Finish(s.Worker, write(s, claim(s), "v", append(states, other)...))
	for limit, want := range [][]string{nil, {"acc"}, {"acc", "account"}, {"acc", "account"}} {
		types, err = all.Types(s.Ctx, limit)
		require.NoError(t, err)
		require.Equal(t, want, types)
	}
	for _, list := range []func(context.Context, string, string, int) ([]actors.Listed, bool, error){
		all.List, all.ListStates,
	} {
		for _, limit := range []int{7, 10, 30, 100} {
			seen := map[string]bool{}
			for after, more := "", true; more; {
				var page []actors.Listed
				page, more, err = list(s.Ctx, "account", after, limit)
				require.NoError(t, err)
				require.LessOrEqual(t, len(page), limit)
				require.Equal(t, len(seen)+len(page) < 30, more)
				for i := range page {
					require.NoError(t, page[i].Err)
					require.False(t, seen[page[i].Key])
					require.Equal(t, int64(1), page[i].Head.Version)
					seen[page[i].Key], after = true, page[i].Key
				}
			}
			require.Len(t, seen, 30)
		}
	}
}

// TestListsOfLargeStates has a list of states end before it takes much memory, and name those that can't
// be read.
func TestListsOfLargeStates(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all := actors.Of(s.C)
	large := strings.Repeat("x", actors.MaxState)
	for i := range 20 {
		done := write(s, claim(s), large, read(s, fmt.Sprint(i)))
		done.Result.Value = nil
		require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, done))
	}
	page, more, err := all.ListStates(s.Ctx, "account", "", 20)
	require.NoError(t, err)
	require.True(t, more)
	require.Len(t, page, 16)
	require.Equal(t, large, string(page[15].Value))
	rest, more, err := all.ListStates(s.Ctx, "account", page[15].Key, 20)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, rest, 4)
	_, err = kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set(actors.Keys(s.C.Keys()).State(rest[1].Ref), []byte("short"))
		return nil
	})
	require.NoError(t, err)
	rest, _, err = all.ListStates(s.Ctx, "account", page[15].Key, 20)
	require.NoError(t, err)
	require.NoError(t, rest[0].Err)
	require.ErrorIs(t, rest[1].Err, layout.ErrBadRecord)
}
