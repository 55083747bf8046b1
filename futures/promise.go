package futures

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/promises"
)

// Errors of promises.
var (
	// ErrPromiseConflict is returned when a promise was completed before, and otherwise.
	ErrPromiseConflict = promises.ErrConflict
	// ErrPromiseExpired is returned when the time of a promise was over before it was completed.
	ErrPromiseExpired = promises.ErrExpired
	// ErrPromiseCancelled is returned for a promise that was cancelled.
	ErrPromiseCancelled = promises.ErrCancelled
	// ErrNoPromise is returned for a future that is not a promise.
	ErrNoPromise = promises.ErrNoPromise
	// ErrBadPromiseToken is returned for a token that opens no promise: it is none, a newer one was
	// drawn, or the promise was removed.
	ErrBadPromiseToken = promises.ErrBadToken
)

// PromiseTokenPrefix begins each token of a promise.
const PromiseTokenPrefix = promises.TokenPrefix

// FunctionPromise is the function of promises, for filters of lists.
const FunctionPromise = layout.FunctionPromise

// Promise is a future that no worker runs and that somebody completes: who may change futures, by
// Client.Resolve or Client.Reject, or who has its token, by ResolveBy, RejectBy or an HTTP request.
// It is used wherever a Typed future is.
type Promise[T any] struct {
	*Typed[T]
	token string
}

// Token returns the token that completes the promise, and opens nothing else: it is all that a
// payment provider, a webhook or a person with a link needs. It is empty if the promise existed
// before: a token is shown once, to the one that made the promise, and Client.NewPromiseToken draws
// another one. Only its hash is stored.
func (p *Promise[T]) Token() string { return p.token }

