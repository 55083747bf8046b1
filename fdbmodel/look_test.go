package fdbmodel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
)

// TestCallerThatIsGoneLeavesMarks has a caller resolve the marks of all, and end
// before it does.
func TestCallerThatIsGoneLeavesMarks(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	users := e.submit(2, e.inputs[:2]...)
	e.claim(0, 1)
	e.db.Call["futura-finish"] = func() { e.end(1) }
	e.end(0)
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	e.c.ResolveMarked(ctx)
	e.c.ResolveMarked(e.ctx)
	row, err := e.c.Get(e.ctx, users[0])
	require.NoError(t, err)
	require.Equal(t, layout.Ready, row.State())
}

// remade is a user of two objects, whose inputs end, are lost, and end again, in
// processes with stores of their own, so that their commits are hooked apart.
type remade struct {
	*enders
	y, z, user layout.ID
	processes  [4]*fdbmodel.Cluster
	hooks      [4]*modeltest.BeforeCommits
}

func newRemade(t *testing.T) *remade {
	r := &remade{enders: newEnders(t)}
	_, err := r.c.CancelMany(r.ctx, r.inputs, "out of the way")
	require.NoError(t, err)
	for i := range r.processes {
		r.hooks[i] = &modeltest.BeforeCommits{Database: r.db.Database, Call: map[string]func(){}}
		r.processes[i], err = fdbmodel.Open(r.ctx, r.hooks[i], "enders", fdbmodel.Options{})
		require.NoError(t, err)
	}
	r.y, r.z = r.object(), r.object()
	r.user = r.object(r.y, r.z)
	return r
}

func (r *remade) object(inputs ...layout.ID) layout.ID {
	spec := layout.Spec{Function: "go:f", AsObject: true, AllowReconstruction: true}
	answers, err := r.c.Submit(r.ctx, []fdbmodel.Submission{{Spec: spec, Inputs: inputs}})
	require.NoError(r, err)
	return answers[0].ID
}

func (r *remade) worker(process int) *fdbmodel.Registration {
	w, err := r.processes[process].Register(r.ctx, layout.WorkerInfo{
		Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 4},
	})
	require.NoError(r, err)
	return w
}

func (r *remade) take(w *fdbmodel.Registration, n int) map[layout.ID]*fdbmodel.ClaimedFuture {
	taken := map[layout.ID]*fdbmodel.ClaimedFuture{}
	for len(taken) < n {
		request := fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 4}, Max: n - len(taken)}
		answer, err := w.Claim(r.ctx, request)
		require.NoError(r, err)
		require.NotEmpty(r, answer.Futures)
		for i := range answer.Futures {
			taken[answer.Futures[i].ID] = &answer.Futures[i]
		}
	}
	return taken
}

// endOnly ends a future in a process that then dies: nothing is resolved.
func (r *remade) endOnly(w *fdbmodel.Registration, f *fdbmodel.ClaimedFuture) {
	outcomes, err := w.End(r.ctx, []fdbmodel.Completion{modeltest.KeepObject(f)})
	require.NoError(r, err)
	require.Equal(r, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
}

// lose has a worker die, and its two objects reported lost.
func (r *remade) lose(w *fdbmodel.Registration) {
	_, err := r.c.ForceReap(r.ctx, w.ID())
	require.NoError(r, err)
	for _, id := range []layout.ID{r.y, r.z} {
		row, err := r.c.Get(r.ctx, id)
		require.NoError(r, err)
		state, err := results.Of(r.c).ReportLost(r.ctx, id, row.Result.Token, nil)
		require.NoError(r, err)
		require.Equal(r, layout.Ready, state)
	}
}

// TestTwoLooksAtOnce has two processes look at a future at once, for different inputs:
// one of them unblocks it.
func TestTwoLooksAtOnce(t *testing.T) {
	t.Parallel()
	r := newRemade(t)
	first := r.worker(0)
	held := r.take(first, 2)
	r.endOnly(first, held[r.y])
	r.endOnly(first, held[r.z])
	r.hooks[3].Call["futura-resolve"] = func() { require.NoError(t, fdbmodel.CheckAgain(r.ctx, r.c, r.user, r.y)) }
	require.NoError(t, fdbmodel.CheckAgain(r.ctx, r.processes[3], r.user, r.z))
	require.Len(t, r.take(r.worker(1), 1), 1)
	modeltest.RequireSound(t, r.c)
}

// TestOldLookLeavesANewMark has a janitor look for the mark that the first end of an
// input left, while its second end leaves the same one: the later mark stays.
func TestOldLookLeavesANewMark(t *testing.T) {
	t.Parallel()
	r := newRemade(t)
	first, second := r.worker(0), r.worker(1)
	held := r.take(first, 2)
	r.endOnly(first, held[r.y])
	r.endOnly(first, held[r.z])
	require.NoError(t, fdbmodel.CheckAgain(r.ctx, r.c, r.user, r.z))
	user := r.take(second, 1)[r.user]
	require.NotNil(t, user)
	r.lose(first)
	_, err := second.Finish(r.ctx, []fdbmodel.Completion{{Future: user, Block: true}})
	require.NoError(t, err)

	janitor := r.processes[3]
	r.hooks[3].Call["futura-resolve"] = func() { // both inputs end, and neither end sees the other
		third := r.worker(2)
		ofY, ofZ, byY, byZ, hooks := r.take(second, 1), r.take(third, 1), second, third, r.hooks[1]
		if ofY[r.y] == nil {
			ofY, ofZ, byY, byZ, hooks = ofZ, ofY, third, second, r.hooks[2]
		}
		hooks.Call["futura-finish"] = func() {
			_, err := byZ.Finish(r.ctx, []fdbmodel.Completion{modeltest.KeepObject(ofZ[r.z])})
			require.NoError(t, err)
		}
		r.endOnly(byY, ofY[r.y])
	}
	for more := true; more; {
		_, more, err = janitor.ResolveEdges(r.ctx)
		require.NoError(t, err)
	}
	row, err := r.c.Get(r.ctx, r.user)
	require.NoError(t, err)
	require.Equal(t, layout.Ready, row.State())
}
