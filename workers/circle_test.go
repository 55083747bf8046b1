package workers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/circles"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/taskcontext"
)

// TestWhichWaitsAreLookedAt looks at a wait for one future once it is as old as the dead-after time, then when it is
// twice as old, or earlier if that was asked.
func TestWhichWaitsAreLookedAt(t *testing.T) {
	t.Parallel()
	clk, m := clock.NewVirtual(time.UnixMilli(0)), &membership{}
	s := newSlots(clk, layout.Resources{Slots: 9}, time.Minute, 1)
	what := func() (layout.ID, int) { return layout.ID{9}, 1 }
	refuse := func(error) {}
	one := func(of taskcontext.Awaited, refuse taskcontext.Refuse) *wait {
		return &wait{what: of, refuse: refuse, since: clk.Now()}
	}
	looked := one(what, refuse)
	told := []layout.Await{{ID: layout.ID{2}, Count: 2}}
	for id, j := range map[byte]*job{
		1: {membership: m, waits: []*wait{looked}},
		2: {membership: m, waits: []*wait{one(what, refuse)}}, // of several futures
		3: {membership: &membership{}, waits: []*wait{one(what, refuse)}},
		4: {membership: m, waits: []*wait{one(what, refuse), one(what, refuse)}},
		5: {membership: m, waits: []*wait{one(what, nil)}},
		6: {membership: m, waits: []*wait{one(nil, refuse)}},
		7: {membership: m},
	} {
		j.future.ID = layout.ID{id}
		s.running[j] = struct{}{}
		if id != 2 {
			told = append(told, layout.Await{ID: j.future.ID, Count: 1})
		}
	}
	due := func() bool {
		found := s.longWaits(m, told, 15*time.Second)
		if len(found) > 0 {
			require.Equal(t, map[layout.ID]*wait{{1}: looked}, found)
		}
		return len(found) > 0
	}
	clk.Advance(15*time.Second - 1)
	require.False(t, due())
	clk.Advance(1)
	require.True(t, due())
	clk.Advance(15*time.Second - 1)
	require.False(t, due())
	clk.Advance(time.Minute)
	require.True(t, due())
	s.lookAgain(looked, 20*time.Second)
	clk.Advance(20*time.Second - 1)
	require.False(t, due())
	clk.Advance(1)
	require.True(t, due(), "before it is twice as old")
}

// TestAWaitInACircleIsRefused has three functions on two workers wait for each other: one wait is
// refused, and the others go on.
func TestAWaitInACircleIsRefused(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	type awaiting struct {
		id     layout.ID
		refuse chan error
	}
	began, next := make(chan awaiting, 3), make(chan layout.ID, 3)
	awaits := func(ctx context.Context, _ []byte) ([]byte, error) {
		info, _ := InfoFrom(ctx)
		began <- awaiting{id: info.ID}
		var of layout.ID
		select {
		case of = <-next:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		refused := make(chan error, 1)
		defer taskcontext.NoteAwait(ctx, func() (layout.ID, int) { return of, 1 }, func(err error) { refused <- err })()
		began <- awaiting{info.ID, refused}
		select {
		case err := <-refused:
			return nil, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for range 2 {
		b.start(Options{Slots: 2}, map[string]Function{"awaits": awaits})
	}
	receive := func() (a awaiting) {
		b.await("a function", func() bool {
			select {
			case a = <-began:
				return true
			default:
				return false
			}
		})
		return a
	}
	var ids []layout.ID
	for range 3 {
		b.one("go:awaits", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 0 })
		ids = append(ids, receive().id)
	}
	// Each gets the next one in some order: a circle of three, or one function that waits for itself.
	for _, i := range []int{1, 2, 0} {
		next <- ids[i]
	}
	for range 3 {
		receive()
	}
	failed := func() (n int) {
		for _, id := range ids {
			if stateOf(b, id) != layout.Claimed {
				n++
			}
		}
		return n
	}
	b.await("the refusal", func() bool { return failed() > 0 })
	require.Equal(t, 1, failed(), "one of them is refused")
	for _, id := range ids {
		if row := b.row(id); row.State() != layout.Claimed {
			require.Contains(t, row.Exception.Message, circles.ErrCircle.Error())
			require.Contains(t, row.Exception.Message, "awaits")
			require.Contains(t, row.Exception.Message, "Method.Send")
			continue
		}
		e, err := inspect.Explain(b.ctx, b.cluster, id)
		require.NoError(t, err)
		require.NotEqual(t, inspect.ReasonCircle, e.Reason, "it is open now: %s", e.Text)
	}
}
