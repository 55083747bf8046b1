package futures

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// View is the known state of a future. Times are the zero time if they are
// unknown or have not come.
type View struct {
	ID    ID
	State State
	// Function has its alias resolved: go:NAME or wasm:CID[/METHOD].
	Function     string
	Queue, Label string
	Tags         []string
	Priority     uint8
	// Lane is its lane, if it has one, and InLine says that it waits for its admission.
	Lane         Lane
	InLine       bool
	Requirements Requirements
	// ArgsSize is in bytes.
	ArgsSize    int64
	SubmittedAt time.Time
	// Schedule is the schedule that submitted it, and ScheduledAt the time that it
	// stands for; empty and zero for others.
	Schedule    string
	ScheduledAt time.Time
	// Fork is the future that it was made from, nil for one that is no fork.
	Fork *Forked
	// DueAt is when a delayed future becomes ready.
	DueAt time.Time
	// ExpiresAt is when it ends if it still waits, and Deadline when it ends even if it
	// runs; zero times for never.
	ExpiresAt, Deadline time.Time
	// Snoozes is how often its function asked to be run again later.
	Snoozes int
	// FinishedAt is when the future ended.
	FinishedAt time.Time
	// Attempt is the present or last attempt, counted from 1, of MaxAttempts.
	// Timeout bounds each attempt, 0 for no bound.
	Attempt, MaxAttempts int
	Timeout              time.Duration
	// Deaths is how many workers died while they held the future, up to 4, and
	// Crashes how many of these deaths it may have caused. Neither is an attempt.
	Deaths, Crashes int
	// Rejected is how often workers could not run the future and gave it back. None is an
	// attempt.
	Rejected int
	// Worker is the worker that holds the future, or realized it.
	Worker WorkerID
	// CancelAsked is when the future was asked to stop, and CancelReason why.
	CancelAsked  time.Time
	CancelReason string
	// Progress is what the present or last attempt has told, nil for nothing.
	Progress *Progress
	// Failure is the last failed attempt, nil if none has failed.
	Failure *Failure
	// Attempts are the attempts that have ended, oldest first: the last 9 without a
	// result, and the one that has it. It is nil if the first one has, or none has ended.
	Attempts []Attempt
	// Result is nil unless the future is realized. Await has the value.
	Result *ResultInfo
}

// Failure is a failed attempt.
type Failure struct {
	Kind    FailureKind
	Message string
	Attempt int
	Worker  WorkerID
	// Final is set if no attempt follows.
	Final bool
	At    time.Time
}

// ResultInfo describes a result.
type ResultInfo struct {
	Codec string
	// Size is in bytes.
	Size     int64
	ExitCode int
	RunTime  time.Duration
}

func viewOf(row *layout.Row) View {
	s := row.Spec
	v := View{
		ID: row.ID, State: row.State(), Function: s.Function, Queue: s.Queue, Label: s.Label, Tags: s.Tags,
		Priority: s.Priority, Requirements: s.Requirements, ArgsSize: s.ArgsSize, SubmittedAt: timeOf(s.SubmittedAt),
		FinishedAt: timeOf(row.FinishedAt()), Attempt: row.Attempt(), MaxAttempts: s.MaxRetries + 1,
		Deaths: row.Attempts.Deaths.Len(), Crashes: row.Attempts.Crashes, Timeout: s.Timeout,
		Rejected: row.Attempts.Rejected, Schedule: s.Schedule, ScheduledAt: timeOf(s.ScheduledAt), Lane: s.Lane,
		InLine: row.InLine(),
	}
	if v.Snoozes = row.Attempts.Snoozed; !row.Attempts.Lifted {
		v.ExpiresAt, v.Deadline = timeOf(s.ExpiresAt), timeOf(s.Deadline)
	}
	v.Fork = ForkOf(row)
	if v.State == Delayed {
		v.DueAt = timeOf(row.Attempts.Due)
	}
	if row.Claim != nil {
		v.Worker = row.Claim.Worker
	}
	if row.Cancel != nil {
		v.CancelAsked, v.CancelReason = timeOf(row.Cancel.At), row.Cancel.Reason
	}
	if e := row.Exception; e != nil {
		v.Failure = &Failure{
			Kind: e.Kind, Message: e.Message, Attempt: e.Attempt, Worker: e.Worker, Final: e.Final, At: timeOf(e.At),
		}
	}
	if p := row.Reported(); p != nil {
		v.Progress = &Progress{Done: p.Done, Total: p.Total, Text: p.Text, At: timeOf(p.At)}
	}
	for _, a := range row.EndedAttempts() {
		v.Attempts = append(v.Attempts, Attempt{
			Number: a.Attempt, Worker: a.Worker, StartedAt: timeOf(a.StartedAt), EndedAt: timeOf(a.At), Kind: a.Kind,
			Message: a.Message,
		})
	}
	if r := row.Ending().Result; r != nil {
		v.Result = &ResultInfo{Codec: r.Codec, Size: r.Size, ExitCode: r.ExitCode, RunTime: r.RunTime}
	}
	return v
}

func timeOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis)
}

// Get returns a consistent view of a future. It returns ErrNotFound if the
// future does not exist.
func (c *Client) Get(ctx context.Context, id ID) (View, error) {
	row, err := c.cluster.Get(ctx, id)
	if err != nil {
		return View{}, err
	}
	return viewOf(&row), nil
}

// List returns up to limit matching futures, at most 1,000, and the cursor of
// the next page, empty at the end. The order is that of the shards, and within
// a shard that of the ids; Newest in the filter has the newest first. A
// selective filter may return fewer than limit, or none, with a cursor. It
// returns ErrBadCursor for an invalid cursor, and ErrBadName for an invalid
// queue.
func (c *Client) List(ctx context.Context, f Filter, cursor []byte, limit int) (views []View, next []byte, err error) {
	rows, next, err := inspect.List(ctx, c.cluster, f, cursor, limit)
	views = make([]View, len(rows))
	for i := range rows {
		views[i] = viewOf(&rows[i])
	}
	return views, next, err
}

// Counts returns how many futures there are by queue, owner and state.
func (c *Client) Counts(ctx context.Context) (Counts, error) { return c.cluster.Counts(ctx) }

// Cancellation is the outcome of a Cancel.
type Cancellation int

// The outcomes of a Cancel.
const (
	// Done means that the future is over: Cancel ended it, or it had ended before.
	Done Cancellation = iota + 1
	// Requested means that the worker that runs the future was asked to stop. A
	// result that still arrives counts.
	Requested
)

// String returns done or requested.
func (c Cancellation) String() string {
	switch c {
	case Done:
		return "done"
	case Requested:
		return "requested"
	default:
		return "unknown"
	}
}

// Cancel ends a future that is not running, as failed with the kind cancelled,
// and asks the worker of a running one to stop. It returns ErrNotFound if the
// future does not exist. An unknown commit is retried and harmless.
func (c *Client) Cancel(ctx context.Context, id ID, reason string) (Cancellation, error) {
	outcome, _, err := c.cluster.Cancel(ctx, id, reason)
	switch {
	case err != nil:
		return 0, err
	case outcome == fdbmodel.Requested:
		return Requested, nil
	default:
		return Done, nil
	}
}

// Retry runs a failed future again, with all its attempts, and a delayed one at
// once. A handle that has seen the failure keeps it: await a new one, from
// Client.Future. It returns ErrTransition for a future in another state, and
// ErrNotFound if it does not exist. An unknown commit is retried and harmless.
func (c *Client) Retry(ctx context.Context, id ID) error { return c.cluster.Retry(ctx, id) }

// Discard removes a future that is over, with its result. It returns
// ErrTransition for one that is not over (cancel it first), and ErrNotFound if
// it does not exist. An unknown commit is retried and harmless.
func (c *Client) Discard(ctx context.Context, id ID) error { return c.cluster.Discard(ctx, id) }
