package futures

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// Definition is a typed Go function that its clients and its workers share.
// Values are encoded as msgpack, so In and Out may be any types that msgpack
// encodes; each side ignores fields that it does not know, so that the types
// can grow. Tasks of CodecJSON, which clients in other languages submit, are
// decoded and answered by encoding/json, and of tasks and results of CodecRaw a
// []byte or string is the bytes as they are.
type Definition[In, Out any] struct {
	name    string
	options []Option
	lane    func(In) Lane // nil for none
}

// Define names a function, which workers register as go:NAME. The name has 1 to
// 128 characters of A-Z, a-z, 0-9 and . _ -; for any other, Submit and Register
// return ErrBadName. The options apply to all futures of the function, unless
// their submit overrides them.
func Define[In, Out any](name string, options ...Option) Definition[In, Out] {
	return Definition[In, Out]{name: name, options: options}
}

// InLane returns the definition with a lane of a kind for each input, by the key that
// follows from it; see Task.Lane. An option InLane takes precedence. Of an input that is
// the result of another future the key isn't known: Then, ThenEach and Reduce return
// ErrBadSpec without that option.
func (d Definition[In, Out]) InLane(kind string, key func(In) string) Definition[In, Out] {
	d.lane = func(in In) Lane { return Lane{Kind: kind, Key: key(in)} }
	return d
}

// Name returns the name without "go:".
func (d Definition[In, Out]) Name() string { return d.name }

