package inspect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// after submits a future that takes the results of others.
func after(s *modeltest.Stage, inputs ...layout.ID) layout.ID {
	return s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = inputs })
}

func readGraph(s *modeltest.Stage, root layout.ID, o inspect.GraphOptions,
) (*inspect.Graph, map[layout.ID]*inspect.Node) {
	s.T.Helper()
	g, err := inspect.ReadGraph(s.Ctx, s.C, root, o)
	require.NoError(s.T, err)
	nodes := map[layout.ID]*inspect.Node{}
	for _, n := range g.Nodes {
		require.Nil(s.T, nodes[n.ID], "each future is one node")
		nodes[n.ID] = n
	}
	for _, n := range g.Nodes {
		for _, input := range slices.Concat(n.Inputs, n.WaitsFor) {
			require.NotNil(s.T, nodes[input], "edges end at nodes")
		}
		require.GreaterOrEqual(s.T, n.LeftOut(), 0)
	}
	return g, nodes
}

func TestGraphOfADiamond(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	top := s.Submit()
	left, right := after(s, top), after(s, top)
	bottom := after(s, right, left, top)
	user := after(s, bottom, left)
	g, nodes := readGraph(s, bottom, inspect.GraphOptions{})
	require.False(t, g.Truncated)
	require.Equal(t, []layout.ID{bottom, right, left, top}, []layout.ID{
		g.Nodes[0].ID, g.Nodes[1].ID, g.Nodes[2].ID, g.Nodes[3].ID})
	require.Equal(t, []layout.ID{right, left, top}, nodes[bottom].Inputs)
	require.ElementsMatch(t, nodes[bottom].Inputs, nodes[bottom].WaitsFor)
	require.Equal(t, -1, nodes[top].Level, "the shortest way counts")
	require.True(t, nodes[top].Waited())
	require.False(t, nodes[left].Waited(), "it waits itself")

	finish(s)
	g, nodes = readGraph(s, bottom, inspect.GraphOptions{Dependants: true})
	require.Equal(t, layout.Realized, nodes[top].State)
	require.EqualValues(t, 4, nodes[top].ResultSize)
	require.Equal(t, s.Worker.ID(), nodes[top].Worker)
	require.Equal(t, layout.Ready, nodes[left].State)
	require.Equal(t, []layout.ID{right, left}, sorted(nodes[bottom].WaitsFor, nodes[bottom].Inputs))
	require.Equal(t, 1, nodes[user].Level)
	require.Equal(t, []layout.ID{bottom, left}, nodes[user].Inputs)
	require.False(t, g.Truncated)
}

// finish ends what is ready with a result.
func finish(s *modeltest.Stage) {
	for _, f := range s.Claim(s.Worker) {
		s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{Value: []byte("four"), Size: 4}})
	}
}

func TestGraphOfWhatWaitsAndWhatIsGone(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	var inputs []layout.ID
	for range 8 {
		inputs = append(inputs, s.Submit())
	}
	late := s.Submit(func(sub *fdbmodel.Submission) { sub.NotBefore = s.C.Now().Add(time.Hour) })
	sum := after(s, append(inputs, late)...)
	finish(s)
	g, nodes := readGraph(s, sum, inspect.GraphOptions{Fan: 3})
	require.Equal(t, late, g.Nodes[1].ID, "what it waits for comes first")
	require.True(t, nodes[late].Waited())
	require.NotZero(t, nodes[late].Due)
	require.Equal(t, []layout.ID{late}, nodes[sum].WaitsFor)
	require.Equal(t, 6, nodes[sum].LeftOut())

	_, _, err := s.C.Cancel(s.Ctx, late, "no")
	require.NoError(t, err)
	require.NoError(t, s.C.Discard(s.Ctx, inputs[4]))
	_, nodes = readGraph(s, sum, inspect.GraphOptions{})
	require.Zero(t, nodes[inputs[4]].State)
	require.Equal(t, layout.Failed, nodes[sum].State)
	require.Equal(t, layout.KindUpstream, nodes[sum].Failure)
	require.Empty(t, nodes[sum].WaitsFor)
}

// sorted returns ids in the order of others.
func sorted(ids, as []layout.ID) []layout.ID {
	return slices.SortedFunc(slices.Values(ids), func(x, y layout.ID) int {
		return slices.Index(as, x) - slices.Index(as, y)
	})
}

func TestGraphsAreBounded(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	chain := []layout.ID{s.Submit()}
	for range 40 {
		chain = append(chain, after(s, chain[len(chain)-1]))
	}
	g, nodes := readGraph(s, chain[40], inspect.GraphOptions{Depth: 7})
	require.Len(t, g.Nodes, 8)
	require.True(t, g.Truncated)
	require.Equal(t, 1, nodes[chain[33]].LeftOut())
	require.Zero(t, nodes[chain[34]].LeftOut())
	g, _ = readGraph(s, chain[40], inspect.GraphOptions{Depth: 40})
	require.Len(t, g.Nodes, 41)
	require.False(t, g.Truncated)
	g, nodes = readGraph(s, chain[0], inspect.GraphOptions{Dependants: true, Depth: 5})
	require.Len(t, g.Nodes, 6)
	require.True(t, nodes[chain[5]].MoreDependants)
	require.True(t, g.Truncated)

	var inputs []layout.ID
	for range 300 {
		inputs = append(inputs, s.Submit())
	}
	sum := after(s, inputs...)
	for more := true; more; {
		var err error
		_, more, err = s.C.ResolveEdges(s.Ctx)
		require.NoError(t, err)
	}
	g, nodes = readGraph(s, sum, inspect.GraphOptions{Fan: 10})
	require.Len(t, g.Nodes, 11)
	require.Equal(t, 290, nodes[sum].LeftOut())
	require.Len(t, nodes[sum].WaitsFor, 10)
	g, nodes = readGraph(s, sum, inspect.GraphOptions{Fan: 1000, Limit: 200})
	require.Len(t, g.Nodes, 200)
	require.Equal(t, 101, nodes[sum].LeftOut())
	g, _ = readGraph(s, sum, inspect.GraphOptions{Fan: 1000, Limit: 1000})
	require.Len(t, g.Nodes, 301)
	require.False(t, g.Truncated)

	for _, o := range []inspect.GraphOptions{{Depth: -1}, {Limit: inspect.MaxGraph + 1}, {Fan: -7}} {
		_, err := inspect.ReadGraph(s.Ctx, s.C, sum, o)
		require.ErrorIs(t, err, inspect.ErrBadGraph)
	}
	_, err := inspect.ReadGraph(s.Ctx, s.C, layout.ID{1}, inspect.GraphOptions{})
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}
