package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Remote runs the functions of a worker elsewhere, such as on a peer that has no access
// to the store. The worker claims for it, and ends the futures as it says.
type Remote interface {
	// Functions are the full names of the functions that it runs, such as go:resize, and
	// layout.AnyModule for every module. It is asked once for each membership.
	Functions() []string

	// RunRemote runs one attempt and returns once it has ended, or soon after ctx has:
	// its cause says why, as for a Function. It keeps the timeout of the call itself; the
	// worker ends the attempt RemotePatience later at the latest. A failure of the
	// function is in the outcome. An error says that it was not run, or that its end is
	// unknown: the future is rejected, and counts no attempt.
	RunRemote(ctx context.Context, call RemoteCall) (RemoteOutcome, error)

	// Acknowledge is called with attempts after the store has recorded their ends, or has
	// refused them since the claim was lost, and with those whose outcome is discarded since
	// the claim had ended when RunRemote returned: the remote may forget them. It may be
	// called twice with one. It must not block.
	Acknowledge(ids []layout.ID)
}

// Peer is what a Remote may be too.
type Peer interface {
	// PeerID is the id of the peer that runs the functions: the worker has it as its label
	// layout.LabelPeer.
	PeerID() string
}

// Serial is what a Remote may be too.
type Serial interface {
	// Serial reports whether the remote runs all that it is given one after the other. Then
	// it keeps the limit of Spec.Parallel by itself, and is given short futures of one owner
	// before its turn comes to them. It is asked once.
	Serial() bool
}

// ErrNotBegun is returned by RunRemote, wrapped or not, for an attempt that was not begun
// there and that others may be free to run: the future goes back at once. One that is
// assigned to the worker goes back to the client that assigned it.
var ErrNotBegun = errors.New("workers: the attempt was not begun")

// Limiter is what a Remote may be too.
type Limiter interface {
	// KeepsLimits reports whether the remote runs at most RemoteCall.Parallel of one owner at
	// a time, however many it is given. Then it is given short futures of one owner before
	// their turn comes. It is asked once.
	KeepsLimits() bool
}

// Deferrer is what a Remote may be too.
type Deferrer interface {
	// Defers reports whether what others have rejected of a function is left to better
	// workers, for as long as those pass it over. It must not block.
	Defers(function string) bool
}

// Preparer is what a Remote may be too.
type Preparer interface {
	// Preparing reports whether the remote still gets to where a function is to run what it
	// needs, such as its module over a slow link. It is asked when the time of an attempt is
	// over: then that has RemotePatience more, 20 times at most.
	Preparing(function string) bool
}

// RemotePatience is how much longer than its timeout an attempt may take that is run
// elsewhere: to get there, to wait its turn, and to come back. The deadline of the future
// itself ends the attempt as ever.
const RemotePatience = 2 * time.Minute

// RemoteCall is an attempt that is run elsewhere.
type RemoteCall struct {
	Info
	// Args are the arguments of a Go function, in the encoding of Codec, or the standard
	// input of a module.
	Args []byte
	// Argv and Env are those of a module.
	Argv []string
	Env  map[string]string
	// Timeout bounds the attempt, 0 for no bound: the future's own, unless a policy or the
	// future's deadline allows less. Memory bounds that of a module in bytes, 0 for
	// what the other side allows.
	Timeout  time.Duration
	Memory   int64
	Priority int
	// Parallel is how many futures of the Owner may run at a time on one worker, 0 for any
	// number.
	Owner    string
	Parallel int
}

// RemoteOutcome is how an attempt has ended elsewhere.
type RemoteOutcome struct {
	// Value is the result of a Go function, or the standard output of a module.
	Value []byte
	// Large, if it is not nil, is the value instead of Value, and comes piece by piece. The
	// worker fetches that of an attempt that has not failed. Meanwhile the timeout does not
	// run, but the deadline of the future does.
	Large RemoteValue
	// Stderr is the end of the standard error, and Truncated is set if it was longer.
	Stderr    []byte
	Truncated bool
	ExitCode  int
	// Kind is why the attempt failed, empty if it did not, with a Message. Kinds that
	// only a worker can know, such as a lost claim, count as layout.KindError. Permanent
	// and RetryIn are those of the function.
	Kind      layout.FailureKind
	Message   string
	Permanent bool
	RetryIn   *time.Duration
	// RunTime is how long it ran, as far as known; 0 leaves it to the worker to guess. From
	// it follows how many futures are sent ahead of the worker's slots.
	RunTime time.Duration
	// Usage is what it took there, as far as known.
	Usage layout.Usage
	// Snooze, if it is not nil, ends the claim as the function's Snooze.
	Snooze *time.Duration
}

