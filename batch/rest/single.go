package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// executeRequest is the request for one run, as in b7s.
type executeRequest struct {
	FunctionID string          `json:"function_id"`
	Method     string          `json:"method,omitempty"`
	Parameters []parameterBody `json:"parameters,omitempty" doc:"The arguments, in this order"`
	Config     configBody      `json:"config,omitempty"`
	Topic      string          `json:"topic,omitempty" doc:"The queue: NAME or blockless/b7s/NAME"`
}

type parameterBody struct {
	Name  string `json:"name,omitempty" doc:"Ignored"`
	Value string `json:"value"`
}

// needsCluster is the problem for a request that needs a cluster where there is
// none.
func (s *server) needsCluster() error {
	if s.options.Client != nil {
		return nil
	}
	return stack.NewProblem(http.StatusNotImplemented, "no_cluster", nil,
		"this head has no cluster of futures: it runs batches only")
}

// maxExecute is the most bytes of a request for a single run.
const maxExecute = 2 * layout.MaxArgs

// execution is a valid request for a single run.
type execution struct {
	template  batch.Template
	task      futures.Task
	threshold float64
	// key is the request's idempotency key, if it has one.
	key string
}

// execute runs a function once, on one worker or on several, and answers when it is
// over.
func (s *server) execute(w http.ResponseWriter, r *http.Request) error {
	if err := s.needsCluster(); err != nil {
		return err
	}
	var body executeRequest
	if err := readJSON(r, maxExecute, &body); err != nil {
		return err
	}
	e, err := s.execution(r.Context(), &body)
	if err != nil {
		return err
	}
	e.key = r.Header.Get("Idempotency-Key")
	if labels := e.template.Config.Labels; len(labels) > 0 && s.options.OnAttributes != nil {
		s.options.OnAttributes(e.task.Function, labels)
	}
	if n := e.template.Config.Nodes; n < 0 || n > 1 {
		return s.executeOnNodes(w, r, e)
	}
	e.task.Key = e.key
	f, err := s.options.Client.Submit(r.Context(), e.task)
	if err != nil {
		return err
	}
	ctx, cancel := s.Waiting(r.Context(), MaxWait)
	defer cancel()
	_, err = f.Await(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, futures.ErrFailed) {
		return err
	}
	return s.executed(w, r, f.ID())
}

// execution checks a request. Its future has one attempt, as in b7s.
func (s *server) execution(ctx context.Context, body *executeRequest) (*execution, error) {
	c := &body.Config
	queue, wrong := queueOf(body.Topic)
	wrong = append(wrong, c.complaints("config.", true)...)
	if c.Nodes > maxNodes {
		wrong = append(wrong, refusal("config.number_of_nodes", "a single execution has at most 100; use a batch"))
	}
	var arguments []string
	for _, p := range body.Parameters {
		arguments = append(arguments, p.Value)
	}
	e := &execution{
		template:  batch.Template{FunctionID: body.FunctionID, Method: body.Method, Config: c.config(queue)},
		threshold: c.Threshold,
	}
	wrong = append(wrong, invalid(&batch.Request{Template: e.template, Arguments: [][]string{arguments}})...)
	if err := oneProblem(wrong); err != nil {
		return nil, err
	}
	err := futurestore.CheckQueue(ctx, s.options.Client.Cluster(), &e.template)
	if err != nil {
		return nil, err
	}
	function, err := s.resolve(ctx, &e.template)
	if err != nil {
		return nil, err
	}
	once, spec := 0, futurestore.Submission(&e.template, function, arguments).Spec
	e.task = futures.Task{
		Function: function, Argv: arguments, Args: []byte(c.Stdin), MaxRetries: &once, Env: spec.Env,
		Timeout: spec.Timeout, Queue: spec.Queue, Requirements: spec.Requirements,
	}
	return e, nil
}

// resolve returns the name of a template's function.
func (s *server) resolve(ctx context.Context, t *batch.Template) (string, error) {
	function, err := futurestore.Function(ctx, s.options.Client.Cluster(), t)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		err = stack.NewProblem(http.StatusNotFound, "no_such_function", nil,
			"there is no function %.200q with the method %.200q: install it first, by POST %s/install",
			t.FunctionID, t.Method, functionsPath)
	}
	return function, err
}

// singleResult returns the outcome of a single run.
func (s *server) singleResult(w http.ResponseWriter, r *http.Request) error {
	if err := s.needsCluster(); err != nil {
		return err
	}
	var body idBody
	if err := readJSON(r, smallBody, &body); err != nil {
		return err
	}
	id, err := layout.ParseID(body.ID)
	if err != nil {
		return err
	}
	return s.executed(w, r, id)
}
