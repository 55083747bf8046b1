package httpapi

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// FutureGroup is the futures that have something in common.
type FutureGroup struct {
	Value   string    `json:"value" doc:"Empty for those that have no such thing"`
	Futures int       `json:"futures"`
	Bytes   int64     `json:"bytes" doc:"Of their arguments and results"`
	Oldest  time.Time `json:"oldest" doc:"When the first of them was submitted"`
	Newest  time.Time `json:"newest"`
}

// Breakdown is how many futures have what in common.
type Breakdown struct {
	By       string        `json:"by"`
	Groups   []FutureGroup `json:"groups" doc:"The largest first, at most 100"`
	Others   int           `json:"others,omitempty" doc:"Futures in groups that are left out"`
	Futures  int           `json:"futures" doc:"How many were counted, the newest first"`
	Complete bool          `json:"complete" doc:"All that match were counted"`
}

// BreakdownOf returns the view of a breakdown.
func BreakdownOf(by string, found *inspect.Groups) *Breakdown {
	return &Breakdown{
		By: by, Others: found.Others, Futures: found.Futures, Complete: found.Complete,
		Groups: viewsOf(found.Groups, func(g *inspect.Group) FutureGroup {
			return FutureGroup{g.Value, g.Futures, g.Bytes, g.Oldest.UTC(), g.Newest.UTC()}
		}),
	}
}

type breakdownInput struct {
	ListFilter
	By    string `query:"by" required:"true" enum:"tag,lane,function,queue,state,batch,worker"`
	Items bool   `query:"items" doc:"With the items of batches, as by batch"`
}

func (s *server) breakdown(ctx context.Context, in *breakdownInput) (*body[*Breakdown], error) {
	filter, err := in.filter(ctx, s.client.Cluster())
	if err != nil {
		return nil, err
	}
	if filter.Newest = true; !in.Items && in.Batch == "" && in.By != "batch" {
		filter.LeftOut = new(int)
	}
	if err := stack.Reserve(ctx, listBytes); err != nil {
		return nil, err
	}
	found, err := inspect.Breakdown(ctx, s.client.Cluster(), filter, in.By)
	return answerWith(BreakdownOf(in.By, &found), err)
}
