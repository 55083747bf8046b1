package futures

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// Reader is a method of a type of actors that only reads: its calls are in no lane, wait for no other, and run
// beside each other.
type Reader[In, Out any] struct {
	Definition[Reading[In], Out]
	in  Definition[In, Out] // for callers that put it in the lane of the actor
	ref func(key string) actors.Ref
	run func(context.Context, string, In) (Out, error)
}

// Reading is the input of a Reader: the key of the actor, and what it is asked.
type Reading[In any] struct {
	Key string
	In  In
}

// DefineReader names a method that reads actors of a type, which workers register as go:TYPE.NAME with Bind. fn
// gets the state as the last call that has ended left it, the zero S for an actor that has none; what it changes of
// that is lost. It sends nothing, and no actor takes part in its attempt: others it reads by Actor.Read. Parts of the
// actor that it gets and lists are of the same version of the store. If that no longer keeps it, after about
// five seconds, and the actor has changed since, the attempt fails, and the next one reads all anew. What its worker
// registers says that it is a reader, so that Client.CallActor calls it as one too. Submitted in the lane of the
// actor, it waits there as other methods do.
func DefineReader[S, In, Out any](a *Actor[S], name string, fn func(ctx context.Context, state S, in In) (Out, error),
	options ...Option,
) Reader[In, Out] {
	name = a.name + "." + name
	return Reader[In, Out]{Definition: Define[Reading[In], Out](name, options...), in: Define[In, Out](name),
		ref: func(key string) actors.Ref { return actors.Ref{Type: a.name, Key: key} },
		run: func(ctx context.Context, key string, in In) (out Out, err error) {
			c, err := FromContext(ctx)
			if err != nil {
				return out, err
			}
			r := &reading{all: actors.Of(c.cluster)}
			if r.state, err = r.all.Read(ctx, actors.Ref{Type: a.name, Key: key}); err != nil {
				return out, err
			}
			var state S
			if _, err = a.decode(&r.state, &state); err != nil {
				return out, err
			}
			return fn(context.WithValue(ctx, readingKey{}, r), state, in)
		}}
}

// reading is what a reader has read. A reader finds it in its context under readingKey.
type (
	reading struct {
		all   *actors.Actors
		state actors.State
	}
	readingKey struct{}
)

// Bind returns the arguments of workers.Worker.Register. The name is that of Name with a ? behind it, which says that
// it is a reader.
func (r Reader[In, Out]) Bind() (name string, run func(context.Context, []byte) ([]byte, error)) {
	_, inLane := r.in.Bind(func(ctx context.Context, in In) (Out, error) { return r.run(ctx, ActorKey(ctx), in) })
	name, free := r.Definition.Bind(func(ctx context.Context, q Reading[In]) (out Out, err error) {
		if err := r.ref(q.Key).Check(); err != nil {
			return out, permanentError{err}
		}
		return r.run(ctx, q.Key, q.In)
	})
	return name + taskcontext.ReaderMark, func(ctx context.Context, args []byte) ([]byte, error) {
		if lane, _ := ctx.Value(taskcontext.LaneKey{}).(layout.Lane); lane == r.ref(lane.Key).Lane() {
			return inLane(ctx, args)
		}
		return free(ctx, args)
	}
}

// Task returns a task that reads an actor.
func (r Reader[In, Out]) Task(key string, in In, options ...Option) (Task, error) {
	if err := r.ref(key).Check(); err != nil {
		return Task{}, err
	}
	return r.Definition.Task(Reading[In]{key, in}, options...)
}

// Submit reads an actor, and returns the future of what comes of it; see Client.Submit.
func (r Reader[In, Out]) Submit(ctx context.Context, c *Client, key string, in In, options ...Option,
) (*Typed[Out], error) {
	if err := r.ref(key).Check(); err != nil {
		return nil, err
	}
	return r.Definition.Submit(ctx, c, Reading[In]{key, in}, options...)
}

// Call reads an actor and awaits what comes of it; see Client.Submit and Typed.Await.
func (r Reader[In, Out]) Call(ctx context.Context, c *Client, key string, in In, options ...Option) (Out, error) {
	f, err := r.Submit(ctx, c, key, in, options...)
	if err != nil {
		var none Out
		return none, err
	}
	return f.Await(ctx)
}
