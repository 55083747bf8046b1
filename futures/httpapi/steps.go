package httpapi

import (
	"context"
	"net/http"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

type stepsOutput struct {
	Body struct {
		Steps []futures.StepView `json:"steps" doc:"In the order in which they were recorded"`
	}
}

func (s *server) registerSteps() {
	path := futuresPath + "/{id}"
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, path+"/steps", "list-steps",
		"List the steps of a future", "What its function has recorded: no later attempt runs it again. Without the values."),
		s.steps)
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, path+":start-over", "start-over",
		"Run a failed future again without its steps", "As retry, which keeps them: all of it runs again."), s.startOver)
}

func (s *server) steps(ctx context.Context, in *idInput) (*stepsOutput, error) {
	id, err := layout.ParseID(in.ID)
	if err != nil {
		return nil, err
	}
	out := &stepsOutput{}
	out.Body.Steps, err = s.client.Steps(ctx, id)
	return out, err
}

func (s *server) startOver(ctx context.Context, in *idInput) (*answer, error) {
	id, err := layout.ParseID(in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.client.StartOver(ctx, id); err != nil {
		return nil, err
	}
	return s.answer(ctx, id, 0)
}
