package httpapi

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// NewFuture describes a future to submit.
type NewFuture struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	Function     string            `json:"function" doc:"go:NAME, wasm:CID[/METHOD] or wasm:ALIAS[/METHOD]" minLength:"1"`
	Args         string            `json:"args,omitempty" doc:"The function's input; standard input of a WASM function"`
	Encoding     string            `json:"encoding,omitempty" enum:"text,base64" default:"text" doc:"The encoding of args"`
	Input        json.RawMessage   `json:"input,omitempty" doc:"Instead of args: what a typed Go function takes"`
	Codec        string            `json:"codec,omitempty" enum:"raw,json,msgpack,argv,inputs" doc:"The codec of args"`
	Inputs       []string          `json:"inputs,omitempty" doc:"Futures to wait for, beside those in the arguments"`
	Argv         []string          `json:"argv,omitempty" doc:"Arguments of a WASM function"`
	Env          map[string]string `json:"env,omitempty" doc:"Environment of a WASM function"`
	Queue        string            `json:"queue,omitempty" default:"default"`
	Label        string            `json:"label,omitempty" maxLength:"64" doc:"For people: printable characters"`
	Tags         []string          `json:"tags,omitempty" maxItems:"8" doc:"What lists find it by"`
	Priority     int               `json:"priority,omitempty" minimum:"0" maximum:"255" doc:"Higher runs earlier"`
	Lane         *Lane             `json:"lane,omitempty" doc:"The lane that admits it"`
	Requirements NewRequirements   `json:"requirements,omitempty"`
	GrowMemory   *layout.Growth    `json:"grow_memory,omitempty" doc:"More memory after an attempt that had too little"`
	MaxRetries   *int              `json:"max_retries,omitempty" minimum:"0" default:"3" doc:"Attempts after the first"`
	BackoffMS    int64             `json:"backoff_ms,omitempty" minimum:"0" doc:"Wait before the first retry"`
	TimeoutMS    int64             `json:"timeout_ms,omitempty" minimum:"0" doc:"Limit of one attempt"`
	DelayMS      int64             `json:"delay_ms,omitempty" minimum:"0" doc:"How long to wait before it may run"`
	ExpiresMS    int64             `json:"expires_ms,omitempty" minimum:"0" doc:"How long it may wait to begin"`
	Deadline     time.Time         `json:"deadline,omitempty" doc:"When it must be over"`
	NotBefore    time.Time         `json:"not_before,omitempty" doc:"Not before this time"`
	AsObject     bool              `json:"as_object,omitempty" doc:"Keep the result with the worker that makes it"`
	NoRebuild    bool              `json:"no_rebuild,omitempty" doc:"Fail rather than run again if that is lost"`
	Near         string            `json:"near,omitempty" doc:"A future: run where its result is" format:"uuid"`
	MustBeNear   bool              `json:"must_be_near,omitempty" doc:"Run nowhere else"`
	RequireFit   bool              `json:"require_fit,omitempty" doc:"Refuse it if no worker could ever run it"`
	ID           string            `json:"id,omitempty" doc:"A UUID of the caller's choice" format:"uuid"`
	Key          string            `json:"key,omitempty" minLength:"1" maxLength:"1024" doc:"Idempotency key"`
	Unique       *Unique           `json:"unique,omitempty" doc:"Be the only one of its kind"`
	Trace        map[string]string `json:"trace,omitempty" doc:"The context of its trace, such as traceparent"`
}

// NewRequirements are those of a future to submit.
type NewRequirements struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt requirements

	Requirements
}

// maxMillis keeps a number of milliseconds within time.Duration.
const maxMillis = int64(1<<63-1) / int64(time.Millisecond)

