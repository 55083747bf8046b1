package httpapi

import (
	"context"
	"net/http"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// Objects are the results that workers hold as objects.
type Objects struct {
	Copies   int      `json:"copies"`
	Bytes    int64    `json:"bytes" doc:"Of all copies"`
	Complete bool     `json:"complete" doc:"There are no others"`
	Largest  []Object `json:"largest" doc:"The largest first, at most 100"`
}

// Object is a result that workers hold.
type Object struct {
	Future  futures.ID        `json:"future" format:"uuid"`
	Size    int64             `json:"size" doc:"Of one copy"`
	Workers []layout.WorkerID `json:"workers"`
}

// newObjects returns the objects of a cluster, for all who ask.
func newObjects(client *futures.Client) *shared[*Objects] {
	return &shared[*Objects]{from: func(ctx context.Context) (*Objects, error) {
		found, err := inspect.Objects(ctx, client.Cluster())
		return &Objects{Copies: found.Copies, Bytes: found.Bytes, Complete: found.Complete,
			Largest: viewsOf(found.Largest, func(o *inspect.Object) Object { return Object{o.ID, o.Size, o.Workers} })}, err
	}}
}

func (s *server) registerCopies() {
	objects := newObjects(s.client)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, "/api/v1/objects", "list-objects",
		"List the results that workers hold as objects", "The largest of up to 20,000 copies."),
		func(ctx context.Context, _ *struct{}) (*body[*Objects], error) { return answerWith(objects.read(ctx)) })
	path := futuresPath + "/{id}"
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, path+":clone", "clone", "Copy a result to a worker",
		"Another worker takes a copy of a result that is an object. Answers once it counts."), ofFuture(s.clone))
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, path+":transfer", "transfer",
		"Move a result to a worker", "As clone, after which no other worker has it."), ofFuture(s.transfer))
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPut, path+"/pins/{holder}", "pin", "Pin a future",
		"Keeps it from being removed, until the same holder unpins it."), ofFuture(s.pin))
	stack.Register(s.Stack, stack.Submit, operation(http.MethodDelete, path+"/pins/{holder}", "unpin", "Unpin a future",
		"Ends the pin of a holder, if there is one."), ofFuture(s.unpin))
}

type copyInput struct {
	OneFuture
	Body *struct {
		_      struct{} `additionalProperties:"false"`
		Worker string   `json:"worker,omitempty" maxLength:"64" doc:"Defaults to the one with most room"`
	} `required:"false"`
}

// to says which worker is to have it.
func (in *copyInput) to() futures.CopyOptions {
	return futures.CopyOptions{To: futures.WorkerID(given(in.Body).Worker)}
}

type copyOutputBody struct {
	Worker layout.WorkerID `json:"worker" doc:"The worker that has it now"`
}

func (s *server) clone(ctx context.Context, id futures.ID, in *copyInput) (*body[copyOutputBody], error) {
	worker, err := s.client.Clone(ctx, id, in.to())
	return answerWith(copyOutputBody{worker}, err)
}

func (s *server) transfer(ctx context.Context, id futures.ID, in *copyInput) (*body[copyOutputBody], error) {
	worker, err := s.client.Transfer(ctx, id, in.to())
	return answerWith(copyOutputBody{worker}, err)
}

type pinInput struct {
	OneFuture
	Holder string `path:"holder" maxLength:"64"`
}

func (s *server) pin(ctx context.Context, id futures.ID, in *pinInput) (*struct{}, error) {
	return nil, s.client.Pin(ctx, id, in.Holder)
}

func (s *server) unpin(ctx context.Context, id futures.ID, in *pinInput) (*struct{}, error) {
	return nil, s.client.Unpin(ctx, id, in.Holder)
}
