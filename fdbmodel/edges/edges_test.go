package edges_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/edges"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// joined is a stage with a future that takes the results of others.
type joined struct {
	*modeltest.Stage
	edges.Edges
	id     layout.ID
	inputs []layout.ID
}

// newJoined has n inputs that wait for a worker.
func newJoined(t *testing.T, n int) *joined {
	s := modeltest.NewStage(t)
	j := &joined{Stage: s, Edges: edges.Of(s.C)}
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i].Spec = layout.Spec{Function: "go:f", MaxRetries: 1}
	}
	got, err := s.C.Submit(s.Ctx, subs)
	require.NoError(t, err)
	for i := range got {
		j.inputs = append(j.inputs, got[i].ID)
	}
	j.id = j.join()
	return j
}

// join submits a future that takes all inputs.
func (j *joined) join() layout.ID {
	return j.Submit(func(s *fdbmodel.Submission) { s.Inputs = j.inputs })
}

func (j *joined) spec() *layout.Spec {
	row, err := j.C.Get(j.Ctx, j.id)
	require.NoError(j.T, err)
	return row.Spec
}

// realize runs some of the inputs, and says which of them ended.
func (j *joined) realize(n int) (ended []layout.ID) {
	answer, err := j.Worker.Claim(j.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: n}, Max: n})
	require.NoError(j.T, err)
	for _, f := range answer.Futures {
		j.Finish(j.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{}})
		ended = append(ended, f.ID)
	}
	return ended
}

// sizes are numbers of inputs that are kept in the record, are listed in keys of their own, and have a list in pieces.
func sizes() []int { return []int{1, 3, 4, layout.MaxInputsInSpec, layout.MaxInputsInSpec + 1, 300} }

func TestInputsComeInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, n := range sizes() {
		j := newJoined(t, n)
		spec := j.spec()
		require.Equal(t, n > layout.MaxInputsInSpec, spec.InputsRef != nil)
		all, err := j.Inputs(j.Ctx, j.id, spec)
		require.NoError(t, err)
		require.Equal(t, j.inputs, all)
		for _, limit := range []int{1, 2, n - 1, n, n + 1} {
			if limit == 0 {
				continue
			}
			some, err := j.FirstInputs(j.Ctx, j.id, spec, limit)
			require.NoError(t, err)
			require.Equal(t, j.inputs[:min(n, limit)], some, "%d of %d", limit, n)
		}
	}
}

// TestInputsThatAreGone were read of a future that was removed since.
func TestInputsThatAreGone(t *testing.T) {
	t.Parallel()
	j := newJoined(t, layout.MaxInputsInSpec+1)
	spec := j.spec()
	_, _, err := j.C.Cancel(j.Ctx, j.id, "")
	require.NoError(t, err)
	require.NoError(t, j.C.Discard(j.Ctx, j.id))
	_, err = j.FirstInputs(j.Ctx, j.id, spec, 2)
	require.ErrorIs(t, err, layout.ErrNotFound)
}

func TestDependantsComeInPages(t *testing.T) {
	t.Parallel()
	j := newJoined(t, 2)
	want := []layout.ID{j.id}
	for range 9 {
		want = append(want, j.join())
	}
	for _, limit := range []int{1, 3, 9, 10, 11} {
		var all []layout.ID
		var after layout.ID
		for more := true; more; {
			var page []layout.ID
			var err error
			page, more, err = j.Dependants(j.Ctx, j.inputs[0], after, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), limit)
			require.Equal(t, len(all)+len(page) < len(want), more)
			all, after = append(all, page...), page[len(page)-1]
		}
		require.ElementsMatch(t, want, all, limit)
	}
	none, more, err := j.Dependants(j.Ctx, j.id, layout.ID{}, 10)
	require.NoError(t, err)
	require.False(t, more)
	require.Empty(t, none)
}

func TestWaitsForIsWhatHasNotEnded(t *testing.T) {
	t.Parallel()
	for _, n := range sizes() {
		j := newJoined(t, n)
		waits := func(limit int) (ids []layout.ID, more bool) {
			ids, more, err := j.WaitsFor(j.Ctx, j.id, limit)
			require.NoError(t, err)
			return ids, more
		}
		left := map[layout.ID]bool{}
		for _, id := range j.inputs {
			left[id] = true
		}
		for {
			all, more := waits(n + 1)
			require.Len(t, all, len(left))
			require.False(t, more)
			for _, id := range all {
				require.True(t, left[id])
			}
			if len(left) == 0 {
				break
			}
			_, more = waits(len(left))
			require.False(t, more)
			if len(left) > 1 {
				some, more := waits(len(left) - 1)
				require.Len(t, some, len(left)-1)
				require.True(t, more)
			}
			for _, id := range j.realize(max(1, n/3)) {
				delete(left, id)
			}
		}
	}
	j := newJoined(t, 1)
	ids, more, err := j.WaitsFor(j.Ctx, j.inputs[0], 10)
	require.NoError(t, err)
	require.Empty(t, ids, "it takes no input")
	require.False(t, more)
}

// TestAListWithUnknownKeys is read without them.
func TestAListWithUnknownKeys(t *testing.T) {
	t.Parallel()
	j := newJoined(t, 1)
	_, err := kv.Transact(j.Ctx, j.Faults, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set(append(j.C.Keys().DependantsOf(j.inputs[0]), 0x15), nil)
		return nil
	})
	require.NoError(t, err)
	all, _, err := j.Dependants(j.Ctx, j.inputs[0], layout.ID{}, 10)
	require.NoError(t, err)
	require.Equal(t, []layout.ID{j.id}, all)
}
