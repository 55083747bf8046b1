package results_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
)

// TestUnknownResultsOfObjects is TestUnknownResults for what keeps, moves and loses results.
func TestUnknownResultsOfObjects(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-lose": func(s *modeltest.Stage, strike func()) {
			id := s.Object()
			s.EndAll(modeltest.KeepObject)
			s.LoseWorker()
			strike()
			token := s.Token(id)
			state, err := results.Of(s.C).ReportLost(s.Ctx, id, token, nil)
			require.NoError(s.T, err)
			require.Equal(s.T, layout.Ready, state)
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, 1, row.Attempts.Rebuilt)
			require.Equal(s.T, int64(1), s.Counted(layout.Ready))
		},
		"futura-clone": func(s *modeltest.Stage, strike func()) {
			id := s.Object()
			s.EndAll(modeltest.KeepObject)
			second := s.Second()
			strike()
			require.NoError(s.T, results.Of(s.C).AddCopy(s.Ctx, second.ID(), id, s.Token(id), false))
			s.Faults.Flush()
			copies, err := results.Of(s.C).Copies(s.Ctx, id)
			require.NoError(s.T, err)
			require.Len(s.T, copies, 2)
		},
		"futura-clone that moves": func(s *modeltest.Stage, strike func()) {
			id := s.Object()
			s.EndAll(modeltest.KeepObject)
			second := s.Second()
			strike()
			require.NoError(s.T, results.Of(s.C).AddCopy(s.Ctx, second.ID(), id, s.Token(id), true))
			s.Faults.Flush()
			copies, err := results.Of(s.C).Copies(s.Ctx, id)
			require.NoError(s.T, err)
			require.Len(s.T, copies, 1)
			require.Equal(s.T, second.ID(), copies[0].Worker)
		},
		"futura-leave of its objects": func(s *modeltest.Stage, strike func()) {
			id := s.Object()
			s.EndAll(modeltest.KeepObject)
			second := s.Second()
			strike()
			require.NoError(s.T, results.Of(s.C).StopHolding(s.Ctx, second.ID()))
			require.ErrorIs(s.T, results.Of(s.C).AddCopy(s.Ctx, second.ID(), id, s.Token(id), false), results.ErrHolderGone)
		},
		"futura-leave of copies that stay in a directory": func(s *modeltest.Stage, strike func()) {
			id := s.Object()
			s.EndAll(modeltest.KeepObject)
			strike()
			require.NoError(s.T, results.Of(s.C).LeaveCopies(s.Ctx, s.Worker.ID(), []layout.ID{id},
				s.Clock.Now().Add(time.Minute)))
			s.Faults.Flush()
			s.LoseWorker()
			token := s.Token(id)
			_, err := results.Of(s.C).ReportLost(s.Ctx, id, token, nil)
			require.ErrorIs(s.T, err, fdbmodel.ErrUnreachable)
			s.Clock.Advance(time.Minute)
			state, err := results.Of(s.C).ReportLost(s.Ctx, id, token, nil)
			require.NoError(s.T, err)
			require.Equal(s.T, layout.Ready, state)
		},
		"futura-put": func(s *modeltest.Stage, strike func()) {
			strike()
			existed, err := results.Of(s.C).Put(s.Ctx, results.Value{Key: "key", Bytes: []byte("value")})
			require.NoError(s.T, err)
			require.False(s.T, existed)
			requirePut(s, "key", []byte("value"))
		},
		"futura-put of chunks": func(s *modeltest.Stage, strike func()) {
			value := bytes.Repeat([]byte("value "), 50_000)
			strike()
			_, err := results.Of(s.C).Put(s.Ctx, results.Value{Key: "key", Bytes: value})
			require.NoError(s.T, err)
			requirePut(s, "key", value)
		},
		"futura-put of an object": func(s *modeltest.Stage, strike func()) {
			v := results.Value{Key: "key", Object: "o", Size: 3, Holder: s.Worker.ID(), Before: s.Clock.Now().Add(time.Minute)}
			strike()
			_, err := results.Of(s.C).Put(s.Ctx, v)
			require.NoError(s.T, err)
			copies, err := results.Of(s.C).Copies(s.Ctx, s.C.IDOf("key"))
			require.NoError(s.T, err)
			require.Len(s.T, copies, 1)
			require.Equal(s.T, int64(1), s.Counted(layout.Realized))
		},
		"futura-pin": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			strike()
			require.NoError(s.T, results.Of(s.C).Pin(s.Ctx, id, "holder", "session"))
			s.Faults.Flush()
			pins, err := results.Of(s.C).Pins(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, []string{"holder"}, pins)
		},
		"futura-pin that ends": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			require.NoError(s.T, results.Of(s.C).Pin(s.Ctx, id, "holder", ""))
			require.NoError(s.T, results.Of(s.C).Pin(s.Ctx, id, "other", ""))
			strike()
			require.NoError(s.T, results.Of(s.C).Unpin(s.Ctx, id, "holder"))
			s.Faults.Flush()
			pins, err := results.Of(s.C).Pins(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, []string{"other"}, pins)
		},
		"futura-replace": func(s *modeltest.Stage, strike func()) {
			near := s.Object()
			s.EndAll(modeltest.KeepObject)
			id := s.Submit(func(sub *fdbmodel.Submission) {
				sub.Spec.Near, sub.Spec.MustBeNear, sub.Inputs = near, true, []layout.ID{near}
				sub.Spec.Requirements.GPU = 1000
			})
			info := s.Info()
			info.Address, info.Capacity.GPU = "", 1000
			able, err := s.C.Register(s.Ctx, info)
			require.NoError(s.T, err)
			require.NoError(s.T, results.Of(s.C).AddCopy(s.Ctx, able.ID(), near, s.Token(near), false))
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.True(s.T, row.Attempts.Unplaceable)
			strike()
			// A commit that was made late leaves nothing to the call that has tried it.
			_, _, err = results.Of(s.C).ReplaceUnplaceable(s.Ctx, new(results.UnplaceableWalk))
			require.NoError(s.T, err)
			s.Faults.Flush()
			_, _, err = s.C.ResolveEdges(s.Ctx)
			require.NoError(s.T, err)
			row, err = s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, able.ID(), row.Attempts.Assigned)
			require.Equal(s.T, int64(1), s.Counted(layout.Ready))
		},
	})
}

// requirePut requires that a value was put with a key, once.
func requirePut(s *modeltest.Stage, key string, value []byte) {
	s.Faults.Flush()
	row, err := s.C.Get(s.Ctx, s.C.IDOf(key))
	require.NoError(s.T, err)
	require.Equal(s.T, int64(len(value)), row.Result.Size)
	require.Equal(s.T, int64(1), s.Counted(layout.Realized))
	existed, err := results.Of(s.C).Put(s.Ctx, results.Value{Key: key, Bytes: value})
	require.NoError(s.T, err)
	require.True(s.T, existed)
}
