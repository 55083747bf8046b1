package modules_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/modules"
)

func openModules(t *testing.T) (context.Context, *fdbmodel.Cluster) {
	ctx := t.Context()
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	c, err := fdbmodel.Open(ctx, db, "modules", fdbmodel.Options{Config: layout.Config{Shards: 4}})
	require.NoError(t, err)
	return ctx, c
}

func submitOne(ctx context.Context, c *fdbmodel.Cluster, s fdbmodel.Submission) (layout.ID, error) {
	answers, err := c.Submit(ctx, []fdbmodel.Submission{s})
	if err != nil {
		return layout.ID{}, err
	}
	return answers[0].ID, nil
}

func TestRemoveModule(t *testing.T) {
	t.Parallel()
	ctx, c := openModules(t)
	kept, err := modules.Of(c).Put(ctx, []byte("kept"), "kept")
	require.NoError(t, err)
	large := make([]byte, 20*layout.ChunkSize)
	m, err := modules.Of(c).Put(ctx, large, "one")
	require.NoError(t, err)
	require.NoError(t, modules.Of(c).SetAlias(ctx, "two", m.CID))

	// Each place where a future waits counts, with a method as well.
	uses := []fdbmodel.Submission{
		{Spec: layout.Spec{Function: "wasm:two"}},
		{Spec: layout.Spec{Function: "wasm:" + m.CID + "/method"}, NotBefore: time.Now().Add(time.Hour)},
		{Spec: layout.Spec{Function: "wasm:one", Owner: "batch"}},
	}
	for _, s := range uses {
		id, err := submitOne(ctx, c, s)
		require.NoError(t, err)
		_, err = modules.Of(c).Remove(ctx, m.CID, false)
		require.ErrorIs(t, err, fdbmodel.ErrInUse)
		require.ErrorContains(t, err, id.String())
		// A refused removal changes nothing.
		again, err := submitOne(ctx, c, s)
		require.NoError(t, err)
		for _, one := range []layout.ID{id, again} {
			_, _, err = c.Cancel(ctx, one, "")
			require.NoError(t, err)
		}
	}

	removed, err := modules.Of(c).Remove(ctx, m.CID, false)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, removed.Aliases)
	_, err = modules.Of(c).Get(ctx, m.CID)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	for _, function := range []string{"wasm:one", "wasm:two", "wasm:" + m.CID} {
		_, err = submitOne(ctx, c, fdbmodel.Submission{Spec: layout.Spec{Function: function}})
		require.ErrorIs(t, err, fdbmodel.ErrNotFound, function)
	}
	_, err = modules.Of(c).Remove(ctx, m.CID, false)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	stored, err := modules.Of(c).List(ctx)
	require.NoError(t, err)
	require.Equal(t, []layout.Module{kept}, stored)

	// Another process that has resolved the function before is told as well.
	other, err := fdbmodel.Open(ctx, c.Database(), "modules", fdbmodel.Options{})
	require.NoError(t, err)
	_, err = other.ResolveFunction(ctx, "wasm:"+kept.CID)
	require.NoError(t, err)
	_, err = modules.Of(c).Remove(ctx, kept.CID, false)
	require.NoError(t, err)
	_, err = submitOne(ctx, other, fdbmodel.Submission{Spec: layout.Spec{Function: "wasm:" + kept.CID}})
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	report := modeltest.RequireSound(t, c)
	require.Empty(t, report.Notes)
}

func TestRemoveModuleByForce(t *testing.T) {
	t.Parallel()
	ctx, c := openModules(t)
	m, err := modules.Of(c).Put(ctx, []byte("module"), "one")
	require.NoError(t, err)
	id, err := submitOne(ctx, c, fdbmodel.Submission{Spec: layout.Spec{Function: "wasm:one"}, Key: "k"})
	require.NoError(t, err)
	_, err = modules.Of(c).Remove(ctx, m.CID, true)
	require.NoError(t, err)
	row, err := c.Get(ctx, id)
	require.NoError(t, err)
	require.Equal(t, layout.Ready, row.State())
	// Stored again, it runs.
	again, err := modules.Of(c).Put(ctx, []byte("module"), "")
	require.NoError(t, err)
	require.Equal(t, m.CID, again.CID)
	_, err = modules.Of(c).Get(ctx, m.CID)
	require.NoError(t, err)
}

// TestModuleThatIsBeingRemoved stops a removal after its first step.
func TestModuleThatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	ctx, c := openModules(t)
	m, err := modules.Of(c).Put(ctx, []byte("module"), "one")
	require.NoError(t, err)
	_, err = submitOne(ctx, c, fdbmodel.Submission{Spec: layout.Spec{Function: "wasm:one"}})
	require.NoError(t, err)
	require.NoError(t, modules.Of(c).Retire(ctx, m.CID))
	_, err = submitOne(ctx, c, fdbmodel.Submission{Spec: layout.Spec{Function: "wasm:one"}})
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	require.ErrorContains(t, err, "is being removed")
	require.ErrorIs(t, modules.Of(c).SetAlias(ctx, "two", m.CID), fdbmodel.ErrNotFound)
	_, err = modules.Of(c).Get(ctx, m.CID)
	require.NoError(t, err, "what runs goes on")
	_, err = modules.Of(c).Put(ctx, []byte("module"), "")
	require.NoError(t, err)
	_, err = submitOne(ctx, c, fdbmodel.Submission{Spec: layout.Spec{Function: "wasm:one"}})
	require.NoError(t, err)
}

