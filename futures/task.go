package futures

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/fit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
)

// DefaultMaxRetries is the number of attempts that may follow a failed first
// one, unless a task sets another.
const DefaultMaxRetries = 3

// Task describes a future to submit. Function is required.
type Task struct {
	// Function is go:NAME, wasm:CID[/METHOD] or wasm:ALIAS[/METHOD].
	Function string
	// Args are at most 64 MiB, in SubmitTx 16 KiB. Above 8 MiB they are written in
	// transactions of their own before the future is. Defaults to none.
	Args []byte
	// Codec is the encoding of Args: CodecRaw, CodecMsgpack, CodecJSON,
	// CodecArgv or CodecInputs. Submit returns ErrBadSpec for CodecJSON with invalid JSON.
	// Defaults to raw.
	Codec string
	// After are futures that must be realized before this one runs; it fails with
	// the kind upstream if one of them fails. To those that the arguments refer to
	// (see Arg, and {"$future": "ID"} in JSON) it need not be said: their results
	// take the place of the references when the future runs. With CodecInputs the
	// results of these, one after the other, are the arguments. Each must have been
	// submitted, or come earlier in the same SubmitMany, and is kept until this
	// future is over; together at most 100,000. Defaults to none.
	After []ID
	// Argv and Env are the arguments of a WASM function, after its own name, and
	// its environment. Names must not contain =, and none of the strings a zero
	// byte. Default to none.
	Argv []string
	Env  map[string]string
	// Queue defaults to "default". Label is for people, at most 64
	// bytes of printable characters; it defaults to none.
	Queue, Label string
	// Tags are what lists find the future by: at most 8, each of 1 to 64 of the characters
	// A-Z a-z 0-9 . _ : / @ = + -. Each costs a write, and another one when the future is
	// removed. Defaults to none.
	Tags []string
	// Priority is higher for what should run earlier. Defaults to 0, the
	// lowest.
	Priority uint8
	// Lane is the lane that admits the future: it is ready, and in line until its turn
	// comes. Submit returns ErrNotFound if the kind was not set (see SetLaneKind). It
	// excludes Worker and MustBeNear. Defaults to none.
	Lane Lane
	// Requirements default to a slot and nothing else. A WASM function gets the
	// memory that they state, or else its worker's default, and no more.
	Requirements Requirements
	// GrowMemory is how much more memory the next attempt requires after one that had
	// too little, where Requirements has some RAM. Defaults to no more.
	GrowMemory *layout.Growth
	// MaxRetries is how many attempts may follow a failed first one. Defaults
	// to DefaultMaxRetries.
	MaxRetries *int
	// Backoff is the wait between attempts. Defaults to 1 s, doubled with each
	// up to 5 min.
	Backoff layout.Backoff
	// Timeout bounds one attempt. Defaults to no bound.
	Timeout time.Duration
	// Delay, or else NotBefore, is when the future becomes ready. Default to at
	// once. All times are up to the end of the year 9999: Submit returns ErrBadSpec for later ones.
	Delay     time.Duration
	NotBefore time.Time
	// Expires is how long the future may wait, counted from its submit, or from the end of its
	// delay, also while it waits for inputs or in the line of a lane: no attempt begins later,
	// the first or another one. If it waits at that time, it fails for good with the kind
	// expired; one that runs goes on. Deadline is when it must be over: an attempt that runs
	// then is stopped, and the future fails for good with the kind deadline. A future that a
	// function submits with its context has the deadline of the function's future, unless its
	// own is earlier. Client.Retry lifts both. Default to no limits.
	Expires  time.Duration
	Deadline time.Time
	// Worker is the only worker that may run the future, until an attempt fails or
	// the worker leaves or dies; then any may. It excludes Delay and NotBefore.
	// Submit returns ErrNotFound if it is not registered, and ErrUnfit if it can't
	// run the future. Defaults to any worker.
	Worker WorkerID
	// RequireFit has Submit return ErrUnfit, with what is lacking, if no registered
	// worker could ever run the future, however busy it is; also for a repeated
	// submit. It reads the records of all workers. Defaults to false: the worker may
	// come later.
	RequireFit bool
	// ID, or else Key (at most 1,024 bytes), makes the submit repeatable: the same
	// one with the same content is the same future as long as that is kept (see
	// Config.Retention, and Discard), even after it failed or was cancelled. The
	// other fields are those of the first submit: Future.Differs says which of them a
	// repeated one has otherwise. Default to a new id.
	ID  ID
	Key string
	// Unique has the future be the only one of its kind, by a key or by what it runs,
	// until it ends, until a worker claims it, for a period or for ever. What becomes
	// of the submit while there is another one, Unique.OnConflict says: Submit returns
	// a NotUniqueError by default. The same ID or Key is the same future, and no
	// conflict. Defaults to nil.
	Unique *Unique
	// WaitForRoom has the submit wait while a limit of the cluster is exceeded, until its
	// context ends; with SubmitMany all tasks wait if one does, and are submitted as there
	// is room. Defaults to false: the submit returns a LimitError, which says when to come
	// back.
	WaitForRoom bool
	// AsObject keeps the result in the object store of the worker that runs the
	// future, if that has one, instead of in the cluster's store: large ones go from
	// worker to worker without it. The result is lost with the worker; a reader
	// then has the future run again, and those that it takes results of if theirs
	// were lost, at most 16 times. NoRebuild forbids that: the future fails as lost.
	// Default to false.
	AsObject, NoRebuild bool
	// Near is a future to run near: on the worker that has its result, if that is an
	// object. It counts as one of After, and the others leave the future to that worker
	// for 2 s. By default a future is left to the worker that has most bytes of the
	// objects that it takes, for as long as the others would take to get those, and for
	// 2 s at most.
	//
	// MustBeNear has it run nowhere else: where the result goes, the future goes. If
	// the result is lost it is made again first; if it can't be, the future fails with
	// the kind upstream. If no worker that has it could run the future, that fails as
	// infeasible after Config.InfeasibleAfter. Both are without effect for a result that
	// is stored with the cluster. Default to none and false.
	Near       ID
	MustBeNear bool
	// Trace is the context of the trace that the future is part of, by the names of
	// OpenTelemetry, such as traceparent: what a propagator injects. Its function finds it
	// with workers.InfoFrom, on peers too, and WASM modules don't. It counts towards
	// layout.MaxMeta. Defaults to that of the function that submits with its context,
	// and else to none.
	Trace map[string]string
	// NoNotify is for futures that this client is unlikely to await: it gets no
	// notices of their ends, which saves the store a write each. An Await works
	// and costs a subscription. Defaults to false.
	NoNotify bool

	calls    string // the type of the actor that Method.Task or ActorTask made it for, empty for others
	emptyKey bool   // Key was given an empty key
}

