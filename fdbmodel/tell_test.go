package fdbmodel_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/storetest"
)

// enders are two workers that end a future each, which others use.
type enders struct {
	*testing.T
	ctx     context.Context
	db      *modeltest.BeforeCommits
	c       *fdbmodel.Cluster
	inputs  []layout.ID
	workers [2]*fdbmodel.Registration
	claimed [2]fdbmodel.ClaimedFuture
}

func newEnders(t *testing.T) *enders {
	db := &modeltest.BeforeCommits{Database: storetest.New(t), Call: map[string]func(){}}
	e := &enders{T: t, ctx: context.Background(), db: db}
	var err error
	e.c, err = fdbmodel.Open(e.ctx, e.db, "enders", fdbmodel.Options{Config: layout.Config{Shards: 4}})
	require.NoError(t, err)
	e.inputs = e.submit(3)
	return e
}

// claim has workers claim an input each, the first or the second.
func (e *enders) claim(workers ...int) {
	for _, i := range workers {
		info := layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 1}}
		var err error
		e.workers[i], err = e.c.Register(e.ctx, info)
		require.NoError(e, err)
		answer, err := e.workers[i].Claim(e.ctx, fdbmodel.ClaimRequest{Free: info.Capacity, Max: 1})
		require.NoError(e, err)
		require.Len(e, answer.Futures, 1)
		require.Equal(e, e.inputs[i], answer.Futures[0].ID)
		e.claimed[i] = answer.Futures[0]
	}
}

func (e *enders) submit(n int, inputs ...layout.ID) []layout.ID {
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}, Inputs: inputs}
	}
	answers, err := e.c.Submit(e.ctx, subs)
	require.NoError(e, err)
	ids := make([]layout.ID, n)
	for i := range answers {
		ids[i] = answers[i].ID
	}
	return ids
}

// over puts so many results, so that a future that takes them has inputs that are over.
func (e *enders) over(n int) (ids []layout.ID) {
	for range n {
		drawn, err := e.c.DrawIDs(1)
		require.NoError(e, err)
		_, err = results.Of(e.c).Put(e.ctx, results.Value{ID: drawn[0], Bytes: []byte("v")})
		require.NoError(e, err)
		ids = append(ids, drawn[0])
	}
	return ids
}

// eachLength calls fn for users with few inputs, and for those that list what they
// wait for, with inputs that such a user takes besides.
func eachLength(t *testing.T, fn func(t *testing.T, e *enders, more []layout.ID)) {
	for name, more := range map[string]int{"few": 0, "listed": layout.MaxUnlistedInputs} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnders(t)
			fn(t, e, e.over(more))
		})
	}
}