// Bind returns the arguments of workers.Worker.Register. Arguments that do not
// decode as In fail the future at once, whatever retries are left, with an error
// that names the function, the codec and In: no retry could decode them.
func (d Definition[In, Out]) Bind(fn func(context.Context, In) (Out, error)) (
	name string, run func(context.Context, []byte) ([]byte, error),
) {
	return d.name, func(ctx context.Context, args []byte) ([]byte, error) {
		codec, _ := ctx.Value(taskcontext.CodecKey{}).(string)
		in, err := d.Decode(codec, args)
		if err != nil {
			return nil, err
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		return d.Encode(codec, out)
	}
}

// Decode returns the input that arguments of a codec are, as those of a workers.Member.
// What does not decode is an error that fails a future at once.
func (d Definition[In, Out]) Decode(codec string, args []byte) (in In, err error) {
	if err := decode(codec, args, &in); err != nil {
		return in, permanentError{fmt.Errorf("arguments of go:%s: %d bytes of %s do not decode as %v: %w", d.name,
			len(args), wording(codec), reflect.TypeFor[In](), err)}
	}
	return in, nil
}

// Encode returns a result in the codec of its future's arguments. One that does not encode, such as a NaN as JSON, is
// an error that fails a future at once: the function has done its work, and would do it again.
func (d Definition[In, Out]) Encode(codec string, out Out) ([]byte, error) {
	value, err := encode(codec, &out)
	if err != nil {
		return nil, permanentError{fmt.Errorf("result of go:%s: it does not encode as %s: %w", d.name, wording(codec), err)}
	}
	return value, nil
}

// Task returns a task that runs the function on in, for SubmitMany and
// SubmitTx.
func (d Definition[In, Out]) Task(in In, options ...Option) (Task, error) {
	args, err := encodeMsgpack(&in)
	if err != nil {
		return Task{}, fmt.Errorf("arguments of %s: %w", d.name, err)
	}
	var lane Lane
	if d.lane != nil {
		lane = d.lane(in)
	}
	return d.on(args, lane, options), nil
}

// onResults returns a task that runs the function on arguments that refer to results.
func (d Definition[In, Out]) onResults(args []byte, options []Option) (Task, error) {
	t := d.on(args, Lane{}, options)
	if d.lane != nil && t.Lane.IsZero() {
		return t, fmt.Errorf("%w: the lane of go:%s follows from its input, which is yet to come: name it with InLane",
			layout.ErrBadSpec, d.name)
	}
	return t, nil
}

// on returns a task that runs the function on encoded arguments.
func (d Definition[In, Out]) on(args []byte, lane Lane, options []Option) Task {
	t := Task{Function: "go:" + d.name, Codec: CodecMsgpack, Args: args, Lane: lane}
	for _, o := range d.options {
		o(&t)
	}
	for _, o := range options {
		o(&t)
	}
	return t
}

// Submit submits the function on in; see Client.Submit.
func (d Definition[In, Out]) Submit(ctx context.Context, c *Client, in In, options ...Option) (*Typed[Out], error) {
	t, err := d.Task(in, options...)
	if err != nil {
		return nil, err
	}
	f, err := c.Submit(ctx, t)
	if err != nil {
		return nil, err
	}
	return d.Of(f), nil
}

// Call submits the function on in and awaits the result; see Client.Submit and
// Typed.Await. If it ends with ctx, the future goes on; submitting it with the
// same Key finds it again.
func (d Definition[In, Out]) Call(ctx context.Context, c *Client, in In, options ...Option) (Out, error) {
	f, err := d.Submit(ctx, c, in, options...)
	if err != nil {
		var none Out
		return none, err
	}
	return f.Await(ctx)
}

// Map submits the function on each of inputs, with the same options; see
// Client.SubmitMany. With an error it returns the futures that certainly exist:
// those of the first inputs.
func (d Definition[In, Out]) Map(ctx context.Context, c *Client, inputs []In, options ...Option,
) ([]*Typed[Out], error) {
	tasks := make([]Task, len(inputs))
	for i := range inputs {
		var err error
		if tasks[i], err = d.Task(inputs[i], options...); err != nil {
			return nil, fmt.Errorf("input %d of %d: %w", i+1, len(inputs), err)
		}
	}
	fs, err := c.SubmitMany(ctx, tasks)
	typed := make([]*Typed[Out], len(fs))
	for i := range fs {
		typed[i] = d.Of(fs[i])
	}
	return typed, err
}

// Of gives a future of this function its type.
func (d Definition[In, Out]) Of(f *Future) *Typed[Out] { return &Typed[Out]{f} }

// Typed is a future whose result has a type.
type Typed[Out any] struct{ *Future }

// ID returns the future's id, and the zero id of nil.
func (t *Typed[Out]) ID() ID {
	if t == nil {
		return ID{}
	}
	return t.Future.ID()
}

// Await returns the decoded result, and an error if it does not decode as Out;
// see Future.Await.
func (t *Typed[Out]) Await(ctx context.Context) (Out, error) {
	r, err := t.Future.Await(ctx)
	return t.decode(Settled{Result: r, Err: err})
}

func (t *Typed[Out]) decode(s Settled) (out Out, err error) {
	if s.Err != nil {
		return out, s.Err
	}
	if err := decode(s.Result.Codec, s.Result.Value, &out); err != nil {
		return out, fmt.Errorf("result of future %s: %w", t.ID(), err)
	}
	return out, nil
}

// AwaitAll returns the results of all futures in their order; see
// Client.AwaitAll. A future that failed, or whose result does not decode, has
// the zero value, and its error is joined to the returned one.
func AwaitAll[Out any](ctx context.Context, fs []*Typed[Out]) ([]Out, error) {
	outs := make([]Out, len(fs))
	if len(fs) == 0 {
		return outs, nil
	}
	plain, err := untyped(fs)
	if err != nil {
		return nil, err
	}
	results, err := plain[0].client.AwaitAll(ctx, plain)
	errs := failuresOf(err)
	for i, f := range fs {
		settled := f.client.registry.settledOf(f.Future)
		if settled == nil || settled.Err != nil {
			continue
		}
		if outs[i], err = f.decode(Settled{Result: results[i]}); err != nil {
			errs = append(errs, err)
		}
	}
	return outs, joinFailures(errs)
}

// AwaitAny returns the first of the futures that is over, and nil if fs is
// empty; see Client.AwaitAny.
func AwaitAny[Out any](ctx context.Context, fs []*Typed[Out]) (*Typed[Out], error) {
	if len(fs) == 0 {
		return nil, nil
	}
	plain, err := untyped(fs)
	if err != nil {
		return nil, err
	}
	f, err := plain[0].client.AwaitAny(ctx, plain)
	if err != nil {
		return nil, err
	}
	return fs[slices.Index(plain, f)], nil
}

// untyped returns futures without their type, and ErrNilFuture if one is nil.
func untyped[Out any](fs []*Typed[Out]) ([]*Future, error) {
	plain := make([]*Future, len(fs))
	for i, f := range fs {
		if f != nil {
			plain[i] = f.Future
		}
	}
	return plain, checkFutures(plain)
}

// wording says how bytes of a codec are read.
func wording(codec string) string {
	switch codec {
	case CodecJSON, CodecMsgpack:
		return codec
	default:
		return fmt.Sprintf("the codec %q, which are read as %s,", codec, CodecMsgpack)
	}
}

// encode encodes a value, which it is given a pointer to.
func encode(codec string, value any) ([]byte, error) {
	switch codec {
	case CodecJSON:
		return json.Marshal(value)
	case CodecRaw:
		switch raw := value.(type) {
		case *[]byte:
			return *raw, nil
		case *string:
			return []byte(*raw), nil
		}
	}
	return encodeMsgpack(value)
}

// decode reads exactly one value. The msgpack library panics on some inputs, such
// as nil for a struct with a decoder of its own, and so may the decoders of an
// application; these become errors, because the bytes come from another program.
func decode(codec string, encoded []byte, into any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the decoder panicked: %v", p)
		}
	}()
	switch codec {
	case CodecJSON:
		return json.Unmarshal(encoded, into)
	case CodecRaw:
		switch raw := into.(type) {
		case *[]byte:
			*raw = encoded
			return nil
		case *string:
			*raw = string(encoded)
			return nil
		}
	}
	r := bytes.NewReader(encoded)
	if err := msgpack.NewDecoder(r).Decode(into); err != nil {
		return err
	}
	if r.Len() > 0 {
		return fmt.Errorf("%d bytes after the value", r.Len())
	}
	return nil
}
