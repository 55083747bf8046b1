package lanes_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// newerRecord is a record in a possible later version of the format.
var newerRecord = []byte{layout.RecordVersion + 1, 0xc1}

// TestADamagedLaneCostsOnlyItsOwnFutures damages a record of a lane while its futures are
// due, overdue, in line behind a rate, and with a worker that dies: what the janitor does
// for others goes on, and an audit reports the record.
func TestADamagedLaneCostsOnlyItsOwnFutures(t *testing.T) {
	t.Parallel()
	damaged := layout.Lane{Kind: "k", Key: "damaged"}
	records := map[string]func(layout.Keyspace) []byte{
		"lane":  func(k layout.Keyspace) []byte { return k.Lane(damaged) },
		"kind":  func(k layout.Keyspace) []byte { return k.LaneKind("k") },
		"total": func(k layout.Keyspace) []byte { return k.LaneTotal("k") },
	}
	values := map[string][]byte{
		"garbage": {layout.RecordVersion, 0xc1}, "empty": {}, "newer": newerRecord,
		"negative": layout.Encode(&layout.LaneKind{Width: -1, Rate: -1, Every: -1, Most: -1}),
	}
	for record, key := range records {
		for value, bytes := range values {
			if value == "negative" && record != "kind" {
				continue
			}
			t.Run(record+" "+value, func(t *testing.T) {
				t.Parallel()
				kind := layout.LaneKind{Width: 2, Rate: 1, Every: time.Second}
				if record == "total" {
					kind.Total = 9
				}
				s := newLaneStage(t, kind)
				require.NoError(t, s.L.SetKind(s.Ctx, "good", kind))
				kind.Width = 9
				s.damage(damaged, kind, key(s.C.Keys()), bytes)
			})
		}
	}
}

func (s laneStage) damage(damaged layout.Lane, wider layout.LaneKind, key, value []byte) {
	t := s.T
	dying, err := s.C.Register(s.Ctx, s.Info())
	require.NoError(t, err)
	lanes := []layout.Lane{damaged, {Kind: "good", Key: "x"}, {}}
	in := func(lane layout.Lane, change func(*fdbmodel.Submission)) layout.ID {
		return s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = lane }, change)
	}
	var held, due, late, lined []layout.ID
	for _, lane := range lanes {
		held = append(held, in(lane, func(*fdbmodel.Submission) {}))
	}
	require.Len(t, s.Claim(dying), len(lanes))
	for _, lane := range lanes {
		due = append(due, in(lane, func(sub *fdbmodel.Submission) { sub.NotBefore = s.Clock.Now().Add(5 * time.Second) }))
		late = append(late, in(lane, func(sub *fdbmodel.Submission) {
			sub.NotBefore = s.Clock.Now().Add(time.Hour)
			sub.Spec.ExpiresAt = layout.Millis(s.Clock.Now().Add(5 * time.Second))
		}))
		lined = append(lined, in(lane, func(*fdbmodel.Submission) {}))
	}
	s.Store(key, value)
	s.Clock.Advance(10 * time.Second)

	_, _, err = maintenance.Of(s.C).PromoteDue(s.Ctx)
	require.NoError(t, err)
	_, _, err = maintenance.Of(s.C).EndOverdue(s.Ctx)
	require.NoError(t, err)
	_, _, err = s.L.AdmitDue(s.Ctx)
	require.NoError(t, err)
	modeltest.DeclareDead(t, s.C, dying.ID())
	_, err = s.C.ReapClaims(s.Ctx, dying.ID())
	require.NoError(t, err)
	for i, lane := range lanes[1:] {
		require.NotEqual(t, layout.Claimed, s.State(held[i+1]), "%v", lane)
		require.Equal(t, layout.Ready, s.State(due[i+1]), "%v", lane)
		require.Equal(t, layout.Failed, s.State(late[i+1]), "%v", lane)
		row, err := s.C.Get(s.Ctx, lined[i+1])
		require.NoError(t, err)
		require.False(t, row.InLine(), "%v", lane)
	}
	require.NoError(t, s.L.SetKind(s.Ctx, "good", wider))
	s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = lanes[1] })
	_, err = s.C.Submit(s.Ctx, s.inLanes(damaged.Key))
	require.True(t, layout.IsUnreadable(err), "%v", err)
	report, err := audit.Check(context.Background(), s.C, audit.Options{})
	require.NoError(t, err)
	require.True(t, len(report.Problems) > 0 || slices.Equal(value, newerRecord))
}

// TestAResumedKindAdmitsBehindLanesThatHaveNobodyInLine has the only lane with somebody in
// line behind more lanes without than one transaction looks at.
func TestAResumedKindAdmitsBehindLanesThatHaveNobodyInLine(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	var subs []fdbmodel.Submission
	shard := layout.ShardOf("last", 16)
	for i := 0; len(subs) < 300; i++ {
		if key := fmt.Sprintf("a%d", i); layout.ShardOf(key, 16) == shard {
			subs = append(subs, s.inLanes(key)...)
		}
	}
	_, err := s.C.Submit(s.Ctx, subs)
	require.NoError(t, err)
	require.NoError(t, s.L.PauseKind(s.Ctx, "k", true))
	s.submit("last")
	require.Zero(t, s.open("last"))
	require.NoError(t, s.L.PauseKind(s.Ctx, "k", false))
	require.Equal(t, 1, s.open("last"))
	s.check()
}