// end realizes the future of a worker and resolves nothing after it.
func (e *enders) end(worker int) {
	outcomes, err := e.workers[worker].End(e.ctx, []fdbmodel.Completion{
		{Future: &e.claimed[worker], Result: &layout.Result{Value: []byte("v")}}})
	require.NoError(e, err)
	require.Equal(e, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
}

// fail fails the future of a worker for good, and resolves nothing after it.
func (e *enders) fail(worker int) {
	_, err := e.workers[worker].End(e.ctx, []fdbmodel.Completion{failForGood(&e.claimed[worker])})
	require.NoError(e, err)
}

func (e *enders) requireAll(ids []layout.ID, want layout.State) {
	e.Helper()
	for _, id := range ids {
		row, err := e.c.Get(e.ctx, id)
		require.NoError(e, err)
		require.Equal(e, want, row.State())
	}
}

// requireMarks audits the cluster, and requires that so many marks are left.
func (e *enders) requireMarks(want int) {
	e.Helper()
	report := modeltest.RequireSound(e, e.c)
	marks := 0
	for _, note := range report.Notes {
		if note.Invariant == audit.InvariantEdge {
			marks++
		}
	}
	require.Equal(e, want, marks)
}

// resolveAll is a janitor of another process.
func (e *enders) resolveAll() {
	c, err := fdbmodel.Open(e.ctx, e.db, "enders", fdbmodel.Options{})
	require.NoError(e, err)
	for more := true; more; {
		_, more, err = c.ResolveEdges(e.ctx)
		require.NoError(e, err)
	}
	e.requireMarks(0)
}

func TestFewUsersAreToldByTheEndItself(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	few, many := e.submit(fdbmodel.MaxNotified, e.inputs[0]), e.submit(fdbmodel.MaxNotified+1, e.inputs[1])
	e.claim(0, 1)
	e.end(0)
	e.requireAll(few, layout.Ready)
	e.requireMarks(0)
	e.end(1)
	e.requireAll(many, layout.Blocked)
	e.requireMarks(1)
	e.c.ResolveMarked(e.ctx)
	e.requireAll(many, layout.Ready)
	e.requireMarks(0)
}

// TestInputsThatEndAtOnce lets two transactions end the inputs of a future, neither
// of which sees the other: a janitor looks where both processes died.
func TestInputsThatEndAtOnce(t *testing.T) {
	t.Parallel()
	for name, resolve := range map[string]func(*enders){
		"a janitor":      (*enders).resolveAll,
		"who ended them": func(e *enders) { e.c.ResolveMarked(e.ctx) },
		"both at one time": func(e *enders) {
			e.db.Call["futura-resolve"] = e.resolveAll
			e.c.ResolveMarked(e.ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachLength(t, func(t *testing.T, e *enders, more []layout.ID) {
				users := e.submit(2, append(e.inputs[:2:2], more...)...)
				waits := e.submit(1, append(e.inputs[:3:3], more...)...)
				e.claim(0, 1)
				e.db.Call["futura-finish"] = func() { e.end(1) }
				e.end(0)
				e.requireAll(users, layout.Blocked)
				e.requireMarks(6)
				why, err := inspect.Explain(e.ctx, e.c, users[0])
				require.NoError(t, err)
				require.Contains(t, why.Text, fmt.Sprintf("All of its inputs (%d) are over.", 2+len(more)))
				why, err = inspect.Explain(e.ctx, e.c, waits[0])
				require.NoError(t, err)
				require.Contains(t, why.Text, "that are not over: "+e.inputs[2].String()+" (go:f, ready).")
				resolve(e)
				e.requireAll(users, layout.Ready)
				e.requireAll(waits, layout.Blocked)
				e.requireMarks(0)
			})
		})
	}
}

// TestInputsThatEndOneByOne leaves one mark: the last end sees that it is the last.
func TestInputsThatEndOneByOne(t *testing.T) {
	t.Parallel()
	eachLength(t, func(_ *testing.T, e *enders, more []layout.ID) {
		users := e.submit(1, append(e.inputs[:2:2], more...)...)
		e.claim(0)
		e.end(0)
		e.requireAll(users, layout.Blocked)
		e.requireMarks(1)
		e.resolveAll()
		e.requireAll(users, layout.Blocked)
		e.claim(1)
		e.end(1)
		e.requireMarks(0)
		e.requireAll(users, layout.Ready)
	})
}

// TestInputThatHasFailed realizes an input before anybody tells that the other one has
// failed.
func TestInputThatHasFailed(t *testing.T) {
	t.Parallel()
	eachLength(t, func(_ *testing.T, e *enders, more []layout.ID) {
		users := e.submit(1, append(e.inputs[:2:2], more...)...)
		e.claim(0, 1)
		e.fail(0)
		e.end(1)
		e.requireAll(users, layout.Blocked)
		e.resolveAll()
		e.requireAll(users, layout.Failed)
	})
}

// TestInputThatCannotBeRead ends an input while a newer version alone can read the
// other one: whether both have ended is looked at by who can.
func TestInputThatCannotBeRead(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	users := e.submit(1, e.inputs[:2]...)
	e.claim(0, 1)
	e.end(0)
	e.resolveAll()
	key := e.c.Keys().State(e.inputs[0], layout.StateResult)
	swap := func(value []byte) (old []byte) {
		_, err := kv.Transact(e.ctx, e.db, e.c.RetryPolicy(kv.Options{}), func(tx kv.Attempt) (err error) {
			old, err = tx.Get(key).Wait(e.ctx)
			tx.Set(key, value)
			return err
		})
		require.NoError(t, err)
		return old
	}
	value := swap(newerRecord)
	e.end(1)
	e.c.ResolveMarked(e.ctx)
	e.requireAll(users, layout.Blocked)
	swap(value)
	e.requireMarks(1)
	e.resolveAll()
	e.requireAll(users, layout.Ready)
}

// TestUserThatComesMeanwhile links a user to a future while a transaction ends it.
func TestUserThatComesMeanwhile(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	users := e.submit(1, e.inputs[0])
	e.claim(0, 1)
	e.db.Call["futura-finish"] = func() { users = append(users, e.submit(1, e.inputs[0])...) }
	e.end(0)
	e.requireAll(users, layout.Ready)
	e.requireMarks(0)
}

// TestUserThatEndsMeanwhile cancels and removes a user while a transaction ends its
// input.
func TestUserThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, inputs := range map[string]int{"of one input": 1, "of two": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnders(t)
			users := e.submit(1, e.inputs[:inputs]...)
			e.claim(0, 1)
			e.db.Call["futura-finish"] = func() {
				_, _, err := e.c.Cancel(e.ctx, users[0], "not wanted")
				require.NoError(t, err)
				require.NoError(t, e.c.Discard(e.ctx, users[0]))
			}
			e.end(0)
			e.resolveAll()
		})
	}
}

