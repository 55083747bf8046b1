package httpapi

import (
	"context"
	"net/http"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

type stepsOutputBody struct {
	Steps []futures.StepView `json:"steps" doc:"In the order in which they were recorded"`
}

func (s *server) registerSteps() {
	path := futuresPath + "/{id}"
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, path+"/steps", "list-steps",
		"List the steps of a future", "What its function has recorded: no later attempt runs it again. Without the values."),
		ofFuture(s.steps))
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, path+":start-over", "start-over",
		"Run a failed future again without its steps", "As retry, which keeps them: all of it runs again."),
		ofFuture(s.startOver))
}

func (s *server) steps(ctx context.Context, id futures.ID, _ *OneFuture) (*body[stepsOutputBody], error) {
	all, err := s.client.Steps(ctx, id)
	return answerWith(stepsOutputBody{all}, err)
}

func (s *server) startOver(ctx context.Context, id futures.ID, _ *OneFuture) (*answer, error) {
	if err := s.client.StartOver(ctx, id); err != nil {
		return nil, err
	}
	return s.answer(ctx, id, 0)
}
