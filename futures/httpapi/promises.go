package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// promisesPath is the path of promises. Who has rights acts on them as on any future, by the id.
const promisesPath = "/api/v1/promises"

func (s *server) registerPromises() {
	stack.Register(s.Stack, stack.Submit, makes(operation(http.MethodPost, promisesPath, "make-promise", "Make a promise",
		"A future that no worker runs: it is completed by its id, or by its token without any other right. The token is "+
			"shown now, and never again.")), s.makePromise)
	path := futuresPath + "/{id}"
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, path+":resolve", "resolve", "Resolve a promise",
		"Gives it its value, once. The same value again is a success that says so."), ofFuture(s.resolve))
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, path+":reject", "reject", "Reject a promise",
		"Fails it for good, with a message. A retry has it wait again."), ofFuture(s.reject))
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, path+":token", "new-promise-token",
		"Draw another token of a promise", "The former one opens nothing any more."), ofFuture(s.newPromiseToken))
	s.registerPromiseLinks()
}

// NewPromise describes a promise to make.
type NewPromise struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	Label     string    `json:"label,omitempty" maxLength:"64" doc:"For people; who has the token sees it too"`
	Queue     string    `json:"queue,omitempty" default:"default" doc:"What it is counted in"`
	Tags      []string  `json:"tags,omitempty" maxItems:"8" doc:"What lists find it by"`
	ExpiresMS int64     `json:"expires_ms,omitempty" minimum:"0" doc:"How long it may wait"`
	Deadline  time.Time `json:"deadline,omitempty" doc:"When it must be over"`
	ID        string    `json:"id,omitempty" doc:"A UUID of the caller's choice" format:"uuid"`
	Key       string    `json:"key,omitempty" minLength:"1" maxLength:"1024" doc:"Idempotency key"`
	Unique    *Unique   `json:"unique,omitempty" doc:"Be the only one of its kind"`
}

func (n *NewPromise) task() (t futures.Task, err error) {
	t = futures.Task{Label: n.Label, Queue: n.Queue, Tags: n.Tags, Deadline: n.Deadline, Key: n.Key, NoNotify: true}
	if n.ExpiresMS > maxMillis {
		return t, stack.BadRequest("expires_ms=%d: use at most %d", n.ExpiresMS, maxMillis)
	}
	t.Expires = time.Duration(n.ExpiresMS) * time.Millisecond
	if n.Unique != nil {
		u, err := n.Unique.unique()
		if err != nil {
			return t, err
		}
		t.Unique = &u
	}
	if n.ID != "" {
		t.ID, err = ownID(n.ID)
	}
	return t, err
}

// MadePromise is a promise that a request has made.
type MadePromise struct {
	Submitted
	Token string `json:"token,omitempty" doc:"Completes it, and opens nothing else; left out if it existed"`
	Path  string `json:"path,omitempty" doc:"Where the token completes it by POST: a link's path on this server"`
}

type madePromiseOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     MadePromise
}

func (s *server) makePromise(ctx context.Context, in *struct {
	Key  string      `header:"Idempotency-Key" maxLength:"1024"`
	Body *NewPromise `required:"false"`
},
) (*madePromiseOutput, error) {
	described := given(in.Body)
	key, err := oneKey(in.Key, described.Key)
	if err != nil {
		return nil, err
	}
	described.Key = key
	t, err := described.task()
	if err != nil {
		return nil, err
	}
	f, token, err := s.client.Promise(ctx, t)
	if err != nil {
		return nil, err
	}
	return &madePromiseOutput{
		statusOf(f.Existed()), futuresPath + "/" + f.ID().String(), MadePromiseOf(submittedOf(f), token),
	}, nil
}

// MadePromiseOf returns the view of a promise with a new token, which may be empty.
func MadePromiseOf(of Submitted, token string) MadePromise {
	made := MadePromise{Submitted: of, Token: token}
	if token != "" {
		made.Path = promisesPath + "/" + token
	}
	return made
}

// Completed says what a promise is after a request that completes it.
type Completed struct {
	ID      futures.ID `json:"id" format:"uuid"`
	State   string     `json:"state" enum:"realized,failed"`
	Already bool       `json:"already" doc:"It was completed with this very value, or message, before"`
}

type resolveInput struct {
	OneFuture
	Body struct {
		_     struct{}        `additionalProperties:"false"`
		Value json.RawMessage `json:"value" doc:"Any JSON"`
	}
}

func (s *server) resolve(ctx context.Context, id futures.ID, in *resolveInput) (*body[Completed], error) {
	v := futures.PromiseValue{Bytes: in.Body.Value, Codec: futures.CodecJSON}
	already, err := s.client.Resolve(ctx, id, v)
	return answerWith(Completed{id, futures.Realized.String(), already}, err)
}

type rejectInput struct {
	OneFuture
	Body *struct {
		_       struct{} `additionalProperties:"false"`
		Message string   `json:"message,omitempty" maxLength:"8192" doc:"Why; who awaits it sees it"`
	} `required:"false"`
}

func (s *server) reject(ctx context.Context, id futures.ID, in *rejectInput) (*body[Completed], error) {
	already, err := s.client.Reject(ctx, id, given(in.Body).Message)
	return answerWith(Completed{id, futures.Failed.String(), already}, err)
}

func (s *server) newPromiseToken(ctx context.Context, id futures.ID, _ *OneFuture) (*body[MadePromise], error) {
	token, err := s.client.NewPromiseToken(ctx, id)
	return answerWith(MadePromiseOf(Submitted{ID: id, Existed: true}, token), err)
}