// NewPromise makes a promise and returns once it is durable. Options that say what identifies and
// lists it apply (Key, Label, Tags, Queue, Priority, a Unique), and those that end it: Expires
// and Deadline. It has no function, inputs, delay, lane, retries or requirements, and with one
// of them, or RequireFit, NewPromise returns ErrBadSpec. Other errors are those of Client.Submit.
//
// Its value is decoded as the result of a function is. Values come as JSON from HTTP and from
// Client.Resolve, so that T should decode from JSON. As an argument of a Go function it keeps the names
// of JSON: fields with other names than in Go need a msgpack tag beside the json tag.
//
// A function that makes a promise and is run again makes another one, unless it has a Key.
func NewPromise[T any](ctx context.Context, c *Client, options ...Option) (*Promise[T], error) {
	var t Task
	for _, o := range options {
		o(&t)
	}
	f, token, err := c.Promise(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Promise[T]{&Typed[T]{f}, token}, nil
}

// Promise is NewPromise for a task without a function. It returns the token apart, empty if the
// promise existed before.
func (c *Client) Promise(ctx context.Context, t Task) (f *Future, token string, err error) {
	_, err = c.traced(ctx, []Task{t}, func(ctx context.Context) ([]*Future, error) {
		if f, token, err = c.promise(ctx, t); err != nil {
			return nil, err
		}
		return []*Future{f}, nil
	})
	return f, token, err
}

func (c *Client) promise(ctx context.Context, t Task) (f *Future, token string, err error) {
	if t.RequireFit {
		return nil, "", fmt.Errorf("%w: no worker runs a promise: leave out RequireFit", layout.ErrBadSpec)
	}
	if t.MaxRetries == nil {
		t.MaxRetries = new(int)
	}
	if err := c.prepare(t.NoNotify); err != nil {
		return nil, "", err
	}
	s, err := c.submission(ctx, &t)
	if err != nil {
		return nil, "", err
	}
	one := []fdbmodel.Submission{s}
	done, err := c.admitAll(ctx, one, t.WaitForRoom)
	if err != nil {
		return nil, "", err
	}
	defer done()
	if one[0].Spec.Function == "" {
		one[0].Spec.Function = FunctionPromise
	}
	if err := c.identify(one); err != nil {
		return nil, "", err
	}
	f = &Future{client: c, id: one[0].ID}
	handles, answers := []*Future{f}, []fdbmodel.Submitted(nil)
	c.registry.expect(handles, one)
	made, err := promises.Of(c.cluster).Make(ctx, one[0])
	if err == nil {
		answers = append(answers, made.Submitted)
		f.answered(&made.Submitted)
	}
	c.registry.confirm(handles, answers, c.listener.wake)
	if err != nil {
		return nil, "", err
	}
	f.id = made.ID // another one's, if that has its unique key
	if !made.Token.IsZero() {
		token = made.Token.Text()
	}
	return f, token, nil
}

// PromiseValue is an encoded value of a promise.
type PromiseValue = promises.Value

// Resolve gives a promise its value, once: a PromiseValue as it is, any other value as JSON. It
// reports whether the promise had that very value before, which is success. Whitespace between
// parts of JSON makes no difference. It returns ErrPromiseConflict for another value, or after a
// rejection, ErrPromiseExpired and ErrPromiseCancelled, ErrNoPromise, ErrNotFound, ErrTooLarge for
// more than 64 MiB, and ErrBadSpec for a value that is not JSON. An unknown commit is resolved, and may be
// repeated.
func (c *Client) Resolve(ctx context.Context, id ID, value any) (already bool, err error) {
	v, err := c.promiseValue(value)
	if err != nil {
		return false, err
	}
	return promises.Of(c.cluster).Resolve(ctx, id, v)
}

// Reject fails a promise for good, with a message of up to 8 KiB; a longer one is cut. Who awaits
// it gets a FailedError of the kind error. It reports whether the promise was rejected with that
// message before. Its errors are those of Resolve. Retry has the promise wait again; its token
// still opens it.
func (c *Client) Reject(ctx context.Context, id ID, message string) (already bool, err error) {
	if err := c.usable(); err != nil {
		return false, err
	}
	return promises.Of(c.cluster).Reject(ctx, id, message)
}

// ResolveBy is Resolve by a token. It returns ErrBadPromiseToken for one that opens no promise.
func (c *Client) ResolveBy(ctx context.Context, token string, value any) (already bool, err error) {
	v, err := c.promiseValue(value)
	if err != nil {
		return false, err
	}
	t, err := promises.ParseToken(token)
	if err != nil {
		return false, err
	}
	return promises.Of(c.cluster).ResolveBy(ctx, t, v)
}

// RejectBy is Reject by a token. It returns ErrBadPromiseToken for one that opens no promise.
func (c *Client) RejectBy(ctx context.Context, token, message string) (already bool, err error) {
	if err := c.usable(); err != nil {
		return false, err
	}
	t, err := promises.ParseToken(token)
	if err != nil {
		return false, err
	}
	return promises.Of(c.cluster).RejectBy(ctx, t, message)
}

// NewPromiseToken draws another token of a promise: the former one opens nothing any more. It returns
// ErrNotFound, ErrNoPromise, and ErrTransition for a promise that is over.
func (c *Client) NewPromiseToken(ctx context.Context, id ID) (string, error) {
	if err := c.usable(); err != nil {
		return "", err
	}
	token, err := promises.Of(c.cluster).NewToken(ctx, id)
	if err != nil {
		return "", err
	}
	return token.Text(), nil
}

// Opened is a promise as the holder of its token sees it.
type Opened struct {
	ID      ID
	State   State
	Label   string
	Expires int64 // when it ends by itself if it still waits, in milliseconds of Unix time, 0 for never
}

// OpenPromise returns what the holder of a token may know of its promise. It returns ErrBadPromiseToken.
func (c *Client) OpenPromise(ctx context.Context, token string) (o Opened, err error) {
	if err := c.usable(); err != nil {
		return o, err
	}
	t, err := promises.ParseToken(token)
	if err != nil {
		return o, err
	}
	row, err := promises.Of(c.cluster).Open(ctx, t)
	if err != nil {
		return o, err
	}
	o = Opened{ID: row.ID, State: row.State(), Label: row.Spec.Label}
	if o.State == Blocked {
		o.Expires, _ = row.Limit()
	}
	return o, nil
}

// promiseValue encodes a value of a promise.
func (c *Client) promiseValue(value any) (PromiseValue, error) {
	if err := c.usable(); err != nil {
		return PromiseValue{}, err
	}
	if v, encoded := value.(PromiseValue); encoded {
		return v, nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return PromiseValue{}, fmt.Errorf("%w: the value of a promise: %w", ErrBadSpec, err)
	}
	return PromiseValue{Bytes: encoded, Codec: CodecJSON}, nil
}