func (n *NewFuture) task() (futures.Task, error) {
	t := futures.Task{
		Function: n.Function, Args: []byte(n.Args), Codec: n.Codec, Argv: n.Argv, Env: n.Env, Queue: n.Queue, Tags: n.Tags,
		Priority: uint8(n.Priority), MaxRetries: n.MaxRetries, NotBefore: n.NotBefore, Deadline: n.Deadline, Key: n.Key,
		RequireFit: n.RequireFit, AsObject: n.AsObject, NoRebuild: n.NoRebuild, GrowMemory: n.GrowMemory, Lane: n.Lane.of(),
		Trace: n.Trace, Label: n.Label,
		Requirements: layout.Requirements{
			CPU: n.Requirements.CPU, RAM: n.Requirements.RAM, GPU: n.Requirements.GPU,
			Labels: n.Requirements.Labels,
		},
	}
	for _, d := range []struct {
		name   string
		millis int64
		to     *time.Duration
	}{
		{"backoff_ms", n.BackoffMS, &t.Backoff.Base}, {"timeout_ms", n.TimeoutMS, &t.Timeout},
		{"delay_ms", n.DelayMS, &t.Delay}, {"expires_ms", n.ExpiresMS, &t.Expires},
	} {
		if d.millis > maxMillis {
			return t, stack.BadRequest("%s=%d: use at most %d", d.name, d.millis, maxMillis)
		}
		*d.to = time.Duration(d.millis) * time.Millisecond
	}
	if len(n.Input) > 0 {
		if n.Args != "" || n.Encoding == "base64" || n.Codec != "" && n.Codec != layout.CodecJSON {
			return t, stack.BadRequest("input is JSON and excludes args: leave out args and encoding, and codec or have it json")
		}
		t.Args, t.Codec = n.Input, layout.CodecJSON
	} else if n.Encoding == "base64" {
		args, err := base64.StdEncoding.DecodeString(n.Args)
		if err != nil {
			return t, stack.BadRequest("args is not base64: %v", err)
		}
		t.Args = args
	}
	if len(t.Args) > layout.MaxArgs {
		return t, fmt.Errorf("%w: %d bytes of arguments: at most %d over HTTP", fdbmodel.ErrTooLarge,
			len(t.Args), layout.MaxArgs)
	}
	t.MustBeNear = n.MustBeNear
	if n.Unique != nil {
		u, err := n.Unique.unique()
		if err != nil {
			return t, err
		}
		t.Unique = &u
	}
	if n.Near != "" {
		var err error
		if t.Near, err = layout.ParseID(n.Near); err != nil {
			return t, stack.BadRequest("near: %v", err)
		}
	}
	if n.ID != "" {
		id, err := ownID(n.ID)
		if err != nil {
			return t, err
		}
		t.ID = id
	}
	for i, text := range n.Inputs {
		id, err := layout.ParseID(text)
		if err != nil {
			return t, fmt.Errorf("inputs[%d]: %w", i, err)
		}
		t.After = append(t.After, id)
	}
	return t, nil
}

// ownID is an id of the caller's choice.
func ownID(text string) (futures.ID, error) {
	id, err := layout.ParseID(text)
	if err == nil && id.IsZero() {
		err = fmt.Errorf("%w: id is all zeros, which no future has: leave it out, or draw a random UUID", layout.ErrBadID)
	}
	return id, err
}

// answer is a response with one future.
type answer struct {
	Status   int
	Location string `header:"Location"`
	Body     Future
}

// Submitted is a future that a request has submitted.
type Submitted struct {
	ID      futures.ID `json:"id" format:"uuid"`
	Existed bool       `json:"existed" doc:"It was submitted before, with the same id, key or unique key"`
	Unlike  string     `json:"unlike,omitempty" doc:"What it has that was submitted otherwise"`
}

func submittedOf(f *futures.Future) Submitted { return Submitted{f.ID(), f.Existed(), f.Differs()} }

func (s *server) registerFutures() {
	stack.Register(s.Stack, stack.Submit, makes(operation(http.MethodPost, futuresPath, "submit", "Submit a future",
		"Answers once the future is durable, or with wait once it is over.")), s.submit)
	many := operation(http.MethodPost, futuresPath+":submit", "submit-many", "Submit many futures",
		"In transactions of up to 100 futures. If one fails, those before it exist: give them keys, and repeat.")
	many.DefaultStatus = http.StatusCreated
	stack.Register(s.Stack, stack.Submit, many, s.submitMany)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, futuresPath, "list", "List futures",
		"The newest first, over all shards. By tag, and those that are failed, claimed, ready or delayed, at a cost that "+
			"does not grow with the others. A page may be empty and still have a cursor of the next one."), s.list)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, futuresPath+":count", "count-futures",
		"Count futures by what they have in common", "Up to 20,000 of those that match, the newest first, within 2 s."),
		s.breakdown)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, futuresPath+"/{id}", "get", "Get a future",
		"With wait, answers once the future is over, or after that time with the future as it is."), s.get)
	s.registerResultOf(futuresPath, "get-result", "Get a result's bytes", s.result)
	s.registerFollow()
}