// TestALaneBehindUnreadableEntriesHasItsTurn has more of them than one call reads before the entry of a lane that
// its rate holds back.
func TestALaneBehindUnreadableEntriesHasItsTurn(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 100, Rate: 1, Every: time.Second})
	prefix := s.C.Keys().LanesDueOf(layout.ShardOf("x", s.C.Config().Shards))
	_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		for i := range 3000 {
			tx.Set(fmt.Appendf(slices.Clone(prefix), "\x01%05d\x00", i), newerRecord)
		}
		return nil
	})
	require.NoError(t, err)
	for range 2 {
		s.submit("x")
		held := s.submit("x")
		row, err := s.C.Get(s.Ctx, held)
		require.NoError(t, err)
		require.True(t, row.InLine())
		s.Clock.Advance(10 * time.Second)
		for calls := 0; row.InLine(); calls++ {
			require.Less(t, calls, 3)
			_, _, err := s.L.AdmitDue(s.Ctx)
			require.NoError(t, err)
			row, err = s.C.Get(s.Ctx, held)
			require.NoError(t, err)
		}
		s.Clock.Advance(10 * time.Second)
	}
}

// TestADamagedLaneHoldsUpNoResults has futures whose results are used in a damaged lane,
// and elsewhere.
func TestADamagedLaneHoldsUpNoResults(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	uses := func(input layout.ID) func(*fdbmodel.Submission) {
		return func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{input} }
	}
	inputs := []layout.ID{s.Submit(), s.Submit()}
	inLane := s.submit("x", uses(inputs[0]))
	other := s.Submit(uses(inputs[1]))
	s.Store(s.C.Keys().Lane(s.lane("x")), []byte{layout.RecordVersion, 0xc1})
	var ends []fdbmodel.Completion
	for _, f := range s.Claim(s.Worker) {
		ends = append(ends, fdbmodel.Completion{Future: &f, Result: &layout.Result{}})
	}
	outcomes, err := s.Worker.Finish(s.Ctx, ends)
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Applied}, outcomes)
	_, _, err = s.C.ResolveEdges(s.Ctx)
	require.True(t, layout.IsUnreadable(err), "%v", err)
	require.Equal(t, layout.Blocked, s.State(inLane))
	require.Equal(t, layout.Ready, s.State(other))
	for _, id := range inputs {
		require.Equal(t, layout.Realized, s.State(id))
	}
	_, err = kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
		tx.Clear(s.C.Keys().Lane(s.lane("x")))
		return nil
	})
	require.NoError(t, err)
	_, _, err = s.C.ResolveEdges(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, layout.Ready, s.State(inLane))
	s.check()
}

// TestADamagedLaneHidesNothingInfeasible has futures that no worker can run, in a damaged lane
// and in none: those of the lane stay, the others end, and their client is told.
func TestADamagedLaneHidesNothingInfeasible(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	large := func(sub *fdbmodel.Submission) { sub.Spec.Requirements.CPU = 1 << 40 }
	inLane, other := s.submit("x", large), s.Submit(large)
	s.Store(s.C.Keys().Lane(s.lane("x")), []byte{layout.RecordVersion, 0xc1})
	var told []layout.ID
	s.C.OnNotices(func(mail map[layout.SessionID][]layout.Notice, _ kv.Version) {
		for _, n := range mail["session"] {
			told = append(told, n.ID)
		}
	})
	s.endInfeasible()
	require.Equal(t, layout.Failed, s.State(other))
	require.Equal(t, layout.Ready, s.State(inLane))
	require.Equal(t, []layout.ID{other}, told)
}

// TestListsLeaveOutLanesThatCantBeRead lists two lanes of one shard at a time, of which some can't be read.
func TestListsLeaveOutLanesThatCantBeRead(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 1})
	var good []string
	for i := range 40 {
		lane := layout.Lane{Kind: "k", Key: fmt.Sprint(i)}
		require.NoError(t, s.L.Pause(s.Ctx, lane, true))
		if i%3 == 0 {
			s.Store(s.C.Keys().Lane(lane), newerRecord)
		} else {
			good = append(good, lane.Key)
		}
	}
	var listed []string
	for after := ""; ; {
		page, err := s.L.List(s.Ctx, "k", after, 2)
		require.NoError(t, err)
		for _, v := range page {
			after = v.Lane.Key
			listed = append(listed, after)
		}
		if len(page) < 2 {
			break
		}
	}
	require.ElementsMatch(t, good, listed)
}

// TestAViewLeavesOutWhatCantBeRead of the line of a lane.
func TestAViewLeavesOutWhatCantBeRead(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 1})
	lane := layout.Lane{Kind: "k", Key: "x"}
	require.NoError(t, s.L.Pause(s.Ctx, lane, true))
	var ids []layout.ID
	for range 2 {
		ids = append(ids, s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = lane }))
	}
	row, err := s.C.Get(s.Ctx, ids[0])
	require.NoError(t, err)
	s.Store(s.C.Keys().Line(&row), newerRecord)
	v, err := s.L.View(s.Ctx, lane, 9)
	require.NoError(t, err)
	require.Equal(t, ids[1:], v.Line)
}
