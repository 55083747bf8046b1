package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

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
	Topic      string          `json:"topic,omitempty" doc:"Refused unless it is empty or b7s's own"`
}

type parameterBody struct {
	Name  string `json:"name,omitempty" doc:"Ignored"`
	Value string `json:"value"`
}

// executeAnswer is the outcome of one run, as in b7s.
type executeAnswer struct {
	Code      string         `json:"code" doc:"200; 202 while it runs, 408, 410 or 500 where it failed"`
	RequestID string         `json:"request_id" format:"uuid" doc:"The future's id"`
	Message   string         `json:"message,omitempty"`
	Results   []peersBody    `json:"results,omitempty"`
	Cluster   executeCluster `json:"cluster"`
}

type peersBody struct {
	Result    outputBody `json:"result"`
	Peers     []string   `json:"peers"`
	Frequency float64    `json:"frequency"`

	Usage map[string]usageBody `json:"usage,omitempty" doc:"By peer, as far as the worker knows it"`
}

type executeCluster struct {
	Peers []string `json:"peers,omitempty"`
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

// execute runs a function once, and answers when it is over.
func (s *server) execute(w http.ResponseWriter, r *http.Request) error {
	if err := s.needsCluster(); err != nil {
		return err
	}
	var body executeRequest
	if err := readJSON(r, maxExecute, &body); err != nil {
		return err
	}
	task, err := s.task(r.Context(), &body)
	if err != nil {
		return err
	}
	task.Key = r.Header.Get("Idempotency-Key")
	f, err := s.options.Client.Submit(r.Context(), task)
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

// task is the future of a single run. It has one attempt, as in b7s.
func (s *server) task(ctx context.Context, body *executeRequest) (futures.Task, error) {
	c := &body.Config
	err := checkTopic(body.Topic)
	if err == nil {
		err = c.check("config.")
	}
	if err == nil {
		err = checkBounds(c.Environment, c.Timeout)
	}
	var arguments []string
	for _, p := range body.Parameters {
		arguments = append(arguments, p.Value)
	}
	template := batch.Template{FunctionID: body.FunctionID, Method: body.Method, Config: c.config()}
	if err == nil {
		err = (&batch.Request{Template: template, Arguments: [][]string{arguments}}).Validate()
	}
	if err == nil {
		err = c.checkSingle()
	}
	if err != nil {
		return futures.Task{}, err
	}
	function, err := s.resolve(ctx, &template)
	once := 0
	task := futures.Task{
		Function: function, Argv: arguments, Args: []byte(c.Stdin), MaxRetries: &once,
		Timeout: time.Duration(c.Timeout) * time.Second,
	}
	if len(c.Environment) > 0 {
		task.Env = map[string]string{}
	}
	for _, e := range c.Environment {
		task.Env[e.Name] = e.Value
	}
	return task, err
}

// checkSingle returns a problem that names the fields that ask for more than one
// run.
func (c *configBody) checkSingle() error {
	var wrong []stack.FieldError
	for field, asked := range map[string]bool{
		"number_of_nodes": c.Nodes != 0 && c.Nodes != 1, "concurrency": c.Concurrency > 1,
		"rate_per_host": c.RatePerHost != 0,
	} {
		if asked {
			wrong = append(wrong, stack.FieldError{
				Location: "config." + field,
				Message:  "not supported here: a single execution is one run on one worker; use a batch",
			})
		}
	}
	slices.SortFunc(wrong, func(a, b stack.FieldError) int { return strings.Compare(a.Location, b.Location) })
	return refused(wrong)
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

// executed answers with the state of a future, as an answer to a single run.
func (s *server) executed(w http.ResponseWriter, r *http.Request, id futures.ID) error {
	ctx := r.Context()
	row, err := s.options.Client.Cluster().Get(ctx, id)
	if err != nil {
		return err
	}
	cluster, ending := s.options.Client.Cluster(), row.Ending()
	answer := &executeAnswer{Code: strconv.Itoa(futurestore.CodeOf(&ending)), RequestID: id.String()}
	if !ending.Over() {
		answer.Message = "it is " + ending.State.String() + ": ask again, by POST " + functionsPath + "/requests/result"
		return stack.WriteJSON(w, http.StatusOK, answer)
	}
	if err := stack.Reserve(ctx, 2*ending.Size()); err != nil {
		return err
	}
	if err := cluster.Load(ctx, &ending); err != nil {
		return err
	}
	if ending.Failure != nil {
		answer.Message = futurestore.ReasonOf(ending.Failure)
	}
	peers := []string{}
	if worker := ending.Worker(); worker != "" {
		peers = append(peers, string(worker))
	}
	out := futurestore.ResultOf(&ending)
	result, splices := outputOf(&out)
	usage := map[string]usageBody{}
	for _, peer := range peers {
		usage[peer] = usageOf(&out.Usage)
	}
	answer.Results = []peersBody{{Result: result, Peers: peers, Frequency: 100, Usage: usage}}
	answer.Cluster.Peers = peers
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if writeSpliced(w, answer, splices...) != nil {
		return stack.ErrCut
	}
	return nil
}