func (c *Client) submission(ctx context.Context, t *Task) (fdbmodel.Submission, error) {
	retries := DefaultMaxRetries
	if t.MaxRetries != nil {
		retries = *t.MaxRetries
	}
	s := fdbmodel.Submission{
		ID: t.ID, Key: t.Key, Args: t.Args, NotBefore: t.NotBefore, Assigned: t.Worker, Unique: t.Unique,
		Spec: layout.Spec{
			Function: t.Function, Codec: t.Codec, Argv: t.Argv, Env: t.Env, Queue: t.Queue, Label: t.Label,
			Tags:     t.Tags,
			Priority: t.Priority, Requirements: t.Requirements, Growth: t.GrowMemory, MaxRetries: retries,
			Backoff: t.Backoff, Timeout: t.Timeout, Near: t.Near, MustBeNear: t.MustBeNear, Lane: t.Lane,
		},
	}
	referred, err := reference.Of(t.Codec, t.Args)
	if err != nil {
		return s, fmt.Errorf("%w: the arguments: %w", layout.ErrBadSpec, err)
	}
	s.Inputs = append(slices.Clip(t.After), referred...)
	if slices.Contains(s.Inputs, ID{}) {
		return s, fmt.Errorf("%w: an input, After or Near is nil or the zero id: submit that future first", layout.ErrBadSpec)
	}
	s.Spec.AsObject, s.Spec.AllowReconstruction = t.AsObject, t.AsObject && !t.NoRebuild
	if t.Delay > 0 {
		s.NotBefore = c.cluster.Now().Add(t.Delay)
	}
	if s.Spec.Trace = t.Trace; t.Trace == nil {
		s.Spec.FollowTrace(ctx)
	}
	if err := c.setLimits(ctx, t, &s); err != nil {
		return s, err
	}
	if !t.NoNotify {
		s.Spec.Session = c.session
	}
	if t.Codec == layout.CodecJSON {
		if err := json.Unmarshal(t.Args, new(json.RawMessage)); err != nil {
			return s, fmt.Errorf("%w: the arguments must be JSON: %w", layout.ErrBadSpec, err)
		}
	}
	if t.emptyKey && t.Key == "" {
		return s, fmt.Errorf("%w: Key is given an empty key, by which nothing can be submitted again: leave it out, or name "+
			"one", layout.ErrBadSpec)
	}
	return s, cmp.Or(t.checkWords(), layout.CheckNewLabel(t.Label))
}

// requireFit returns ErrUnfit for tasks that ask for a worker that could run them,
// and have none.
func (c *Client) requireFit(ctx context.Context, tasks []Task, subs []fdbmodel.Submission) error {
	var specs []layout.Spec
	for i := range tasks {
		if tasks[i].RequireFit {
			specs = append(specs, subs[i].Spec)
		}
	}
	if len(specs) == 0 {
		return nil
	}
	return fit.Require(ctx, c.cluster, specs)
}

// checkWords returns ErrBadSpec for arguments and an environment that no module
// can receive.
func (t *Task) checkWords() error {
	for i, word := range t.Argv {
		if strings.Contains(word, "\x00") {
			return fmt.Errorf("%w: argv[%d] %.64q contains a zero byte", layout.ErrBadSpec, i, word)
		}
	}
	for name, value := range t.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("%w: environment variable %.64q: a name is needed, without =, and no part may have a zero byte",
				layout.ErrBadSpec, name)
		}
	}
	return nil
}
