package futures

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// Method is a method of a type of actors: a function that is called with a key.
type Method[In, Out any] struct {
	Definition[In, Out]
	actor string
	run   func(context.Context, string, In) (Out, error)
}

// DefineMethod names a method of a type of actors, which workers register as go:TYPE.NAME with Bind. fn
// gets the state of the actor that is called, the zero S for one that has none, and changes it in
// place; with an error of fn it stays as it was. The options apply to all calls. Of a call that fails
// and is tried again, the next ones wait for it, unless its kind of lanes, actor.TYPE, lets it step
// aside.
func DefineMethod[S, In, Out any](a *Actor[S], name string, fn func(ctx context.Context, state *S, in In) (Out, error),
	options ...Option,
) Method[In, Out] {
	return Method[In, Out]{Definition: Define[In, Out](a.name+"."+name, options...), actor: a.name,
		run: func(ctx context.Context, key string, in In) (out Out, err error) {
			state, err := a.State(ctx, key)
			if err != nil {
				return out, err
			}
			return fn(ctx, state, in)
		}}
}

// Bind returns the arguments of workers.Worker.Register.
func (m Method[In, Out]) Bind() (name string, run func(context.Context, []byte) ([]byte, error)) {
	name, call := m.Definition.Bind(func(ctx context.Context, in In) (Out, error) { return m.run(ctx, ActorKey(ctx), in) })
	return name, func(ctx context.Context, args []byte) ([]byte, error) {
		lane, _ := ctx.Value(taskcontext.LaneKey{}).(layout.Lane)
		if lane.Kind != actors.LaneKind(m.actor) { // before its arguments, which may be those of a reader
			// A worker of a newer version may have made a reader of it.
			return nil, fmt.Errorf("%w: go:%s is a method of actors here, and no reader of them: submit it in the lane "+
				"%s/KEY, or by Method.Call; if it has become a reader, run newer code", layout.ErrBadSpec, m.Name(),
				actors.LaneKind(m.actor))
		}
		return call(ctx, args)
	}
}

// ActorKey returns the key of the actor whose method or reader ctx was given to, empty for other functions.
func ActorKey(ctx context.Context) string {
	if r, is := ctx.Value(readingKey{}).(*reading); is {
		return r.state.Key
	}
	lane, _ := ctx.Value(taskcontext.LaneKey{}).(layout.Lane)
	if !actors.IsLaneKind(lane.Kind) {
		return ""
	}
	return lane.Key
}

// Task returns a task that calls the method of an actor, for Submit, SubmitMany, SubmitTx, Send and schedules. Its
// lane is that of the actor: it returns ErrBadSpec if an option names another one.
func (m Method[In, Out]) Task(key string, in In, options ...Option) (Task, error) {
	t, err := m.Definition.Task(in, options...)
	if err != nil {
		return t, err
	}
	ref := actors.Ref{Type: m.actor, Key: key}
	if err := ref.Check(); err != nil {
		return t, err
	}
	if !t.Lane.IsZero() && t.Lane != ref.Lane() {
		return t, fmt.Errorf("%w: a call of actor %v in lane %v: calls of an actor are in its own lane, so leave InLane out",
			layout.ErrBadSpec, ref, t.Lane)
	}
	t.Lane, t.calls = ref.Lane(), m.actor
	return t, nil
}

// Submit calls the method of an actor, and returns the future of its result; see Client.Submit.
func (m Method[In, Out]) Submit(ctx context.Context, c *Client, key string, in In, options ...Option,
) (*Typed[Out], error) {
	t, err := m.Task(key, in, options...)
	if err != nil {
		return nil, err
	}
	f, err := c.Submit(ctx, t)
	if err != nil {
		return nil, err
	}
	return m.Of(f), nil
}

// Call calls the method of an actor and awaits the result; see Client.Submit and Typed.Await. If it
// ends with ctx, the call goes on.
func (m Method[In, Out]) Call(ctx context.Context, c *Client, key string, in In, options ...Option) (Out, error) {
	f, err := m.Submit(ctx, c, key, in, options...)
	if err != nil {
		var none Out
		return none, err
	}
	return f.Await(ctx)
}

