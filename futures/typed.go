package futures

import (
	"context"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel"
)

// Definition is a Go function with types: what its clients and its workers
// share. Values travel as msgpack.
type Definition[In, Out any] struct{ name string }

// Define names a function. It is known to workers as go:NAME.
func Define[In, Out any](name string) Definition[In, Out] { return Definition[In, Out]{name} }

// Name returns the name without "go:".
func (d Definition[In, Out]) Name() string { return d.name }

// Bind gives the name and the function that workers.Worker.Register takes.
func (d Definition[In, Out]) Bind(fn func(context.Context, In) (Out, error)) (
	name string, run func(context.Context, []byte) ([]byte, error),
) {
	return d.name, func(ctx context.Context, args []byte) ([]byte, error) {
		var in In
		if err := msgpack.Unmarshal(args, &in); err != nil {
			return nil, fmt.Errorf("arguments of %s: %w", d.name, err)
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		return msgpack.Marshal(&out)
	}
}

// Task returns a task that runs the function on in.
func (d Definition[In, Out]) Task(in In) (Task, error) {
	args, err := msgpack.Marshal(&in)
	if err != nil {
		return Task{}, fmt.Errorf("arguments of %s: %w", d.name, err)
	}
	return Task{Function: "go:" + d.name, Codec: fdbmodel.CodecMsgpack, Args: args}, nil
}

// Submit submits the function on in. options may change the task.
func (d Definition[In, Out]) Submit(ctx context.Context, c *Client, in In, options ...func(*Task),
) (*Typed[Out], error) {
	t, err := d.Task(in)
	if err != nil {
		return nil, err
	}
	for _, o := range options {
		o(&t)
	}
	f, err := c.Submit(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Typed[Out]{f}, nil
}

// Typed is a future whose result has a type.
type Typed[Out any] struct{ *Future }

// Await returns the result; see Future.Await.
func (t *Typed[Out]) Await(ctx context.Context) (Out, error) {
	var out Out
	r, err := t.Future.Await(ctx)
	if err != nil {
		return out, err
	}
	if err := msgpack.Unmarshal(r.Value, &out); err != nil {
		return out, fmt.Errorf("result of future %s: %w", t.ID(), err)
	}
	return out, nil
}