// SubmitParameters are those of the submit of one future.
type SubmitParameters struct {
	Wait string `query:"wait" doc:"How long to wait for the end, such as 30s; at most 1m"`
	Key  string `header:"Idempotency-Key" maxLength:"1024" doc:"The same as key"`
	Room string `query:"wait_for_room" doc:"How long to wait while a limit of the cluster is exceeded; at most 1m"`
}

type submitInput struct {
	SubmitParameters
	Body NewFuture
}

func (s *server) submit(ctx context.Context, in *submitInput) (*answer, error) {
	return s.submitOne(ctx, &in.SubmitParameters, futuresPath, in.Body.Key, in.Body.task)
}

// submitOne submits the future that task describes, once there is room, and answers with its
// path below path.
func (s *server) submitOne(ctx context.Context, in *SubmitParameters, path, key string,
	task func() (futures.Task, error),
) (*answer, error) {
	wait, err := ParseWait(in.Wait)
	if err != nil {
		return nil, err
	}
	if key, err = oneKey(in.Key, key); err != nil {
		return nil, err
	}
	t, err := task()
	if err != nil {
		return nil, err
	}
	t.Key, t.NoNotify = cmp.Or(t.Key, key), wait == 0
	var f *futures.Future
	err = s.inRoom(ctx, in.Room, func(ctx context.Context, wait bool) (err error) {
		t.WaitForRoom = wait
		f, err = s.client.Submit(ctx, t)
		return err
	})
	if err != nil {
		return nil, err
	}
	out, err := s.answer(ctx, f.ID(), wait)
	if err != nil {
		return nil, stack.Prefix(err, "future %s was submitted, and then", f.ID())
	}
	out.Status, out.Location, out.Body.Unlike = statusOf(f.Existed()), path+"/"+f.ID().String(), f.Differs()
	return out, nil
}

// oneKey is the idempotency key of a request: that of its header, or its own.
func oneKey(header, own string) (string, error) {
	if header != "" && own != "" && header != own {
		return "", stack.BadRequest("the header Idempotency-Key and key differ: use one of them")
	}
	return cmp.Or(own, header), nil
}

// SubmitManyParameters are those of the submit of many futures.
type SubmitManyParameters struct {
	Key  string `header:"Idempotency-Key" maxLength:"1024" doc:"The same as key, for one alone"`
	Room string `query:"wait_for_room" doc:"How long to wait while a limit of the cluster is exceeded; at most 1m"`
}

// submitAll submits futures once there is room. With an error it returns those that exist.
func (s *server) submitAll(ctx context.Context, tasks []futures.Task, in *SubmitManyParameters,
) (all []*futures.Future, err error) {
	if len(tasks) == 1 {
		if tasks[0].Key, err = oneKey(in.Key, tasks[0].Key); err != nil {
			return nil, err
		}
	} else if in.Key != "" {
		return nil, stack.BadRequest("the header Idempotency-Key is for one future, and there are %d: give each its key",
			len(tasks))
	}
	err = s.inRoom(ctx, in.Room, func(ctx context.Context, wait bool) (err error) {
		tasks[0].WaitForRoom = wait
		all, err = s.client.SubmitMany(ctx, tasks)
		return err
	})
	return all, err
}

// answer returns a future once it is over, or after wait.
func (s *server) answer(ctx context.Context, id futures.ID, wait time.Duration) (*answer, error) {
	row, err := s.await(ctx, id, wait)
	if err != nil {
		return nil, err
	}
	out := &answer{Status: http.StatusOK}
	out.Body, err = View(ctx, s.client.Cluster(), &row)
	return out, err
}

// await returns a future's records once it is over, or after wait.
func (s *server) await(ctx context.Context, id futures.ID, wait time.Duration) (layout.Row, error) {
	row, err := s.client.Cluster().Get(ctx, id)
	if err != nil || wait == 0 || row.State().Terminal() {
		return row, err
	}
	waiting, cancel := s.Waiting(ctx, wait)
	defer cancel()
	err = s.client.Future(id).AwaitEnd(waiting)
	if err != nil && ctx.Err() == nil && !isEnd(err) {
		return row, err
	}
	return s.client.Cluster().Get(ctx, id)
}

