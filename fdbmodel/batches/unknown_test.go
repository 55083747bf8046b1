package batches_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// made makes a batch of an item.
func made(s *modeltest.Stage) (*batches.Batches, layout.ID) {
	records := batches.Of(s.C)
	require.NoError(s.T, records.Create(s.Ctx, &layout.BatchRecord{ID: "b", Queue: layout.DefaultQueue,
		Template: []byte("{}"), Maker: "here"}))
	id := s.Submit(func(one *fdbmodel.Submission) { one.Spec.Owner = "b" })
	require.NoError(s.T, records.Finish(s.Ctx, "b", "here"))
	return records, id
}

func TestUnknownResults(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-cancel of items": func(s *modeltest.Stage, strike func()) {
			records, id := made(s)
			strike()
			require.NoError(s.T, records.Cancel(s.Ctx, "b", []layout.ID{id}, "enough",
				func(b *layout.BatchRecord) bool { return b.Made }))
			s.Faults.Flush()
			require.Equal(s.T, layout.Failed, s.State(id))
			require.EqualValues(s.T, 1, s.Counted(layout.Failed))
		},
		"futura-batch is buried": func(s *modeltest.Stage, strike func()) {
			records, id := made(s)
			may := func(*layout.BatchRecord) error { return nil }
			require.ErrorIs(s.T, records.Bury(s.Ctx, "b", may), fdbmodel.ErrTransition, "an item is not over")
			_, err := s.C.CancelMany(s.Ctx, []layout.ID{id}, "enough")
			require.NoError(s.T, err)
			strike()
			require.NoError(s.T, records.Bury(s.Ctx, "b", may))
			s.Faults.Flush()
			b, err := records.Get(s.Ctx, "b")
			require.NoError(s.T, err)
			require.True(s.T, batches.IsBuried(&b))
			require.ErrorIs(s.T, records.Finish(s.Ctx, "b", "here"), fdbmodel.ErrIDInUse, "nobody makes it again")
		},
		"futura-batch is removed": func(s *modeltest.Stage, strike func()) {
			records := batches.Of(s.C)
			require.NoError(s.T, records.Create(s.Ctx, &layout.BatchRecord{ID: "b", Queue: layout.DefaultQueue,
				Template: []byte("{}"), Maker: "here"}))
			strike()
			require.NoError(s.T, records.Drop(s.Ctx, "b"))
			s.Faults.Flush()
			require.ErrorIs(s.T, records.Drop(s.Ctx, "b"), fdbmodel.ErrNotFound)
		},
	})
}
