package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const actorsPath = "/api/v1/actors"

// Actor is an actor with its state.
type Actor struct {
	futures.ActorView
	State json.RawMessage `json:"state,omitempty" doc:"As JSON; byte strings of msgpack are objects"`
	Bytes *Bytes          `json:"bytes,omitempty" doc:"Instead of state, if that can't be shown as JSON"`
}

// ActorOf returns the view of an actor with its state.
func ActorOf(v *futures.ActorView) Actor {
	a := Actor{ActorView: *v}
	text, is := v.JSON()
	a.State, a.Bytes = JSONOrBytes(text, is, v.Value)
	return a
}

// JSONOrBytes returns what is shown of a value: its text as JSON if it has one, or else its bytes, neither for nil.
func JSONOrBytes(text json.RawMessage, is bool, value []byte) (json.RawMessage, *Bytes) {
	if is || value == nil {
		return text, nil
	}
	return nil, &Bytes{"base64", base64.StdEncoding.EncodeToString(value)}
}

func (s *server) registerActors() {
	one := actorsPath + "/{type}/{key}"
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, actorsPath, "list-actor-types",
		"List the types of actors", "Those that have actors, in order, up to 1,000."), s.listActorTypes)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, actorsPath+"/{type}", "list-actors",
		"List the actors of a type", "Without their states, in an order that is the same each time."), s.listActors)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, one, "get-actor", "Get an actor with its state",
		"And how many calls wait for their turn. It waits for none of them. A slash in the key is %2F."), s.getActor)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, one+"/parts", "list-actor-parts",
		"List the parts of an actor", "Their names and sizes, in the order of the bytes of the names."), s.listParts)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodDelete, one, "delete-actor",
		"Remove the state of an actor, and its parts",
		"Calls that run see that, and run again. Those that wait begin with none."), s.deleteActor)
	call := makes(operation(http.MethodPost, one+"/{method}", "call-actor", "Call a method of an actor",
		"The body is its input, any JSON. Answers as a submit does: once the call is durable, or with wait once it is "+
			"over. Readers run beside other calls."))
	call.SkipValidateBody = true // it would be decoded
	stack.Register(s.Stack, stack.Submit, call, s.callActor)
}

type actorTypesOutputBody struct {
	Types []string `json:"types"`
}

func (s *server) listActorTypes(ctx context.Context, _ *struct{}) (*body[actorTypesOutputBody], error) {
	types, err := s.client.ActorTypes(ctx)
	return answerWith(actorTypesOutputBody{append([]string{}, types...)}, err)
}

type listActorsInput struct {
	Type  string `path:"type"`
	After string `query:"after" maxLength:"256" doc:"The next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type actorsOutputBody struct {
	Actors []futures.ActorView `json:"actors"`
	Next   string              `json:"next,omitempty" doc:"Where the next page begins; left out at the end"`
}

func (s *server) listActors(ctx context.Context, in *listActorsInput) (*body[actorsOutputBody], error) {
	if err := stack.Reserve(ctx, int64(in.Limit)*listedActorBytes); err != nil {
		return nil, err
	}
	views, next, err := s.client.Actors(ctx, in.Type, in.After, in.Limit)
	return answerWith(actorsOutputBody{views, next}, err)
}

// listedActorBytes is about what an actor of a list holds in memory, with the state that lies within its head.
const listedActorBytes = 2 << 10

type actorInput struct {
	Type string `path:"type"`
	Key  string `path:"key"`
}

func (s *server) getActor(ctx context.Context, in *actorInput) (*body[Actor], error) {
	if err := stack.Reserve(ctx, actorBytes); err != nil {
		return nil, err
	}
	return viewed(ActorOf)(s.client.ActorState(ctx, in.Type, in.Key))
}

// actorBytes is what an actor may hold in memory, with its state as JSON.
const actorBytes = 8 * futures.MaxActorState

type partsInput struct {
	Type  string `path:"type"`
	Key   string `path:"key"`
	After string `query:"after" maxLength:"256" doc:"The next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"100"`
}

type partsOutputBody struct {
	Parts []futures.PartView `json:"parts"`
	Next  string             `json:"next,omitempty" doc:"Where the next page begins; left out at the end"`
}

func (s *server) listParts(ctx context.Context, in *partsInput) (*body[partsOutputBody], error) {
	if err := stack.Reserve(ctx, int64(in.Limit)*futures.MaxActorPart); err != nil {
		return nil, err
	}
	views, next, err := s.client.ActorParts(ctx, in.Type, in.Key, in.After, in.Limit)
	return answerWith(partsOutputBody{views, next}, err)
}

func (s *server) deleteActor(ctx context.Context, in *actorInput) (*struct{}, error) {
	return nil, s.client.DeleteActor(ctx, in.Type, in.Key)
}

// callActorInput has the options of a submit as parameters: the body is the input alone.
type callActorInput struct {
	SubmitParameters
	Type       string         `path:"type"`
	Actor      string         `path:"key"`
	Method     string         `path:"method"`
	Queue      string         `query:"queue" default:"default"`
	Label      string         `query:"label" maxLength:"64" doc:"For people: printable characters"`
	Tags       []string       `query:"tag,explode" maxItems:"8" doc:"What lists find it by"`
	Priority   int            `query:"priority" minimum:"0" maximum:"255" doc:"Higher is earlier in line"`
	MaxRetries int            `query:"max_retries" minimum:"0" default:"3" doc:"Attempts after the first"`
	BackoffMS  int64          `query:"backoff_ms" minimum:"0" doc:"Wait before the first retry"`
	TimeoutMS  int64          `query:"timeout_ms" minimum:"0" doc:"Limit of one attempt"`
	DelayMS    int64          `query:"delay_ms" minimum:"0" doc:"How long it waits before it gets in line"`
	ExpiresMS  int64          `query:"expires_ms" minimum:"0" doc:"How long it may wait to begin"`
	Deadline   time.Time      `query:"deadline" doc:"When it must be over"`
	RequireFit bool           `query:"require_fit" doc:"Refuse it if no worker could ever run it"`
	Body       *stack.OwnJSON `required:"false"`
}

// Resolve implements huma.Resolver. The library takes a zero for a parameter that is left out.
func (in *callActorInput) Resolve(ctx huma.Context) []error {
	if text := ctx.Query("max_retries"); text != "" {
		in.MaxRetries, _ = strconv.Atoi(text) // it was checked
	}
	return nil
}

func (s *server) callActor(ctx context.Context, in *callActorInput) (*answer, error) {
	input, err := in.Body.Check()
	if err != nil {
		return nil, err
	}
	return s.submitOne(ctx, &in.SubmitParameters, futuresPath, "", func() (futures.Task, error) {
		described := NewFuture{
			Queue: in.Queue, Tags: in.Tags, Priority: in.Priority, MaxRetries: &in.MaxRetries,
			BackoffMS: in.BackoffMS, TimeoutMS: in.TimeoutMS, DelayMS: in.DelayMS, ExpiresMS: in.ExpiresMS,
			Deadline: in.Deadline, RequireFit: in.RequireFit, Input: input, Label: in.Label,
		}
		t, err := described.task()
		if err != nil {
			return t, err
		}
		return s.client.ActorTask(ctx, in.Type, in.Actor, in.Method, t)
	})
}
