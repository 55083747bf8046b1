// Package grouping runs tasks with the same target together, in one call of a batch API:
// writes to one table, requests to one host, mails to one customer. Tasks come one by
// one, from any number of processes; whoever is to run those of a target takes as many
// as wait, up to a bound.
//
// The idea is the group-batching algorithm of Sun and Shan (Group-batching Algorithm for
// High-throughput Network Requests), where workflows elect a leader for each target by a
// lock that expires. Here a target is a lane (package futures, Lane), and the parts of
// the algorithm are these:
//
//	there                                     here
//	Task: id, status, target                  a future in a lane whose key is the target
//	created                                   in line
//	batched, in progress                      claimed: a worker took it out of the line
//	succeeded, failed                         realized, failed
//	BatchLock: target, holder, acquired at    the lane and its open bundle; the transaction that
//	                                          admits a bundle is the compare and set
//	a lock that expires                       a bundle of a dead worker is reaped, as any claim is
//	Batch: id, target, members                the bundle: a future, whose result names its members
//	leader                                    the worker that has claimed the bundle
//	losers that wait and try again            none: who gets in line does not compete
//	wait for more, such as 1 s                Linger; while a bundle runs, others gather anyway
//	asynchronous retries                      a member that failed gets in line again when it is due
//	retries in place                          InPlace
//	call back of each initiator               each task has an end of its own, which its future tells
//
// Each task ends exactly once; it runs at least once, as every future does. Tasks of one
// target are taken by priority, and then in the order in which they were submitted. A
// bundle never has tasks of two targets, never more than Most tasks, and more than Bytes
// of arguments only if it has one. A task that was there when a worker died runs alone
// afterwards, so that the one that kills workers is found.
package grouping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers"
)

// Settings of a handler. The zero value is right for most.
type Settings struct {
	// Most is the most tasks of a call, at most 100, the default; Bytes the most of their
	// arguments, at most 4 MiB, by default 1 MB.
	Most  int
	Bytes int64
	// Linger is how long a call waits for more tasks at most, up to a minute, if it has more
	// than one: it begins once it has Most tasks, or Bytes. A task that is alone waits for
	// none, so that an idle target has no wait, and a busy one as much as it takes to fill
	// the call. The call has a slot of its worker meanwhile. Defaults to 0: what comes while
	// a call runs is in the next.
	Linger time.Duration
	// Width is how many calls of one target run at a time, by default 1, Total how many
	// over all targets, which take turns; 0 for no bound.
	Width, Total int
	// Rate is how many calls of one target begin in each Every; 0 for no bound.
	Rate  int
	Every time.Duration
	// InPlace is how often tasks that failed are tried again within the same call, each
	// time after InPlaceWait, before that counts as an attempt; not those whose error says
	// that they are not to be tried again, or later than that. Defaults to 0, and less is 0.
	InPlace     int
	InPlaceWait time.Duration
	// Target is where the input of a task has its target, as an RFC 6901 pointer into the
	// JSON of In, such as /table: for clients without the Go code. Defaults to none, and
	// they have to name the target.
	Target string
	// Clock defaults to the machine's.
	Clock clock.Clock
}

// Handler is one batch API. Its tasks have the type In, and their results Out.
type Handler[In, Out any] struct {
	def      futures.Definition[In, Out]
	target   func(In) string
	settings Settings
}

// Define names a handler, which workers register as go:NAME and which is the kind of its
// lanes as well, and says of which target a task is: UTF-8 of 1 to 256 bytes, the same
// for those that may share a call. Clients and workers share it. The options apply to
// all tasks, such as the retries of those that fail.
func Define[In, Out any](name string, target func(In) string, s Settings, options ...futures.Option) Handler[In, Out] {
	if s.Clock == nil {
		s.Clock = clock.Real{}
	}
	return Handler[In, Out]{futures.Define[In, Out](name, options...).InLane(name, target), target, s}
}

// Setup makes the settings of the handler those of the cluster. Each process may call it;
// a task of a handler that was never set up is refused. It returns futures.ErrBadName and
// futures.ErrBadConfig, and futures.ErrInUse if tasks wait or run and the settings change
// from or to a total width.
func (h Handler[In, Out]) Setup(ctx context.Context, c *futures.Client) error {
	s := h.settings
	return c.SetLaneKind(ctx, h.def.Name(), futures.LaneSettings{
		Width: s.Width, Total: s.Total, Rate: s.Rate, Every: s.Every,
		Bundle: "go:" + h.def.Name(), Most: s.Most, Bytes: s.Bytes, Linger: s.Linger, Target: s.Target,
	})
}

// Submit submits a task. Its future ends with the task's own result, or its own error.
func (h Handler[In, Out]) Submit(ctx context.Context, c *futures.Client, in In, options ...futures.Option,
) (*futures.Typed[Out], error) {
	return h.def.Submit(ctx, c, in, options...)
}

// SubmitAll submits tasks, of any targets, in as few transactions as possible; see
// futures.Definition.Map.
func (h Handler[In, Out]) SubmitAll(ctx context.Context, c *futures.Client, in []In, options ...futures.Option,
) ([]*futures.Typed[Out], error) {
	return h.def.Map(ctx, c, in, options...)
}

// Status is what has become of a task.
type Status = futures.TaskStatus

