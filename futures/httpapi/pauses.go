package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const pausesPath = "/api/v1/pauses"

// Pause is a queue, or a function, that no worker takes futures of.
type Pause struct {
	What   string    `json:"what" enum:"queue,function"`
	Name   string    `json:"name" doc:"With an alias resolved"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// PauseOf returns the view of a pause.
func PauseOf(p *futures.Pause) Pause { return Pause{p.What, p.Name, p.At.UTC(), p.Reason} }

func (s *server) registerPauses() {
	one := pausesPath + "/{what}/{name}"
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, pausesPath, "list-pauses",
		"List the queues and functions that are paused", ""), s.listPauses)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodPut, one, "pause", "Pause a queue or a function",
		"Workers of this process take none of its futures any more, others none after their next heartbeat. What they "+
			"have taken runs. A slash in the name is %2F."), s.pause)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodDelete, one, "resume", "Resume a queue or a function",
		"Of one that is not paused it changes nothing."), s.resume)
}

type pausesOutputBody struct {
	Pauses []Pause `json:"pauses"`
}

func (s *server) listPauses(ctx context.Context, _ *struct{}) (*body[pausesOutputBody], error) {
	list, err := s.client.Pauses(ctx)
	return answerWith(pausesOutputBody{viewsOf(list, PauseOf)}, err)
}

type pauseInput struct {
	What string `path:"what" enum:"queue,function"`
	Name string `path:"name"`
	Body *struct {
		_      struct{} `additionalProperties:"false"`
		Reason string   `json:"reason,omitempty" maxLength:"256"`
	} `required:"false"`
}

func (s *server) pause(ctx context.Context, in *pauseInput) (*body[Pause], error) {
	return viewed(PauseOf)(s.client.Pause(ctx, in.What, in.Name, given(in.Body).Reason))
}

type resumeInput struct {
	What string `path:"what" enum:"queue,function"`
	Name string `path:"name"`
}

func (s *server) resume(ctx context.Context, in *resumeInput) (*struct{}, error) {
	_, err := s.client.Resume(ctx, in.What, in.Name)
	return nil, err
}
