package httpapi

import (
	"context"
	"net/http"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

func (s *server) registerActions() {
	path := futuresPath + "/{id}"
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, path+":cancel", "cancel", "Cancel a future",
		"A running future is asked to stop; a result that still arrives counts."), ofFuture(s.cancel))
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, path+":retry", "retry", "Retry a future",
		"Runs a failed future again with all its attempts, and a delayed one at once."), ofFuture(s.retry))
	stack.Register(s.Stack, stack.Admin, operation(http.MethodDelete, path, "delete", "Delete a future",
		"Removes a future that is over, with its result."), ofFuture(s.discard))
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, path+"/explanation", "explain", "Explain a future",
		"Says why it is not running, or where it runs."), ofFuture(s.explain))
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, path+"/graph", "graph", "Get a future's graph",
		"The futures that it depends on, up to some limits, and on request those that depend on it."), ofFuture(s.graph))
}

type cancelInput struct {
	OneFuture
	Body *struct {
		_      struct{} `additionalProperties:"false"`
		Reason string   `json:"reason,omitempty" maxLength:"8192" doc:"The reason, stored with the future"`
	} `required:"false"`
}

type cancelOutputBody struct {
	Outcome string `json:"outcome" enum:"cancelled,requested,over" doc:"requested: its worker was asked to stop"`
	State   string `json:"state"`
}

func (s *server) cancel(ctx context.Context, id futures.ID, in *cancelInput) (*body[cancelOutputBody], error) {
	outcome, state, err := s.client.Cluster().Cancel(ctx, id, given(in.Body).Reason)
	said := cancelOutputBody{Outcome: "over", State: state.String()}
	switch outcome {
	case fdbmodel.Applied:
		said.Outcome = "cancelled"
	case fdbmodel.Requested:
		said.Outcome = "requested"
	}
	return answerWith(said, err)
}

func (s *server) retry(ctx context.Context, id futures.ID, _ *OneFuture) (*answer, error) {
	if err := s.client.Retry(ctx, id); err != nil {
		return nil, err
	}
	return s.answer(ctx, id, 0)
}

func (s *server) discard(ctx context.Context, id futures.ID, _ *OneFuture) (*struct{}, error) {
	return nil, s.client.Discard(ctx, id)
}

// Explanation says why a future is not running, or where it runs.
type Explanation struct {
	ID     futures.ID     `json:"id" format:"uuid"`
	State  string         `json:"state"`
	Reason inspect.Reason `json:"reason"`
	Text   string         `json:"text" doc:"The reason as a sentence, with what can be done about it"`
	Worker *Worker        `json:"worker,omitempty" doc:"The worker that holds or held it"`
	Ahead  int64          `json:"ready_in_queue,omitempty"`
}

// ExplanationOf returns the view of an explanation.
func ExplanationOf(e *inspect.Explanation) Explanation {
	view := Explanation{ID: e.ID, State: e.State.String(), Reason: e.Reason, Text: e.Text, Ahead: e.Ahead}
	if e.Worker != nil {
		w := WorkerOf(e.Worker)
		view.Worker = &w
	}
	return view
}

func (s *server) explain(ctx context.Context, id futures.ID, _ *OneFuture) (*body[Explanation], error) {
	return viewed(ExplanationOf)(s.client.Explain(ctx, id))
}
