package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

func (s *server) registerForks() {
	path := futuresPath + "/{id}"
	stack.Register(s.Stack, stack.Submit, makes(operation(http.MethodPost, path+":fork", "fork", "Fork a future",
		"Makes a new future from one that is over, with the steps that were recorded before a point: these do not run "+
			"again. Without a body it goes on from the step that failed.")), ofFuture(s.fork))
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, futuresPath+":fork", "fork-many",
		"Fork all futures that a filter finds", "Answers after at most some seconds, with a cursor if more is left. "+
			"Without a state it takes those that have failed. Items of batches, cancelled futures and forks of the same name "+
			"are left alone. A filter and a name are needed. Under the name each future is forked once: a request that was cut "+
			"off may be repeated."), s.forkMany)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, path+"/forks", "list-forks",
		"List the forks of a future", "In the order of their ids."), ofFuture(s.forks))
}

// NewForks says how futures are forked.
type NewForks struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	From string                     `json:"from,omitempty" maxLength:"210" default:"failed" doc:"A step, or failed, start"`
	Set  map[string]json.RawMessage `json:"set,omitempty" maxProperties:"100" doc:"Values of steps, any JSON"`
	Name string                     `json:"name,omitempty" maxLength:"64" doc:"Each future is forked once under it"`
}

func (n *NewForks) options() (o futures.ForkOptions, err error) {
	if n == nil {
		return o, nil
	}
	o.Name, o.Set = n.Name, make(map[string]any, len(n.Set))
	for step, value := range n.Set {
		o.Set[step] = value
	}
	o.From, err = futures.ParseForkPoint(n.From)
	return o, err
}

type forkInput struct {
	OneFuture
	Body *NewForks `required:"false"`
}

type forkOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     futures.Forked
}

func (s *server) fork(ctx context.Context, id futures.ID, in *forkInput) (*forkOutput, error) {
	options, err := in.Body.options()
	if err != nil {
		return nil, err
	}
	made, err := s.client.Fork(ctx, id, options)
	if err != nil {
		return nil, err
	}
	return &forkOutput{statusOf(made.Existed), futuresPath + "/" + made.ID.String(), made}, nil
}

type forkManyInput struct {
	ListFilter
	Preview bool      `query:"preview" doc:"Make nothing, and say what would be"`
	Limit   int       `query:"limit" minimum:"0" doc:"How many at most, with those that existed; 0 for all"`
	Cursor  string    `query:"cursor" doc:"The cursor of the previous answer" maxLength:"100"`
	Body    *NewForks `required:"false"`
}

// ForkedMany is what became of many futures.
type ForkedMany struct {
	futures.ForkedMany
	Cursor string `json:"cursor,omitempty" doc:"More is left: send the request again with it, and the limit less matched"`
}

func (s *server) forkMany(ctx context.Context, in *forkManyInput) (*body[ForkedMany], error) {
	if in.ListFilter == (ListFilter{}) {
		return nil, errUnfiltered()
	}
	if in.Batch != "" {
		return nil, stack.BadRequest("items of a batch are not forked: see /api/v1/batches/{id}")
	}
	options, err := in.Body.options()
	if err != nil {
		return nil, err
	}
	if in.Preview && options.Name == "" {
		options.Name = "preview"
	}
	query := futures.ForkQuery{Limit: in.Limit, Preview: in.Preview, Until: s.client.Cluster().Now().Add(bulkTime)}
	if query.Filter, err = in.filter(ctx, s.client.Cluster()); err != nil {
		return nil, err
	}
	if query.Cursor, err = cursorOf(in.Cursor, in.sum()); err != nil {
		return nil, err
	}
	if err := stack.Reserve(ctx, listBytes); err != nil {
		return nil, err
	}
	done, err := s.client.ForkMany(ctx, query, options)
	return answerWith(ForkedMany{done, cursorFor(done.Cursor, in.sum())}, err)
}

type forksInput struct {
	OneFuture
	After string `query:"after" doc:"The next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type forksOutputBody struct {
	Forks []futures.Forked `json:"forks"`
	Next  string           `json:"next,omitempty" doc:"Where the next page begins; left out at the end"`
}

func (s *server) forks(ctx context.Context, id futures.ID, in *forksInput) (_ *body[forksOutputBody], err error) {
	var after futures.ID
	if in.After != "" {
		if after, err = layout.ParseID(in.After); err != nil {
			return nil, err
		}
	}
	all, last, err := s.client.Forks(ctx, id, after, in.Limit)
	page := forksOutputBody{Forks: all}
	if !last.IsZero() {
		page.Next = last.String()
	}
	return answerWith(page, err)
}
