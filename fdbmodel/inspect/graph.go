package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/edges"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Limits of ReadGraph.
const (
	// MaxGraph is the maximum of each of the GraphOptions.
	MaxGraph = 1000
	// maxGraphEdges is the maximum number of edges in a graph.
	maxGraphEdges = 10_000
	// graphPage is how many futures are read at once.
	graphPage = 100
)

// GraphOptions bound a graph. Each number is 1 to MaxGraph; 0 stands for its
// default.
type GraphOptions struct {
	// Depth is how many edges a node may be away from the root. Defaults to 20.
	Depth int
	// Limit is the maximum number of nodes. Defaults to 100.
	Limit int
	// Fan is how many inputs of one future are followed, and how many of its
	// dependants. Defaults to 25.
	Fan int
	// Dependants adds the futures that use the root's result and are not over, and
	// those that use theirs. Defaults to false.
	Dependants bool
}

func (o *GraphOptions) check() error {
	for _, n := range []struct {
		name     string
		value    *int
		fallback int
	}{{"depth", &o.Depth, 20}, {"limit", &o.Limit, 100}, {"fan", &o.Fan, 25}} {
		if *n.value == 0 {
			*n.value = n.fallback
		}
		if *n.value < 1 || *n.value > MaxGraph {
			return fmt.Errorf("%w: %s %d: use 1 to %d", ErrBadGraph, n.name, *n.value, MaxGraph)
		}
	}
	return nil
}

// ErrBadGraph is returned for GraphOptions outside of their limits.
var ErrBadGraph = errors.New("no such graph")

// Graph is a future with those whose results it takes, directly or through others,
// and with those that use its own if they are asked for.
type Graph struct {
	// Nodes begin with the root. Those that are less edges away come first.
	Nodes []*Node
	// Truncated is set if futures were left out because of a limit.
	Truncated bool
}

// Node is a future in a graph.
type Node struct {
	ID layout.ID
	// Level is the distance from the root: negative for the futures that it depends
	// on, positive for those that depend on it.
	Level int
	// State is 0 if the future no longer exists, or can't be read: then Unreadable is set. The other fields
	// are then zero.
	State                  layout.State
	Unreadable             bool
	Function, Queue, Label string
	// Worker holds it, or ran its last attempt. Failure is the kind of its last
	// failed attempt, and Message its text.
	Worker  layout.WorkerID
	Failure layout.FailureKind
	Message string
	// ArgsSize and ResultSize are in bytes, without those of the inputs.
	ArgsSize, ResultSize int64
	RunTime              time.Duration
	// Submitted, Due and Ended are in milliseconds of Unix time, 0 for never.
	Submitted, Due, Ended int64
	// InputCount is how many inputs it has. Inputs are those that are nodes of the
	// graph, and WaitsFor those of them that it waits for.
	InputCount       int
	Inputs, WaitsFor []layout.ID
	// MoreDependants is set if dependants of it were left out.
	MoreDependants bool
}

// LeftOut returns how many of its inputs were left out because of a limit.
func (n *Node) LeftOut() int {
	if n.Level > 0 {
		return 0
	}
	return n.InputCount - len(n.Inputs)
}

// Waited reports whether the root waits for this future itself and not for one
// of its inputs.
func (n *Node) Waited() bool {
	return n.Level < 0 && n.State != 0 && n.State != layout.Blocked && !n.State.Terminal()
}

// ReadGraph reads a graph breadth-first, in several transactions, so that its parts
// may be from different moments. Of a future with more inputs than are followed, it
// prefers those that the future waits for. It returns ErrNotFound for an unknown
// root, an error for one that can't be read, and ErrBadGraph.
func ReadGraph(ctx context.Context, c *fdbmodel.Cluster, root layout.ID, o GraphOptions) (*Graph, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &graphWalk{cluster: c, options: o, nodes: map[layout.ID]*walked{}}
	row, err := c.Get(ctx, root)
	if err != nil {
		return nil, err
	}
	inputs := []*walked{w.add(root, 0)}
	inputs[0].fill(&row)
	var dependants []*walked
	if o.Dependants {
		dependants = inputs
	}
	for depth := 1; len(inputs)+len(dependants) > 0; depth++ {
		if inputs, err = w.toInputs(ctx, inputs, depth); err != nil {
			return nil, err
		}
		if dependants, err = w.toDependants(ctx, dependants, depth); err != nil {
			return nil, err
		}
		if err := w.read(ctx, slices.Concat(inputs, dependants)); err != nil {
			return nil, err
		}
	}
	return w.graph(), nil
}

// walked is a node that the walk has reached.
type walked struct {
	Node
	row   *layout.Row // nil if the future does not exist, or can't be read
	waits []layout.ID // inputs that it waits for, some of them if they are many
}

// graphWalk is one ReadGraph.
type graphWalk struct {
	cluster *fdbmodel.Cluster
	options GraphOptions
	nodes   map[layout.ID]*walked
	order   []*walked
	edges   int
}

