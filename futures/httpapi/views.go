package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/futures"
)

// inlineValue is the largest result value, in bytes, that a future's view
// includes.
const inlineValue = 64 << 10

// Future is the view of a future.
type Future struct {
	ID           futures.ID        `json:"id" format:"uuid"`
	State        State             `json:"state"`
	Function     string            `json:"function" doc:"With an alias resolved"`
	Queue        string            `json:"queue"`
	Owner        string            `json:"owner,omitempty"`
	Label        string            `json:"label,omitempty"`
	Tags         []string          `json:"tags,omitempty"`
	Priority     int               `json:"priority"`
	Lane         *Lane             `json:"lane,omitempty"`
	InLine       bool              `json:"in_line,omitempty" doc:"Its lane has not admitted it yet"`
	Requirements Requirements      `json:"requirements"`
	Argv         []string          `json:"argv,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Trace        map[string]string `json:"trace,omitempty" doc:"The context of the trace that it is part of"`
	Codec        string            `json:"codec,omitempty" doc:"The codec of the arguments"`
	ArgsBytes    int64             `json:"args_bytes"`
	InputCount   int               `json:"input_count,omitempty" doc:"How many results of other futures it takes"`
	Edges
	Unique      *UniqueView        `json:"unique,omitempty" doc:"Set if it is the only one of its kind"`
	MaxRetries  int                `json:"max_retries"`
	TimeoutMS   int64              `json:"timeout_ms,omitempty"`
	SubmittedAt time.Time          `json:"submitted_at"`
	ExpiresAt   *time.Time         `json:"expires_at,omitempty" doc:"When it ends if it still waits"`
	Deadline    *time.Time         `json:"deadline,omitempty" doc:"When it ends even if it runs"`
	Snoozes     int                `json:"snoozes,omitempty" doc:"How often its function asked to be run again later"`
	Schedule    string             `json:"schedule,omitempty" doc:"The schedule that submitted it"`
	ScheduledAt *time.Time         `json:"scheduled_at,omitempty" doc:"The time of the schedule that it stands for"`
	Fork        *futures.Forked    `json:"fork,omitempty" doc:"The future that it was made from, if it is a fork"`
	DueAt       *time.Time         `json:"due_at,omitempty" doc:"When a delayed future becomes ready"`
	Attempt     int                `json:"attempt" doc:"The attempt that runs or ran last"`
	Failed      int                `json:"failed_attempts"`
	Deaths      int                `json:"deaths" doc:"How many workers died while they held it, up to 4"`
	Crashes     int                `json:"crashes" doc:"How many of those deaths it may have caused"`
	Rejected    int                `json:"rejected,omitempty" doc:"How often workers could not run it and gave it back"`
	Worker      layout.WorkerID    `json:"worker,omitempty" doc:"The worker that holds or realized it"`
	Pins        []string           `json:"pins,omitempty" doc:"Who keeps it from being removed"`
	Cancel      *CancelRequestView `json:"cancel,omitempty" doc:"Set if it was asked to stop"`
	Progress    *Progress          `json:"progress,omitempty" doc:"What the present or last attempt has told"`
	Failure     *Failure           `json:"failure,omitempty" doc:"The last failed attempt"`
	Attempts    []Attempt          `json:"attempts,omitempty" doc:"Ended attempts, if one has failed; not in lists"`
	Result      *Result            `json:"result,omitempty"`
	Unlike      string             `json:"unlike,omitempty" doc:"After a submit: what it has otherwise"`
}

// State is the name of a future's state.
type State string

// Schema implements huma.SchemaProvider: one of the names.
func (State) Schema(huma.Registry) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeString}
	for _, s := range layout.States() {
		schema.Enum = append(schema.Enum, s.String())
	}
	return schema
}

// Requirements are the resources that a worker must have free to take a future.
type Requirements struct {
	CPU int64 `json:"cpu_millis,omitempty" minimum:"0" doc:"Thousandths of a core"`
	RAM int64 `json:"ram_bytes,omitempty" minimum:"0" doc:"Bytes; also the memory limit of a WASM function"`
	GPU int64 `json:"gpu_millis,omitempty" minimum:"0" doc:"Thousandths of a device"`
	// Labels are those that the worker must have, all of them.
	Labels map[string]string `json:"labels,omitempty" doc:"Labels that the worker must have"`
}

// CancelRequestView is a request to stop a future.
type CancelRequestView struct {
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Progress is how far a function says that it is.
type Progress struct {
	Done  int64     `json:"done"`
	Total int64     `json:"total,omitempty" doc:"Left out if it is unknown"`
	Text  string    `json:"text,omitempty"`
	At    time.Time `json:"at"`
}

// Attempt is an attempt that has ended.
type Attempt struct {
	Attempt   int                `json:"attempt"`
	Worker    layout.WorkerID    `json:"worker,omitempty"`
	StartedAt *time.Time         `json:"started_at,omitempty" doc:"Left out if its worker did not live to tell"`
	EndedAt   time.Time          `json:"ended_at"`
	Kind      layout.FailureKind `json:"kind,omitempty" doc:"Why it failed; left out for one with a result"`
	Message   string             `json:"message,omitempty"`
}

// Failure is a failed attempt.
type Failure struct {
	Kind      layout.FailureKind `json:"kind"`
	Message   string             `json:"message,omitempty"`
	Attempt   int                `json:"attempt,omitempty"`
	Worker    layout.WorkerID    `json:"worker,omitempty"`
	Final     bool               `json:"final" doc:"No attempt follows"`
	ExitCode  int                `json:"exit_code,omitempty"`
	Stdout    *Bytes             `json:"stdout,omitempty"`
	Stderr    *Bytes             `json:"stderr,omitempty"`
	Truncated bool               `json:"truncated,omitempty" doc:"Stderr is the end of a longer stream"`
	At        time.Time          `json:"at"`
}

// Result is the outcome of a future.
type Result struct {
	Codec string `json:"codec,omitempty" doc:"The codec of the value"`
	Size  int64  `json:"size"`
	// Value is omitted in lists and if it is larger than 64 KiB: the future's
	// /result has it.
	Value *Bytes `json:"value,omitempty" doc:"Left out above 64 KiB and in lists: see /result"`
	// Output is the value itself if it is JSON.
	Output    json.RawMessage `json:"output,omitempty" doc:"The value of a typed Go function whose input was JSON"`
	ExitCode  int             `json:"exit_code"`
	Stderr    *Bytes          `json:"stderr,omitempty"`
	Truncated bool            `json:"truncated,omitempty" doc:"Stderr is the end of a longer stream"`
	Attempt   int             `json:"attempt"`
	Worker    layout.WorkerID `json:"worker"`
	RunTimeMS float64         `json:"run_time_ms"`
	At        time.Time       `json:"at"`
}

// SetValue shows value, whatever its size.
func (r *Result) SetValue(value []byte) {
	r.Value, r.Output = bytesOf(value), nil
	if r.Codec == layout.CodecJSON && json.Valid(value) && utf8.Valid(value) { // Valid alone lets other bytes pass
		r.Output = value
	}
}

// Bytes is the JSON form of bytes.
type Bytes struct {
	Encoding string `json:"encoding" enum:"text,base64"`
	Data     string `json:"data"`
}

// bytesOf returns bytes as text if they are valid text, nil if there are none.
func bytesOf(b []byte) *Bytes {
	switch {
	case len(b) == 0:
		return nil
	case utf8.Valid(b):
		return &Bytes{"text", string(b)}
	default:
		return &Bytes{"base64", base64.StdEncoding.EncodeToString(b)}
	}
}

// futureOf returns the view of a future that came to ending, without values that are
// stored outside of it.
func futureOf(row *layout.Row, ending *layout.Ending) Future {
	s := row.Spec
	f := Future{
		ID: row.ID, State: State(row.State().String()), Function: s.Function, Queue: s.Queue, Owner: s.Owner, Label: s.Label,
		Tags: s.Tags, Priority: int(s.Priority), Argv: s.Argv, Env: s.Env, Codec: s.Codec, ArgsBytes: s.ArgsSize,
		Trace: s.Trace, InputCount: s.CountInputs(), Unique: uniqueView(s),
		Requirements: Requirements{
			CPU: s.Requirements.CPU, RAM: row.Needs().Requirements.RAM, GPU: s.Requirements.GPU,
			Labels: s.Requirements.Labels,
		},
		MaxRetries: s.MaxRetries, TimeoutMS: s.Timeout.Milliseconds(), SubmittedAt: timeOf(s.SubmittedAt),
		Attempt: row.Attempt(), Failed: row.Attempts.Failed, Deaths: row.Attempts.Deaths.Len(),
		Crashes: row.Attempts.Crashes, Rejected: row.Attempts.Rejected, Fork: futures.ForkOf(row),
	}
	if !s.Lane.IsZero() {
		f.Lane, f.InLine = &Lane{Kind: s.Lane.Kind, Key: s.Lane.Key}, row.InLine()
	}
	if f.Snoozes = row.Attempts.Snoozed; !row.Attempts.Lifted {
		f.ExpiresAt, f.Deadline = timeIfSet(s.ExpiresAt), timeIfSet(s.Deadline)
	}
	if s.Schedule != "" {
		at := timeOf(s.ScheduledAt)
		f.Schedule, f.ScheduledAt = s.Schedule, &at
	}
	if row.State() == layout.Delayed {
		f.DueAt = timeIfSet(row.Attempts.Due)
	}
	if row.Claim != nil {
		f.Worker = row.Claim.Worker
	}
	if row.Pins != nil {
		f.Pins = row.Pins.Holders
	}
	if row.Cancel != nil {
		f.Cancel = &CancelRequestView{Reason: row.Cancel.Reason, At: timeOf(row.Cancel.At)}
	}
	if p := row.Reported(); p != nil {
		f.Progress = &Progress{Done: p.Done, Total: p.Total, Text: p.Text, At: timeOf(p.At)}
	}
	f.Attempts = attemptsOf(row)
	if e := ending.Failure; e != nil {
		f.Failure = &Failure{
			Kind: e.Kind, Message: e.Message, Attempt: e.Attempt, Worker: e.Worker, Final: e.Final, ExitCode: e.ExitCode,
			Stdout: bytesOf(e.Stdout), Stderr: bytesOf(e.Stderr), Truncated: e.Truncated, At: timeOf(e.At),
		}
	}
	if r := ending.Result; r != nil {
		f.Result = &Result{
			Codec: r.Codec, Size: r.Size, ExitCode: r.ExitCode, Stderr: bytesOf(r.Stderr),
			Truncated: r.Truncated, Attempt: r.Attempt, Worker: r.Worker, At: timeOf(r.At),
			RunTimeMS: float64(r.RunTime.Microseconds()) / 1000,
		}
		f.Result.SetValue(r.Value)
	}
	return f
}

// View returns the view of a future, including values of up to 64 KiB that are
// stored outside of its records, and up to 64 futures each that it is connected
// to. It returns the store's errors.
func View(ctx context.Context, cluster *fdbmodel.Cluster, row *layout.Row) (Future, error) {
	e := endingOf(row)
	err := results.Of(cluster).LoadUpTo(ctx, &e, inlineValue)
	f := futureOf(row, &e)
	if err == nil {
		f.Edges, err = EdgesOf(ctx, cluster, row)
	}
	return f, err
}

// endingOf returns what a future came to, with its last failed attempt even if
// it is realized.
func endingOf(row *layout.Row) layout.Ending {
	e := row.Ending()
	e.Failure = row.Exception
	return e
}

// ListView returns the view of a future without the bytes of its result.
func ListView(row *layout.Row) Future {
	e := endingOf(row)
	f := futureOf(row, &e)
	f.Attempts = nil
	if f.Result != nil {
		f.Result.Value, f.Result.Output, f.Result.Stderr = nil, nil, nil
	}
	return f
}

func timeIfSet(millis int64) *time.Time {
	if millis == 0 {
		return nil
	}
	at := timeOf(millis)
	return &at
}

// The times that JSON can write, in milliseconds since 1970.
const firstMillis, lastMillis = -62135596800000, 253402300799999

// timeOf is a time of a record, or the nearest one that JSON can write.
func timeOf(millis int64) time.Time {
	return time.UnixMilli(min(max(millis, firstMillis), lastMillis)).UTC()
}