// The states of a task.
const (
	Created    = futures.TaskCreated
	InProgress = futures.TaskInProgress
	Succeeded  = futures.TaskSucceeded
	Failed     = futures.TaskFailed
)

// StatusOf returns what has become of the task that a future is. It returns the errors of
// futures.Client.Get.
func StatusOf(ctx context.Context, c *futures.Client, id futures.ID) (Status, error) {
	v, err := c.Get(ctx, id)
	if err != nil {
		return "", err
	}
	return futures.TaskStatusOf(v.State), nil
}

// Task is a task that a call is to do.
type Task[In any] struct {
	ID futures.ID
	In In
	// Attempt counts from 1.
	Attempt int

	ctx context.Context
}

// Context returns the context of the task alone. It ends with that of the call, and before
// it when the task is cancelled or its deadline has passed; see workers.Member. When all
// tasks of a call are cancelled, the context of the call ends.
func (t *Task[In]) Context() context.Context {
	if t.ctx == nil {
		return context.Background()
	}
	return t.ctx
}

// Outcome is what became of a task. An error is retried as the submit says; with
// workers.Permanent it is not, and with workers.RetryAfter that is when.
type Outcome[Out any] struct {
	Out Out
	Err error
}

// Call does tasks of one target. It returns one outcome for each, in their order; an
// error of its own is that of all tasks.
type Call[In, Out any] func(ctx context.Context, target string, tasks []Task[In]) ([]Outcome[Out], error)

// Bind returns the arguments of workers.Worker.RegisterBundle. A worker may have any
// number of handlers. A task that was submitted for another target than its input has,
// by an option or by a client without the Go code, fails without a retry.
func (h Handler[In, Out]) Bind(call Call[In, Out]) (name string, fn workers.BundleFunction) {
	return h.def.Name(), func(ctx context.Context, target string, members []workers.Member) ([]workers.MemberEnd, error) {
		ends := make([]workers.MemberEnd, len(members))
		var tasks []Task[In]
		var at []int
		for i, m := range members {
			var in In
			err := alone(func() (err error) {
				if in, err = h.def.Decode(m.Codec, m.Args); err == nil {
					target, err = h.sameTarget(target, in)
				}
				return err
			})
			if err != nil {
				ends[i].Err = err
				continue
			}
			tasks, at = append(tasks, Task[In]{futures.ID(m.ID), in, m.Attempt, m.Context()}), append(at, i)
		}
		for again := 0; len(tasks) > 0; again++ {
			outcomes, err := do(ctx, call, target, tasks)
			var left []Task[In]
			var leftAt []int
			for i := range tasks {
				out := Outcome[Out]{Err: err}
				if err == nil {
					out = outcomes[i]
				}
				end := &ends[at[i]]
				if *end = (workers.MemberEnd{Err: out.Err}); out.Err == nil {
					end.Err = alone(func() (err error) {
						end.Value, err = h.def.Encode(members[at[i]].Codec, out.Out)
						return err
					})
				} else if h.retriedInPlace(out.Err) && tasks[i].Context().Err() == nil {
					left, leftAt = append(left, tasks[i]), append(leftAt, at[i])
				}
			}
			if tasks, at = left, leftAt; again >= h.settings.InPlace || len(left) == 0 || h.wait(ctx) != nil {
				break
			}
			tasks, at = wanted(tasks, at)
		}
		return ends, nil
	}
}

// alone turns a panic over one task into an error of that task, which would panic again: the others of its call go on.
func alone(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = workers.Permanent(fmt.Errorf("a panic over the input or the result of this task: %v", p))
		}
	}()
	return fn()
}

// wanted returns the tasks that were not cancelled while they waited, with their places.
func wanted[In any](tasks []Task[In], at []int) (left []Task[In], leftAt []int) {
	for i := range tasks {
		if tasks[i].Context().Err() == nil {
			left, leftAt = append(left, tasks[i]), append(leftAt, at[i])
		}
	}
	return left, leftAt
}

// sameTarget returns the target of a call, which is that of its first task if it has none,
// and an error unless it is that of the input as well.
func (h Handler[In, Out]) sameTarget(target string, in In) (string, error) {
	own := h.target(in)
	if target != "" && own != target {
		return target, workers.Permanent(fmt.Errorf("the target of the task is %.80q, but it was submitted for %.80q", own,
			target))
	}
	return own, nil
}

// wait waits before tasks are tried again in place.
func (h Handler[In, Out]) wait(ctx context.Context) error {
	return clock.Sleep(ctx, h.settings.Clock, h.settings.InPlaceWait)
}

func do[In, Out any](ctx context.Context, call Call[In, Out], target string, tasks []Task[In]) ([]Outcome[Out], error) {
	outcomes, err := call(ctx, target, tasks)
	if err == nil && len(outcomes) != len(tasks) {
		err = fmt.Errorf("the call returned %d outcomes for %d tasks: return one for each", len(outcomes), len(tasks))
	}
	return outcomes, err
}

// retriedInPlace reports whether a task with an error may be tried again after InPlaceWait.
func (h Handler[In, Out]) retriedInPlace(err error) bool {
	var permanent interface{ Permanent() bool }
	var later interface{ RetryAfter() time.Duration }
	return !(errors.As(err, &permanent) && permanent.Permanent()) &&
		!(errors.As(err, &later) && later.RetryAfter() > h.settings.InPlaceWait)
}