func TestAliases(t *testing.T) {
	t.Parallel()
	ctx, c := openModules(t)
	m, err := modules.Of(c).Put(ctx, []byte("module"), "")
	require.NoError(t, err)
	require.ErrorIs(t, modules.Of(c).SetAlias(ctx, "no/such/name", m.CID), layout.ErrBadName)
	require.ErrorIs(t, modules.Of(c).SetAlias(ctx, "one", "bafk"), fdbmodel.ErrNotFound)
	require.NoError(t, modules.Of(c).SetAlias(ctx, "one", m.CID))
	require.NoError(t, modules.Of(c).SetAlias(ctx, "one", m.CID))
	function, err := c.ResolveFunction(ctx, "wasm:one")
	require.NoError(t, err)
	require.Equal(t, "wasm:"+m.CID, function)
	require.NoError(t, modules.Of(c).RemoveAlias(ctx, "one"))
	require.ErrorIs(t, modules.Of(c).RemoveAlias(ctx, "one"), fdbmodel.ErrNotFound)
	_, err = c.ResolveFunction(ctx, "wasm:one")
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

// TestRemoveModuleWhileOthersSubmit removes a module while others submit and store
// it: no future is left without it.
func TestRemoveModuleWhileOthersSubmit(t *testing.T) {
	t.Parallel()
	ctx, c := openModules(t)
	const rounds, submitters = 30, 3
	removed := 0
	others := make([]*fdbmodel.Cluster, submitters)
	for i := range others {
		other, err := fdbmodel.Open(ctx, c.Database(), "modules", fdbmodel.Options{})
		require.NoError(t, err)
		others[i] = other
	}
	for range rounds {
		m, err := modules.Of(c).Put(ctx, []byte("module"), "one")
		require.NoError(t, err)
		var all sync.WaitGroup
		for _, other := range others {
			all.Go(func() {
				for range 5 {
					if _, err := submitOne(ctx, other, fdbmodel.Submission{Spec: layout.Spec{Function: "wasm:" + m.CID}}); err != nil {
						require.ErrorIs(t, err, fdbmodel.ErrNotFound)
					}
				}
			})
		}
		if _, err = modules.Of(c).Remove(ctx, m.CID, false); err != nil {
			require.ErrorIs(t, err, fdbmodel.ErrInUse)
		}
		all.Wait()
		rows, _, err := inspect.List(ctx, c, inspect.Filter{}, nil, 0)
		require.NoError(t, err)
		ids := make([]layout.ID, len(rows))
		for i := range rows {
			ids[i] = rows[i].ID
		}
		if _, err := modules.Of(c).Get(ctx, m.CID); err != nil {
			require.ErrorIs(t, err, fdbmodel.ErrNotFound)
			require.Empty(t, rows, "futures without their module")
			removed++
		}
		_, err = c.CancelMany(ctx, ids, "")
		require.NoError(t, err)
		_, err = c.DiscardMany(ctx, ids)
		require.NoError(t, err)
	}
	t.Logf("removed in %d of %d rounds", removed, rounds)
}

// TestLateTwinsOfModules has the first attempt of an operation commit, if it can, after its retry
// and after something that follows: that stays.
func TestLateTwinsOfModules(t *testing.T) {
	t.Parallel()
	put := func(s *modeltest.Stage, code, alias string) string {
		m, err := modules.Of(s.C).Put(s.Ctx, []byte(code), alias)
		require.NoError(s.T, err)
		return m.CID
	}
	for name, play := range map[string]func(s *modeltest.Stage, m *modules.Modules, strike func()) (want string){
		"store a module, and give its alias to another": func(s *modeltest.Stage, m *modules.Modules, strike func()) string {
			other := put(s, "other", "")
			strike()
			put(s, "module", "a")
			require.NoError(s.T, m.SetAlias(s.Ctx, "a", other))
			return other
		},
		"set an alias, and set it to another": func(s *modeltest.Stage, m *modules.Modules, strike func()) string {
			one, other := put(s, "one", ""), put(s, "other", "")
			strike()
			require.NoError(s.T, m.SetAlias(s.Ctx, "a", one))
			require.NoError(s.T, m.SetAlias(s.Ctx, "a", other))
			return other
		},
		"remove an alias, and set it again": func(s *modeltest.Stage, m *modules.Modules, strike func()) string {
			module := put(s, "module", "a")
			strike()
			require.NoError(s.T, m.RemoveAlias(s.Ctx, "a"))
			require.NoError(s.T, m.SetAlias(s.Ctx, "a", module))
			return module
		},
		"remove a module, and store it again": func(s *modeltest.Stage, m *modules.Modules, strike func()) string {
			module := put(s, "module", "a")
			strike()
			_, err := m.Remove(s.Ctx, module, false)
			require.NoError(s.T, err)
			return put(s, "module", "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			struck := false
			want := play(s, modules.Of(s.C), func() {
				struck = true
				s.Faults.FailNext(faultkv.UnknownLate, func(tag string) bool { return tag == "futura-code" })
			})
			require.True(t, struck)
			s.Faults.Flush()
			function, err := s.C.ResolveFunction(s.Ctx, "wasm:a")
			require.NoError(t, err)
			require.Equal(t, "wasm:"+want, function)
			_, err = modules.Of(s.C).Get(s.Ctx, want)
			require.NoError(t, err)
			require.Empty(t, s.Problems())
		})
	}
}