// TestResolutionsAtOnce lets two resolutions tell many users of two inputs, neither
// of which sees the other.
func TestResolutionsAtOnce(t *testing.T) {
	t.Parallel()
	eachLength(t, func(t *testing.T, e *enders, more []layout.ID) {
		users := e.submit(fdbmodel.MaxNotified+1, append(e.inputs[:2:2], more...)...)
		waits := e.submit(1, append(e.inputs[:3:3], more...)...)
		e.claim(0, 1)
		e.end(0)
		e.end(1)
		e.requireMarks(2)
		e.db.Call["futura-resolve"] = func() { require.NoError(t, fdbmodel.ResolveEdgesOf(e.ctx, e.c, e.inputs[1])) }
		require.NoError(t, fdbmodel.ResolveEdgesOf(e.ctx, e.c, e.inputs[0]))
		e.requireAll(users, layout.Ready)
		e.requireAll(waits, layout.Blocked)
		e.requireMarks(1) // the second try relies on no key, so it leaves a mark
		e.resolveAll()
		e.requireAll(waits, layout.Blocked)
	})
}

// TestEndWhileAnotherIsTold ends an input while a resolution tells of the other one,
// and does not see that.
func TestEndWhileAnotherIsTold(t *testing.T) {
	t.Parallel()
	eachLength(t, func(t *testing.T, e *enders, more []layout.ID) {
		users := e.submit(fdbmodel.MaxNotified+1, append(e.inputs[:2:2], more...)...)
		e.claim(0, 1)
		e.end(0)
		e.db.Call["futura-resolve"] = func() { e.end(1) }
		require.NoError(t, fdbmodel.ResolveEdgesOf(e.ctx, e.c, e.inputs[0]))
		e.resolveAll()
		e.requireAll(users, layout.Ready)
	})
}

// TestAnInputThatEndsWhileOthersAreLinked ends one of many inputs of a future before the
// last of them is linked: it waits for the others.
func TestAnInputThatEndsWhileOthersAreLinked(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	e.claim(0, 1)
	calls := 0
	var end func()
	end = func() {
		if calls++; calls == 2 {
			e.end(0)
			return
		}
		e.db.Call["futura-resolve"] = end
	}
	e.db.Call["futura-resolve"] = end
	inputs := append([]layout.ID{e.inputs[0]}, e.over(1200)...)
	users := e.submit(1, append(inputs, e.inputs[1])...)
	e.resolveAll()
	require.Equal(t, 2, calls, "some are linked and others are not")
	e.requireAll(users, layout.Blocked)
	e.end(1)
	e.resolveAll()
	e.requireAll(users, layout.Ready)
}