// Send has the method of an actor called once the function that ctx was given to has ended with a
// result: both are written in one transaction, so each send is made exactly once. An actor may send
// to itself. See Send.
func (m Method[In, Out]) Send(ctx context.Context, key string, in In, options ...Option) (ID, error) {
	t, err := m.Task(key, in, options...)
	if err != nil {
		return ID{}, err
	}
	return Send(ctx, t)
}

// Send has a task submitted with the result of the function that ctx was given to, in the
// transaction that ends its attempt: if that fails, is lost or runs again, nothing is submitted. It
// returns the id of the future, which does not exist before. At most MaxTurnSubmits tasks of up to 1 MB
// together are submitted so, each with up to 16 KiB of arguments.
//
// It returns ErrOutsideFunction for another context, a permanent error in a step, and the errors of
// Client.Submit that need no look at other futures. The others fail the attempt: an unknown lane or
// module, a name that another future has, inputs that do not exist. A task that takes the result which it is sent with
// is a permanent ErrBadSpec. The deadline of the function's own future is not passed on: what is sent belongs to a
// result that is there. The task is sent as it is now, whatever becomes of its memory.
//
// Whether another future has the key of a unique task is decided when the attempt ends. So the id may be that of a
// future that is never made: with ConflictReturn if another one has the key, with ConflictReplace if the attempt sends
// another one of that key later, which takes its place.
func Send(ctx context.Context, t Task) (ID, error) {
	turn, err := turnOf(ctx)
	if err != nil {
		return ID{}, err
	}
	c, err := FromContext(ctx)
	if err != nil {
		return ID{}, err
	}
	if t.Key != "" || !t.ID.IsZero() {
		return ID{}, fmt.Errorf("%w: a task that is sent with a result has a new id: leave out its id and key",
			layout.ErrBadSpec)
	}
	if t.RequireFit || t.WaitForRoom {
		return ID{}, fmt.Errorf("%w: a task that is sent with a result waits for nothing: leave out RequireFit and "+
			"WaitForRoom", layout.ErrBadSpec)
	}
	t.NoNotify = true
	if err := c.ensureCalls(ctx, t); err != nil {
		return ID{}, err
	}
	s, err := c.submission(context.WithValue(ctx, taskcontext.DeadlineKey{}, nil), &t)
	if err != nil {
		return ID{}, err
	}
	detach(&s) // the attempt ends later, and the caller may use its memory again
	subs, err := c.cluster.Prepare(ctx, []fdbmodel.Submission{s})
	if err != nil {
		return ID{}, err
	}
	return subs[0].ID, turn.Submit(subs)
}

// Remind is Send for a call that is due after d, and the only one of its name that waits: a later one
// of the same actor and name takes its place. So a reminder that sets itself again runs once after an
// outage, however long that was. The name has 1 to 256 bytes.
func (m Method[In, Out]) Remind(ctx context.Context, key, name string, d time.Duration, in In, options ...Option,
) (ID, error) {
	if name == "" || len(name) > maxReminder {
		return ID{}, fmt.Errorf("%w: reminder %.80q: use a name of 1 to %d bytes", layout.ErrBadName, name, maxReminder)
	}
	unique := Unique{Key: reminderKey(name, m.actor, key), Until: UntilClaim, OnConflict: ConflictReplace}
	return m.Send(ctx, key, in, append(slices.Clip(options), Delay(d), WithUnique(unique))...)
}

// reminderKey is the unique key of the reminders of a name. That of a name which is too long in quotes has its hash.
func reminderKey(name, actor, key string) string {
	unique := fmt.Sprintf("reminder %q of actor %s/%s", name, actor, key)
	if len(unique) > layout.MaxUniqueKey {
		unique = fmt.Sprintf("reminder %x of actor %s/%s", sha256.Sum256([]byte(name)), actor, key)
	}
	return unique
}

// maxReminder is the maximum length of the name of a reminder, in bytes.
const maxReminder = 256