// add adds a node, unless the graph is full.
func (w *graphWalk) add(id layout.ID, level int) *walked {
	if len(w.order) == w.options.Limit || level > w.options.Depth || -level > w.options.Depth {
		return nil
	}
	n := &walked{Node: Node{ID: id, Level: level}}
	w.nodes[id], w.order = n, append(w.order, n)
	return n
}

// link adds an edge, unless it is known or the graph is full.
func (w *graphWalk) link(input layout.ID, to *walked) (linked bool) {
	if slices.Contains(to.Inputs, input) {
		return true
	}
	if w.edges == maxGraphEdges {
		return false
	}
	to.Inputs = append(to.Inputs, input)
	w.edges++
	return true
}

func (w *graphWalk) read(ctx context.Context, nodes []*walked) error {
	for part := range slices.Chunk(nodes, graphPage) {
		ids := make([]layout.ID, len(part))
		for i := range part {
			ids[i] = part[i].ID
		}
		rows, unreadable, err := readAll(ctx, w.cluster, ids)
		if err != nil {
			return err
		}
		for i := range rows {
			w.nodes[rows[i].ID].fill(&rows[i])
		}
		for _, id := range unreadable {
			w.nodes[id].Unreadable = true
		}
	}
	return nil
}

func (n *walked) fill(row *layout.Row) {
	n.row = row
	ending := row.Ending()
	n.State, n.Function, n.Queue, n.Label = ending.State, row.Spec.Function, row.Spec.Queue, row.Spec.Label
	n.ArgsSize, n.Submitted, n.InputCount = row.Spec.ArgsSize, row.Spec.SubmittedAt, row.Spec.CountInputs()
	n.Ended, n.Worker = row.FinishedAt(), ending.Worker()
	if row.Claim != nil {
		n.Worker = row.Claim.Worker
	}
	if n.State == layout.Delayed {
		n.Due = row.Attempts.Due
	}
	if ending.Failure != nil {
		n.Failure, n.Message = ending.Failure.Kind, ending.Failure.Message
	}
	if ending.Result != nil {
		n.ResultSize, n.RunTime = ending.Result.Size, ending.Result.RunTime
	}
}

// toInputs follows edges to inputs. It returns the new nodes.
func (w *graphWalk) toInputs(ctx context.Context, from []*walked, depth int) (next []*walked, err error) {
	for _, n := range from {
		inputs, err := w.inputsOf(ctx, n)
		if err != nil {
			return nil, err
		}
		for _, id := range inputs {
			if w.nodes[id] == nil {
				if added := w.add(id, -depth); added != nil {
					next = append(next, added)
				}
			}
			if w.nodes[id] != nil {
				w.link(id, n)
			}
		}
	}
	return next, nil
}

// inputsOf returns inputs of a node, with those first that it waits for if there
// are more than are followed.
func (w *graphWalk) inputsOf(ctx context.Context, n *walked) (inputs []layout.ID, err error) {
	if n.row == nil || n.InputCount == 0 {
		return nil, nil
	}
	fan := w.options.Fan
	if n.State == layout.Blocked {
		if n.waits, _, err = edges.Of(w.cluster).WaitsFor(ctx, n.ID, fan); err != nil {
			return nil, err
		}
	}
	first, err := edges.Of(w.cluster).FirstInputs(ctx, n.ID, n.row.Spec, fan)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return n.waits, nil
	}
	if err != nil || n.InputCount <= fan {
		return first, err
	}
	inputs = n.waits
	for _, id := range first {
		if len(inputs) < fan && !slices.Contains(n.waits, id) {
			inputs = append(inputs, id)
		}
	}
	return inputs, nil
}

// toDependants follows edges to dependants. It returns the new nodes.
func (w *graphWalk) toDependants(ctx context.Context, from []*walked, depth int) (next []*walked, err error) {
	for _, n := range from {
		if n.row == nil || !n.row.Dependants {
			continue
		}
		ids, more, err := edges.Of(w.cluster).Dependants(ctx, n.ID, layout.ID{}, w.options.Fan)
		if err != nil {
			return nil, err
		}
		n.MoreDependants = more
		for _, id := range ids {
			if w.nodes[id] == nil {
				if added := w.add(id, depth); added != nil {
					next = append(next, added)
				}
			}
			to := w.nodes[id]
			if to == nil || !w.link(n.ID, to) {
				n.MoreDependants = true
			}
		}
	}
	return next, nil
}

// graph returns what the walk has found, with all edges between its nodes that
// are known.
func (w *graphWalk) graph() *Graph {
	g := &Graph{}
	for _, n := range w.order {
		if n.row != nil {
			inputs := layout.UnpackIDs(n.row.Spec.Inputs)
			for _, id := range inputs {
				if w.nodes[id] != nil {
					w.link(id, n)
				}
			}
			slices.SortStableFunc(n.Inputs, func(x, y layout.ID) int {
				return slices.Index(inputs, x) - slices.Index(inputs, y)
			})
		}
		for _, id := range n.waits {
			if slices.Contains(n.Inputs, id) {
				n.WaitsFor = append(n.WaitsFor, id)
			}
		}
		g.Nodes = append(g.Nodes, &n.Node)
		g.Truncated = g.Truncated || n.LeftOut() > 0 || n.MoreDependants
	}
	return g
}