// executeRemote has a job run elsewhere.
func (w *Worker) executeRemote(j *job, args []byte) fdbmodel.Completion {
	f := &j.future
	if j.streamed != nil {
		var err error
		if args, err = w.joined(j, j.streamed, layout.MaxPut); err != nil {
			return w.withoutInputs(j, err)
		}
	}
	jobCtx := jobContext{j.ctx, j}
	info, _ := InfoFrom(jobCtx)
	out, err := callRemote(jobCtx, w.options.Remote, RemoteCall{
		Info: info, Args: args, Argv: f.Spec.Argv, Env: f.Spec.Env, Timeout: j.timeAllowed(w.cluster.Now()),
		Memory: w.policy.Memory(f.Requirements().RAM), Priority: int(f.Spec.Priority),
		Owner: f.Spec.Owner, Parallel: f.Spec.Parallel,
	})
	failed := err != nil || out.Kind != ""
	j.ranElsewhere.Store(int64(out.RunTime))
	switch {
	case failed && context.Cause(j.ctx) != nil:
		return fdbmodel.Completion{Future: f, Relinquish: true}
	case errors.Is(err, ErrNotBegun) && f.Attempts.Assigned == "":
		return fdbmodel.Completion{Future: f, Relinquish: true}
	case err != nil:
		w.options.Logger.Debug("a future could not be run elsewhere; rejecting it", "future", f.ID, "error", err)
		return fdbmodel.Completion{Future: f, Reject: true}
	case out.Snooze != nil:
		return fdbmodel.Completion{Future: f, Snooze: out.Snooze}
	case out.Kind != "":
		c := w.moduleFailure(j, &ModuleOutcome{Stdout: out.Value, Stderr: out.Stderr, ExitCode: out.ExitCode,
			Truncated: out.Truncated, Kind: ownKind(out.Kind), Message: out.Message, Usage: out.Usage})
		if c.Exception != nil {
			c.Permanent, c.RetryIn = out.Permanent, out.RetryIn
		}
		return c
	}
	codec := j.codec()
	if codec == layout.CodecArgv || isModule(f.Spec.Function) {
		codec = layout.CodecRaw
	}
	result := layout.Result{Codec: codec, Value: out.Value, Stderr: out.Stderr, ExitCode: out.ExitCode,
		Truncated: out.Truncated, Usage: usageOf(out.Usage)}
	if out.Large != nil {
		return w.fetchRemote(j, out.Large, result)
	}
	return w.success(j, result)
}

// patience is how much longer than its timeout the attempt may take here.
func (j *job) patience() time.Duration {
	if j.membership.worker.options.Remote == nil {
		return 0
	}
	return RemotePatience
}

// boundByFuture reports whether the deadline of the future comes before the attempt's
// timeout.
func (j *job) boundByFuture() bool {
	timeout := j.timeout()
	return j.final && (timeout == 0 || j.deadline.Sub(j.started) <= timeout)
}

// ownKind is the kind of a failure that was told from elsewhere, if a function can have it.
func ownKind(kind layout.FailureKind) layout.FailureKind {
	switch kind {
	case layout.KindExit, layout.KindPanic, layout.KindTimeout, layout.KindMemory, layout.KindUnloadable,
		layout.KindTooLarge:
		return kind
	default:
		return layout.KindError
	}
}

// callRemote turns a panic into an error.
func callRemote(ctx context.Context, r Remote, call RemoteCall) (out RemoteOutcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(err, fmt.Errorf("the remote panicked: %v", p))
		}
	}()
	return r.RunRemote(ctx, call)
}

// acknowledge tells the remote which claims have ended.
func (w *Worker) acknowledge(ended []fdbmodel.Completion) {
	if w.options.Remote == nil || len(ended) == 0 {
		return
	}
	ids := make([]layout.ID, len(ended))
	for i := range ended {
		ids[i] = ended[i].Future.ID
	}
	w.options.Remote.Acknowledge(ids)
}