// isEnd reports whether an Await ended by the future's failure or by the end of
// the wait, and not by an error.
func isEnd(err error) bool {
	return errors.Is(err, futures.ErrFailed) || errors.Is(err, futures.ErrTooLarge) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

type submitManyInput struct {
	SubmitManyParameters
	Body struct {
		_       struct{}    `additionalProperties:"false"`
		Futures []NewFuture `json:"futures" minItems:"1" maxItems:"1000"`
	}
}

type submitManyOutputBody struct {
	Futures []Submitted `json:"futures"`
}

func (s *server) submitMany(ctx context.Context, in *submitManyInput) (*body[submitManyOutputBody], error) {
	tasks := make([]futures.Task, len(in.Body.Futures))
	for i := range in.Body.Futures {
		t, err := in.Body.Futures[i].task()
		if err != nil {
			return nil, stack.Prefix(err, "futures[%d]", i)
		}
		t.NoNotify = true
		tasks[i] = t
	}
	handles, err := s.submitAll(ctx, tasks, &in.SubmitManyParameters)
	if err != nil {
		return nil, fmt.Errorf("only the first %d of %d futures were submitted: %w", len(handles), len(tasks), err)
	}
	return &body[submitManyOutputBody]{submitManyOutputBody{submitted(handles)}}, nil
}

// submitted says of futures whether they existed.
func submitted(handles []*futures.Future) []Submitted {
	all := make([]Submitted, len(handles))
	for i, f := range handles {
		all[i] = submittedOf(f)
	}
	return all
}

type listInput struct {
	ListFilter
	Items  bool   `query:"items" doc:"With the items of batches, in the order of their shards and ids"`
	Oldest bool   `query:"oldest" doc:"The oldest of each shard first, in the order of the shards"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Cursor string `query:"cursor" doc:"The cursor of the previous page" maxLength:"100"`
}

// listedBytes is what a future of a list may hold in memory, listBytes what a page
// holds at most, which inspect.List bounds.
const listedBytes, listBytes = 64 << 10, 40 << 20

type listOutputBody struct {
	Futures []Future `json:"futures"`
	Cursor  string   `json:"cursor,omitempty" doc:"Where the next page begins; left out at the end"`
	// ItemsLeftOut is that of the whole list, on its first page, if only a state and a queue are asked for, else that of
	// the page.
	ItemsLeftOut int `json:"items_left_out,omitempty" doc:"Items of batches that match and are not listed"`
}

func (s *server) list(ctx context.Context, in *listInput) (*body[listOutputBody], error) {
	filter, err := in.filter(ctx, s.client.Cluster())
	if err != nil {
		return nil, err
	}
	if filter.Newest = !in.Oldest; !in.Items && in.Batch == "" {
		filter.LeftOut = new(int)
	}
	sum := in.sum()
	if in.Items || in.Oldest {
		sum = in.sum(in.Items, in.Oldest)
	}
	cursor, err := cursorOf(in.Cursor, sum)
	if err != nil {
		return nil, err
	}
	if err := stack.Reserve(ctx, min(int64(in.Limit)*listedBytes, listBytes)); err != nil {
		return nil, err
	}
	rows, next, err := inspect.List(ctx, s.client.Cluster(), filter, cursor, in.Limit)
	page := listOutputBody{Futures: viewsOf(rows, ListView), Cursor: cursorFor(next, sum)}
	if filter.LeftOut != nil {
		page.ItemsLeftOut = *filter.LeftOut
	}
	return answerWith(page, err)
}

type getInput struct {
	ID   string `path:"id"`
	Wait string `query:"wait" doc:"How long to wait for the end, such as 30s; at most 1m"`
}

func (in *getInput) parse() (id futures.ID, wait time.Duration, err error) {
	if id, err = layout.ParseID(in.ID); err == nil {
		wait, err = ParseWait(in.Wait)
	}
	return id, wait, err
}

func (s *server) get(ctx context.Context, in *getInput) (*answer, error) {
	id, wait, err := in.parse()
	if err != nil {
		return nil, err
	}
	return s.answer(ctx, id, wait)
}
