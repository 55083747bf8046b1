package pauses_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/pauses"
)

// TestNothingIsTakenOfWhatIsPaused has a worker of the process obey at once, and go on as
// soon as it is resumed.
func TestNothingIsTakenOfWhatIsPaused(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	info := s.Info()
	info.Address, info.Functions = "", []string{"go:f", layout.AnyModule}
	info.Queues = []string{layout.DefaultQueue, "mail"}
	near, err := s.C.Register(s.Ctx, info)
	require.NoError(t, err)
	module, err := modules.Of(s.C).Put(s.Ctx, []byte("module"), "tool")
	require.NoError(t, err)
	for _, c := range []struct {
		what, name string
		spec       layout.Spec
	}{
		{pause.Queue, "mail", layout.Spec{Function: "go:f", Queue: "mail"}},
		{pause.Function, "go:f", layout.Spec{Function: "go:f"}},
		{pause.Function, "wasm:tool", layout.Spec{Function: "wasm:" + module.CID + "/method"}},
	} {
		for _, assigned := range []layout.WorkerID{"", near.ID()} {
			t.Run(fmt.Sprint(c.name, assigned != ""), func(t *testing.T) {
				_, err := pauses.Of(s.C).Pause(s.Ctx, c.what, c.name, "why")
				require.NoError(t, err)
				id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec, sub.Assigned = c.spec, assigned })
				other := s.Submit(func(sub *fdbmodel.Submission) {
					if sub.Spec = (layout.Spec{Function: "go:f"}); c.name == "go:f" {
						sub.Spec.Function = "wasm:tool"
					}
				})
				got := s.Claim(near)
				require.Len(t, got, 1)
				require.Equal(t, other, got[0].ID)
				s.Finish(near, fdbmodel.Completion{Future: &got[0], Result: &layout.Result{}})
				watch, err := near.EnterIdleRing(s.Ctx, fdbmodel.ClaimRequest{Free: info.Capacity, Max: 1})
				require.NoError(t, err)
				require.NotNil(t, watch, "it has nothing to do")
				defer watch.Cancel()
				hint := near.RequestHint(fdbmodel.ClaimRequest{Free: info.Capacity, Max: 1})
				defer hint.Cancel()
				was, err := pauses.Of(s.C).Resume(s.Ctx, c.what, c.name)
				require.NoError(t, err)
				require.True(t, was)
				<-hint.C()
				got = s.Claim(near)
				require.Len(t, got, 1)
				require.Equal(t, id, got[0].ID)
				s.Finish(near, fdbmodel.Completion{Future: &got[0], Result: &layout.Result{}})
				was, err = pauses.Of(s.C).Resume(s.Ctx, c.what, c.name)
				require.NoError(t, err)
				require.False(t, was)
			})
		}
	}
}

// TestPausesReachOtherProcesses has a worker of another process learn them as it
// registers, and with its heartbeat.
func TestPausesReachOtherProcesses(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	_, err := pauses.Of(s.C).Pause(s.Ctx, pause.Queue, layout.DefaultQueue, "why")
	require.NoError(t, err)
	other, err := fdbmodel.Open(s.Ctx, s.Faults, s.C.Name(), fdbmodel.Options{Clock: s.Clock, Existing: true})
	require.NoError(t, err)
	info := s.Info()
	info.Address = ""
	far, err := other.Register(s.Ctx, info)
	require.NoError(t, err)
	id := s.Submit()
	require.Empty(t, s.Claim(far), "it was paused when the worker came")
	hint := far.RequestHint(fdbmodel.ClaimRequest{Free: info.Capacity, Max: 1})
	defer hint.Cancel()
	_, err = pauses.Of(s.C).Resume(s.Ctx, pause.Queue, layout.DefaultQueue)
	require.NoError(t, err)
	_, err = far.Heartbeat(s.Ctx, layout.Heartbeat{})
	require.NoError(t, err)
	<-hint.C()
	got := s.Claim(far)
	require.Len(t, got, 1)
	require.Equal(t, id, got[0].ID)
}

func TestPausesAreBounded(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	tx := s.C.Database().Begin(kv.Options{})
	for i := range pauses.Max - 1 {
		tx.Set(pause.Keys(s.C.Keys()).Pause(pause.Queue, fmt.Sprint("q", i)), layout.Encode(&pause.Record{At: 1}))
	}
	_, err := tx.Commit(s.Ctx)
	require.NoError(t, err)
	_, err = pauses.Of(s.C).Pause(s.Ctx, pause.Queue, "last", "")
	require.NoError(t, err)
	_, err = pauses.Of(s.C).Pause(s.Ctx, pause.Queue, "more", "")
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	p, err := pauses.Of(s.C).Pause(s.Ctx, pause.Queue, "q1", "another reason")
	require.NoError(t, err)
	require.Equal(t, "another reason", p.Reason)
	list, err := pauses.Of(s.C).List(s.Ctx)
	require.NoError(t, err)
	require.Len(t, list, pauses.Max)
	for _, bad := range [][2]string{{"worker", "w"}, {pause.Queue, "a b"}, {pause.Function, "f"}} {
		_, err := pauses.Of(s.C).Pause(s.Ctx, bad[0], bad[1], "")
		require.ErrorIs(t, err, layout.ErrBadName)
		_, err = pauses.Of(s.C).Resume(s.Ctx, bad[0], bad[1])
		require.ErrorIs(t, err, layout.ErrBadName)
	}
	_, err = pauses.Of(s.C).Pause(s.Ctx, pause.Function, "wasm:none", "")
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	was, err := pauses.Of(s.C).Resume(s.Ctx, pause.Function, "wasm:none")
	require.NoError(t, err)
	require.False(t, was)
	_, err = pauses.Of(s.C).Pause(s.Ctx, pause.Queue, "q", strings.Repeat("x", 257))
	require.ErrorIs(t, err, layout.ErrBadSpec)
}

// TestUnknownResultsOfPauses has commits with unknown results, which are made or not.
func TestUnknownResultsOfPauses(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			fail := func() { s.Faults.FailNext(fault, func(tag string) bool { return tag == "futura-pause" }) }
			id := s.Submit()
			fail()
			_, err := pauses.Of(s.C).Pause(s.Ctx, pause.Function, "go:f", "why")
			require.NoError(t, err)
			s.Faults.Flush()
			require.Empty(t, s.Claim(s.Worker))
			fail()
			was, err := pauses.Of(s.C).Resume(s.Ctx, pause.Function, "go:f")
			require.NoError(t, err)
			require.True(t, was)
			s.Faults.Flush()
			list, err := pauses.Of(s.C).List(s.Ctx)
			require.NoError(t, err)
			require.Empty(t, list)
			got := s.Claim(s.Worker)
			require.Len(t, got, 1)
			require.Equal(t, id, got[0].ID)
		})
	}
}

// TestOneOfTwoResumes has another process end a pause first: it alone hears that there was one.
func TestOneOfTwoResumes(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	_, err := pauses.Of(s.C).Pause(s.Ctx, pause.Queue, "q", strings.Repeat("x", layout.MaxPauseReason))
	require.NoError(t, err)
	c := s.Interrupted("futura-pause", func() {
		was, err := pauses.Of(s.C).Resume(s.Ctx, pause.Queue, "q")
		require.NoError(t, err)
		require.True(t, was)
	})
	was, err := pauses.Of(c).Resume(s.Ctx, pause.Queue, "q")
	require.NoError(t, err)
	require.False(t, was)
}
