package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const tasksPath = "/api/v1/tasks"

// NewTask describes a task of a handler to submit.
type NewTask struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	Handler    string          `json:"handler" minLength:"1" maxLength:"64" doc:"A kind of lanes that has a bundle"`
	Input      json.RawMessage `json:"input" doc:"What the handler takes for a task"`
	Target     string          `json:"target,omitempty" maxLength:"256" doc:"Required if the handler does not say where"`
	Queue      string          `json:"queue,omitempty" default:"default"`
	Label      string          `json:"label,omitempty" maxLength:"64" doc:"For people: printable characters"`
	Tags       []string        `json:"tags,omitempty" maxItems:"8" doc:"What lists find it by"`
	Priority   int             `json:"priority,omitempty" minimum:"0" maximum:"255" doc:"Higher is earlier in line"`
	MaxRetries *int            `json:"max_retries,omitempty" minimum:"0" default:"3" doc:"Attempts after the first"`
	BackoffMS  int64           `json:"backoff_ms,omitempty" minimum:"0" doc:"Wait before the first retry"`
	DelayMS    int64           `json:"delay_ms,omitempty" minimum:"0" doc:"How long to wait before it gets in line"`
	ExpiresMS  int64           `json:"expires_ms,omitempty" minimum:"0" doc:"How long it may wait to begin"`
	Deadline   time.Time       `json:"deadline,omitempty" doc:"When it must be over"`
	Key        string          `json:"key,omitempty" minLength:"1" maxLength:"1024" doc:"Idempotency key"`
}

// TaskView is a task of a handler.
type TaskView struct {
	ID          futures.ID         `json:"id" format:"uuid" doc:"Also that of its future"`
	Handler     string             `json:"handler"`
	Target      string             `json:"target"`
	Status      TaskStatus         `json:"status"`
	SubmittedAt time.Time          `json:"submitted_at"`
	DueAt       *time.Time         `json:"due_at,omitempty" doc:"When it gets in line, if it is delayed"`
	Attempt     int                `json:"attempt" doc:"The attempt that runs or ran last"`
	MaxRetries  int                `json:"max_retries"`
	Worker      layout.WorkerID    `json:"worker,omitempty" doc:"The worker that has it in a call, or had"`
	Cancel      *CancelRequestView `json:"cancel,omitempty" doc:"Set if its call was asked to leave it"`
	Failure     *Failure           `json:"failure,omitempty" doc:"The last failed attempt"`
	Result      *Result            `json:"result,omitempty"`
}

// TaskStatus is the name of a task's status.
type TaskStatus futures.TaskStatus

// Schema implements huma.SchemaProvider: one of the names.
func (TaskStatus) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{string(futures.TaskCreated), string(futures.TaskInProgress),
		string(futures.TaskSucceeded), string(futures.TaskFailed)}}
}

// TaskOf returns the view of a task from that of its future.
func TaskOf(f *Future) TaskView {
	state, _ := layout.ParseState(string(f.State))
	t := TaskView{
		ID: f.ID, Status: TaskStatus(futures.TaskStatusOf(state)), SubmittedAt: f.SubmittedAt, DueAt: f.DueAt,
		Attempt: f.Attempt, MaxRetries: f.MaxRetries, Worker: f.Worker, Cancel: f.Cancel, Failure: f.Failure,
		Result: f.Result,
	}
	if f.Lane != nil {
		t.Handler, t.Target = f.Lane.Kind, f.Lane.Key
	}
	return t
}

func (s *server) registerTasks() {
	one := tasksPath + "/{id}"
	stack.Register(s.Stack, stack.Submit, makes(operation(http.MethodPost, tasksPath, "submit-task", "Submit a task",
		"It runs with others of its handler and target. The target is what the input has where the handler says. Answers "+
			"once the task is durable, or with wait once it is over.")), s.submitTask)
	many := operation(http.MethodPost, tasksPath+":submit", "submit-tasks", "Submit many tasks",
		"Of any handlers, in transactions of up to 100. If one fails, those before it exist: give them keys, and repeat.")
	many.DefaultStatus = http.StatusCreated
	stack.Register(s.Stack, stack.Submit, many, s.submitTasks)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, one, "get-task", "Get a task",
		"With wait, answers once the task is over, or after that time with the task as it is."), s.getTask)
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, one+":cancel", "cancel-task", "Cancel a task",
		"One that waits is over at once. A call that has it is told; a result that still arrives counts."),
		ofFuture(s.cancelTask))
	s.registerResultOf(tasksPath, "get-task-result", "Get the bytes of a task's result", s.taskResult)
}

