package futures

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Definition is a Go function with types: what its clients and its workers
// share. Values travel as msgpack, so In and Out may be whatever msgpack
// encodes; fields that one side does not know are left out, which lets the types
// grow. Tasks of layout.CodecJSON, which clients in other languages submit, are
// taken and answered as encoding/json has the types.
type Definition[In, Out any] struct{ name string }

// Define names a function, which workers know as go:NAME. The name has 1 to 128
// of A-Z, a-z, 0-9 and . _ -; another is ErrBadName at Submit and Register.
func Define[In, Out any](name string) Definition[In, Out] { return Definition[In, Out]{name} }

// Name returns the name without "go:".
func (d Definition[In, Out]) Name() string { return d.name }

// Bind gives the name and the function that workers.Worker.Register takes.
// Arguments that are not of the type In fail the future at once: no retry could
// decode them.
func (d Definition[In, Out]) Bind(fn func(context.Context, In) (Out, error)) (
	name string, run func(context.Context, []byte) ([]byte, error),
) {
	return d.name, func(ctx context.Context, args []byte) ([]byte, error) {
		codec, _ := ctx.Value(layout.CodecKey{}).(string)
		var in In
		if err := decode(codec, args, &in); err != nil {
			return nil, badArgumentsError{fmt.Errorf("arguments of %s: %w", d.name, err)}
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		value, err := encode(codec, &out)
		if err != nil {
			return nil, fmt.Errorf("result of %s: %w", d.name, err)
		}
		return value, nil
	}
}

// badArgumentsError is permanent for workers.
type badArgumentsError struct{ error }

// Permanent says that no further attempt can cure the error.
func (badArgumentsError) Permanent() bool { return true }

// Unwrap returns the cause.
func (e badArgumentsError) Unwrap() error { return e.error }

// Task returns a task that runs the function on in, for SubmitMany and
// SubmitTx.
func (d Definition[In, Out]) Task(in In) (Task, error) {
	args, err := msgpack.Marshal(&in)
	if err != nil {
		return Task{}, fmt.Errorf("arguments of %s: %w", d.name, err)
	}
	return Task{Function: "go:" + d.name, Codec: layout.CodecMsgpack, Args: args}, nil
}

// Submit submits the function on in; see Client.Submit. Each of options may
// change the task.
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
	return d.Of(f), nil
}

// Of gives a future of this function its type.
func (d Definition[In, Out]) Of(f *Future) *Typed[Out] { return &Typed[Out]{f} }

// Typed is a future whose result has a type.
type Typed[Out any] struct{ *Future }

// Await returns the decoded result, and an error if it is not of the type; see
// Future.Await.
func (t *Typed[Out]) Await(ctx context.Context) (Out, error) {
	var out Out
	r, err := t.Future.Await(ctx)
	if err != nil {
		return out, err
	}
	if err := decode(r.Codec, r.Value, &out); err != nil {
		return out, fmt.Errorf("result of future %s: %w", t.ID(), err)
	}
	return out, nil
}

func encode(codec string, value any) ([]byte, error) {
	if codec == layout.CodecJSON {
		return json.Marshal(value)
	}
	return msgpack.Marshal(value)
}

// decode reads one value and nothing behind it. The library panics on some
// inputs, such as nil for a struct with a decoder of its own; these are errors
// here, because the bytes are another program's.
func decode(codec string, encoded []byte, into any) (err error) {
	if codec == layout.CodecJSON {
		return json.Unmarshal(encoded, into)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("undecodable msgpack: %v", p)
		}
	}()
	r := bytes.NewReader(encoded)
	if err := msgpack.NewDecoder(r).Decode(into); err != nil {
		return err
	}
	if r.Len() > 0 {
		return fmt.Errorf("%d bytes behind the value", r.Len())
	}
	return nil
}
