package httpapi

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/edges"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// shownEdges is how many futures a view names at most of those that its future is
// connected to, for each kind of connection.
const shownEdges = 64

// Edges are futures that one is connected to. Lists leave them out.
type Edges struct {
	Inputs         []futures.ID      `json:"inputs,omitempty" doc:"The first 64 futures whose results it takes"`
	WaitsFor       []futures.ID      `json:"waits_for,omitempty" doc:"Up to 64 of the inputs that it waits for"`
	MoreWaitsFor   bool              `json:"more_waits_for,omitempty" doc:"It waits for more"`
	Dependants     []futures.ID      `json:"dependants,omitempty" doc:"Up to 64 futures that use it and are not over"`
	MoreDependants bool              `json:"more_dependants,omitempty" doc:"There are more of them"`
	HeldBy         []layout.WorkerID `json:"held_by,omitempty" doc:"The workers with its result as an object"`
}

// EdgesOf returns what a future is connected to, and who has its result as an object. It
// reads nothing for one that is connected to no other and has no such result, and leaves out copies that can't be read.
// It returns the store's errors, and ErrNotFound if the future is gone.
func EdgesOf(ctx context.Context, c *fdbmodel.Cluster, row *layout.Row) (e Edges, err error) {
	if row.Spec.HasInputs() {
		e.Inputs, err = edges.Of(c).FirstInputs(ctx, row.ID, row.Spec, shownEdges)
	}
	if err == nil && row.State() == layout.Blocked {
		e.WaitsFor, e.MoreWaitsFor, err = edges.Of(c).WaitsFor(ctx, row.ID, shownEdges)
	}
	if err == nil && row.Dependants {
		e.Dependants, e.MoreDependants, err = edges.Of(c).Dependants(ctx, row.ID, layout.ID{}, shownEdges)
	}
	if err == nil && row.Object() != "" {
		var copies []results.Copy
		if copies, err = results.Of(c).Copies(ctx, row.ID); layout.IsUnreadable(err) {
			err = nil // a check names it
		}
		for i := range copies {
			if copies[i].Alive {
				e.HeldBy = append(e.HeldBy, copies[i].Worker)
			}
		}
	}
	return e, err
}

// Graph is a future with those that it depends on, and with those that depend on
// it if they were asked for.
type Graph struct {
	Nodes     []GraphNode `json:"nodes" doc:"The future itself, then those that are fewer edges away first"`
	Truncated bool        `json:"truncated" doc:"Futures were left out because of depth, limit or fan"`
}

// GraphNode is a future in a graph. Without a state it no longer exists, or can't be read.
type GraphNode struct {
	ID             futures.ID         `json:"id" format:"uuid"`
	Level          int                `json:"level" doc:"The distance: negative for inputs, positive for dependants"`
	State          State              `json:"state,omitempty" doc:"Left out if it no longer exists, or can't be read"`
	Unreadable     bool               `json:"unreadable,omitempty" doc:"Its records can't be read"`
	Function       string             `json:"function,omitempty"`
	Queue          string             `json:"queue,omitempty"`
	Label          string             `json:"label,omitempty"`
	Worker         layout.WorkerID    `json:"worker,omitempty" doc:"The worker that holds it, or ran it last"`
	Failure        layout.FailureKind `json:"failure,omitempty" doc:"The kind of its last failed attempt"`
	ArgsBytes      int64              `json:"args_bytes"`
	ResultBytes    int64              `json:"result_bytes"`
	RunTimeMS      float64            `json:"run_time_ms,omitempty"`
	SubmittedAt    *time.Time         `json:"submitted_at,omitempty"`
	DueAt          *time.Time         `json:"due_at,omitempty"`
	EndedAt        *time.Time         `json:"ended_at,omitempty"`
	InputCount     int                `json:"input_count" doc:"How many inputs it has, shown or not"`
	Inputs         []futures.ID       `json:"inputs" doc:"Its inputs that are nodes of this graph"`
	WaitsFor       []futures.ID       `json:"waits_for,omitempty" doc:"Those of them that it waits for"`
	MoreDependants bool               `json:"more_dependants,omitempty" doc:"Dependants of it were left out"`
	Waited         bool               `json:"waited_for,omitempty" doc:"This is where the graph waits"`
}

// GraphOf returns the view of a graph.
func GraphOf(g *inspect.Graph) Graph {
	view := Graph{Nodes: make([]GraphNode, len(g.Nodes)), Truncated: g.Truncated}
	for i, n := range g.Nodes {
		one := GraphNode{
			ID: n.ID, Level: n.Level, Unreadable: n.Unreadable, Function: n.Function, Queue: n.Queue, Label: n.Label,
			Worker: n.Worker, Failure: n.Failure, ArgsBytes: n.ArgsSize, ResultBytes: n.ResultSize,
			RunTimeMS: float64(n.RunTime.Microseconds()) / 1000, SubmittedAt: timeIfSet(n.Submitted),
			DueAt: timeIfSet(n.Due), EndedAt: timeIfSet(n.Ended), InputCount: n.InputCount,
			Inputs: append([]futures.ID{}, n.Inputs...), WaitsFor: n.WaitsFor, MoreDependants: n.MoreDependants,
			Waited: n.Waited(),
		}
		if n.State != 0 {
			one.State = State(n.State.String())
		}
		view.Nodes[i] = one
	}
	return view
}

type graphInput struct {
	OneFuture
	Dependants bool `query:"dependants" doc:"Also those that use its result and are not over"`
	Depth      int  `query:"depth" minimum:"1" maximum:"1000" default:"20" doc:"Up to how many edges away"`
	Limit      int  `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many futures at most"`
	Fan        int  `query:"fan" minimum:"1" maximum:"1000" default:"25" doc:"How many inputs of one future at most"`
}

// graphBytes is what a graph may hold in memory while it is read and sent.
const graphBytes = 8 << 20

func (s *server) graph(ctx context.Context, id futures.ID, in *graphInput) (*body[Graph], error) {
	if err := stack.Reserve(ctx, graphBytes); err != nil {
		return nil, err
	}
	g, err := inspect.ReadGraph(ctx, s.client.Cluster(), id, inspect.GraphOptions{
		Depth: in.Depth, Limit: in.Limit, Fan: in.Fan, Dependants: in.Dependants,
	})
	if err != nil {
		return nil, err
	}
	return &body[Graph]{GraphOf(g)}, nil
}