// task returns the task that a request describes. Handlers that were read before are in
// kinds.
func (s *server) task(ctx context.Context, n *NewTask, kinds map[string]*futures.LaneKind) (futures.Task, error) {
	k, err := s.handler(ctx, n.Handler, kinds)
	if errors.Is(err, futures.ErrNotFound) {
		return futures.Task{}, fmt.Errorf("handler %.80q: %w: make it with futura lane set NAME --bundle go:NAME, or by "+
			"Setup of package grouping", n.Handler, futures.ErrNotFound)
	}
	if err != nil {
		return futures.Task{}, err
	}
	described := NewFuture{
		Function: k.Bundle, Input: n.Input, Queue: n.Queue, Tags: n.Tags, Priority: n.Priority, MaxRetries: n.MaxRetries,
		BackoffMS: n.BackoffMS, DelayMS: n.DelayMS, ExpiresMS: n.ExpiresMS, Deadline: n.Deadline, Key: n.Key,
		Label: n.Label,
	}
	t, err := described.task()
	if err != nil {
		return t, err
	}
	inLane, err := k.Task(n.Input, n.Target)
	t.Lane = inLane.Lane
	return t, err
}

// handler returns a kind of lanes, which it adds to those that were read before.
func (s *server) handler(ctx context.Context, name string, kinds map[string]*futures.LaneKind,
) (*futures.LaneKind, error) {
	if k := kinds[name]; k != nil {
		return k, nil
	}
	k, err := s.client.LaneKind(ctx, name)
	if err != nil {
		return nil, err
	}
	kinds[name] = &k
	return &k, nil
}

type submitTaskInput struct {
	SubmitParameters
	Body NewTask
}

type taskOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     TaskView
}

func taskAnswer(a *answer, err error) (*taskOutput, error) {
	if err != nil {
		return nil, err
	}
	return &taskOutput{a.Status, a.Location, TaskOf(&a.Body)}, nil
}

func (s *server) submitTask(ctx context.Context, in *submitTaskInput) (*taskOutput, error) {
	return taskAnswer(s.submitOne(ctx, &in.SubmitParameters, tasksPath, in.Body.Key, func() (futures.Task, error) {
		return s.task(ctx, &in.Body, map[string]*futures.LaneKind{})
	}))
}

type submitTasksInput struct {
	SubmitManyParameters
	Body struct {
		_     struct{}  `additionalProperties:"false"`
		Tasks []NewTask `json:"tasks" minItems:"1" maxItems:"1000"`
	}
}

type submitTasksOutputBody struct {
	Tasks []Submitted `json:"tasks"`
}

func (s *server) submitTasks(ctx context.Context, in *submitTasksInput) (*body[submitTasksOutputBody], error) {
	var err error
	kinds := map[string]*futures.LaneKind{}
	all := make([]futures.Task, len(in.Body.Tasks))
	for i := range in.Body.Tasks {
		if all[i], err = s.task(ctx, &in.Body.Tasks[i], kinds); err != nil {
			return nil, stack.Prefix(err, "tasks[%d]", i)
		}
		all[i].NoNotify = true
	}
	handles, err := s.submitAll(ctx, all, &in.SubmitManyParameters)
	if err != nil {
		return nil, fmt.Errorf("only the first %d of %d tasks were submitted: %w", len(handles), len(all), err)
	}
	return &body[submitTasksOutputBody]{submitTasksOutputBody{submitted(handles)}}, nil
}

// checkTask returns ErrNotFound unless an id is that of a task.
func (s *server) checkTask(ctx context.Context, text string) error {
	id, err := layout.ParseID(text)
	if err != nil {
		return err
	}
	row, err := s.client.Cluster().Get(ctx, id)
	if err == nil && !row.Spec.Member {
		err = fmt.Errorf("task %s: %w: it is a future of no handler, see %s/%s", id, futures.ErrNotFound, futuresPath, id)
	}
	return err
}

func (s *server) getTask(ctx context.Context, in *getInput) (*taskOutput, error) {
	id, wait, err := in.parse()
	if err == nil {
		err = s.checkTask(ctx, in.ID)
	}
	if err != nil {
		return nil, err
	}
	return taskAnswer(s.answer(ctx, id, wait))
}

func (s *server) cancelTask(ctx context.Context, id futures.ID, in *cancelInput) (*body[cancelOutputBody], error) {
	if err := s.checkTask(ctx, in.ID); err != nil {
		return nil, err
	}
	return s.cancel(ctx, id, in)
}

func (s *server) taskResult(w http.ResponseWriter, r *http.Request) error {
	if err := s.checkTask(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return s.result(w, r)
}
