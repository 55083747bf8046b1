package httpapi

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// shownEdges is how many futures a view names at most of those that its future is
// connected to, for each kind of connection.
const shownEdges = 64

// Edges are futures that one is connected to. Lists leave them out.
type Edges struct {
	Inputs         []futures.ID `json:"inputs,omitempty" doc:"The first 64 futures whose results it takes"`
	WaitsFor       []futures.ID `json:"waits_for,omitempty" doc:"Up to 64 of the inputs that it waits for"`
	MoreWaitsFor   bool         `json:"more_waits_for,omitempty" doc:"It waits for more"`
	Dependants     []futures.ID `json:"dependants,omitempty" doc:"Up to 64 futures that use it and are not over"`
	MoreDependants bool         `json:"more_dependants,omitempty" doc:"There are more of them"`
}

// EdgesOf returns what a future is connected to. It reads nothing for one that is
// connected to no other. It returns the store's errors, and ErrNotFound if the
// future is gone.
func EdgesOf(ctx context.Context, c *fdbmodel.Cluster, row *layout.Row) (e Edges, err error) {
	if row.Spec.HasInputs() {
		e.Inputs, err = c.FirstInputs(ctx, row.ID, row.Spec, shownEdges)
	}
	if err == nil && row.State() == layout.Blocked {
		e.WaitsFor, e.MoreWaitsFor, err = c.WaitsFor(ctx, row.ID, shownEdges)
	}
	if err == nil && row.Dependants {
		e.Dependants, e.MoreDependants, err = c.Dependants(ctx, row.ID, layout.ID{}, shownEdges)
	}
	return e, err
}
