package layout

import (
	"maps"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Codecs say how to interpret the bytes of arguments and results.
const (
	CodecMsgpack = "msgpack" // a msgpack value, as typed Go functions use
	CodecJSON    = "json"    // a JSON value, as typed Go functions take from other languages
	CodecRaw     = "raw"     // plain bytes; standard input of a WASM function
	CodecArgv    = "argv"    // no bytes; the arguments are Spec.Argv
	CodecInputs  = "inputs"  // no bytes; the arguments are the results of the inputs, one after the other, as raw
)

// Requirements are what a worker must have free to take a future. Every future
// takes one slot of its worker as well. RAM is also the memory limit of a WASM
// function; Go functions have no limit.
type Requirements struct {
	CPU    int64             `msgpack:"c,omitempty" json:"cpu_millis,omitempty"` // thousandths of a core
	RAM    int64             `msgpack:"r,omitempty" json:"ram_bytes,omitempty"`  // bytes
	GPU    int64             `msgpack:"g,omitempty" json:"gpu_millis,omitempty"` // thousandths of a device
	Labels map[string]string `msgpack:"l,omitempty" json:"labels,omitempty"`     // those that its worker must have
}

// Backoff says how long a failed future waits for its next attempt: Base
// doubled with each failed attempt, at most Max, times a random factor between
// 0.5 and 1.5.
type Backoff struct {
	Base time.Duration `msgpack:"b,omitempty" json:"base_ns,omitempty"` // Defaults to 1 s.
	Max  time.Duration `msgpack:"m,omitempty" json:"max_ns,omitempty"`  // Defaults to 5 min.
}

// ChunkRef refers to a value that is too large for its record and is stored in
// pieces in the chunks subspace.
type ChunkRef struct {
	Kind  string `msgpack:"k" json:"kind"`  // args, result, stderr or step
	Token string `msgpack:"t" json:"token"` // names the writer: the claim for results
	Size  int64  `msgpack:"s" json:"size"`  // bytes
	Count int    `msgpack:"n" json:"count"` // chunks
}

// Spec is the immutable part of a future: the function to run, its arguments,
// where it may run and what happens when it fails.
type Spec struct {
	Function string    `msgpack:"f" json:"function"`
	Codec    string    `msgpack:"c,omitempty" json:"codec,omitempty"`
	Args     []byte    `msgpack:"a,omitempty" json:"-"`           // if small
	ArgsSize int64     `msgpack:"az,omitempty" json:"args_bytes"` // wherever they are stored
	ArgsRef  *ChunkRef `msgpack:"ar,omitempty" json:"-"`          // if large
	ArgsKey  bool      `msgpack:"ak,omitempty" json:"-"`          // if they have a key of their own
	Argv     []string  `msgpack:"av,omitempty" json:"argv,omitempty"`
	// Inputs are the futures whose results it takes, each once, if they are few;
	// InputsRef refers to the list otherwise.
	Inputs    IDList            `msgpack:"in,omitempty" json:"-"`
	InputsRef *ChunkRef         `msgpack:"ir,omitempty" json:"-"`
	Env       map[string]string `msgpack:"e,omitempty" json:"env,omitempty"`

	Queue string `msgpack:"q,omitempty" json:"queue"`
	// Owner names the assigner of the future, such as a batch. An owned future
	// is held: it waits for Assign and is never in the pool.
	Owner string `msgpack:"o,omitempty" json:"owner,omitempty"`
	// Lapses has an owned future removed once its retention has passed, as others are: its owner may be gone for
	// good. One that does not stays until its owner discards it.
	Lapses bool `msgpack:"lp,omitempty" json:"lapses,omitempty"`
	// Label is for people. At most 64 bytes; see CheckNewLabel.
	Label string `msgpack:"lb,omitempty" json:"label,omitempty"`
	// Tags are what lists find the future by, in their order; see SortTags.
	Tags         []string     `msgpack:"tg,omitempty" json:"tags,omitempty"`
	Priority     uint8        `msgpack:"p,omitempty" json:"priority"`
	Requirements Requirements `msgpack:"r,omitempty" json:"requirements"`

	// Near is an input that the future is to run near: where its result is, if that
	// is an object. MustBeNear says that it may run nowhere else.
	Near       ID   `msgpack:"ne,omitempty" json:"near,omitzero"`
	MustBeNear bool `msgpack:"nm,omitempty" json:"must_be_near,omitempty"`

	// Parallel is how many futures of its owner one worker runs at a time, if
	// not 0. Pace limits how often a worker starts similar futures.
	Parallel int   `msgpack:"pl,omitempty" json:"parallel,omitempty"`
	Pace     *Pace `msgpack:"pc,omitempty" json:"pace,omitempty"`
	// Growth is what an attempt that had too little memory changes, if not nil.
	Growth *Growth `msgpack:"gr,omitempty" json:"grow_memory,omitempty"`

	// Unique is set for a future that is the only one with its name.
	Unique *Unique `msgpack:"uq,omitempty" json:"unique,omitempty"`

	// Lane is the lane that the future obeys, if any. Aside says that it gives its slot
	// to the next in line while it waits for another attempt; it is that of the lane's
	// kind.
	Lane  Lane `msgpack:"ln,omitempty" json:"lane,omitzero"`
	Aside bool `msgpack:"la,omitempty" json:"aside,omitempty"`
	// Member says that the future runs in bundles with others of its lane: a bundle, which
	// is a future too, takes it out of the line. Bundle says that this is one.
	Member bool `msgpack:"bm,omitempty" json:"member,omitempty"`
	Bundle bool `msgpack:"bd,omitempty" json:"bundle,omitempty"`

	MaxRetries int     `msgpack:"mr,omitempty" json:"max_retries"`
	Backoff    Backoff `msgpack:"b,omitempty" json:"backoff"`
	// ExpiresAt is when the future ends if it waits, so that no attempt begins later,
	// and Deadline when it ends even if it runs; in milliseconds, 0 for never.
	ExpiresAt           int64         `msgpack:"ea,omitempty" json:"expires_at_ms,omitempty"`
	Deadline            int64         `msgpack:"da,omitempty" json:"deadline_ms,omitempty"`
	Timeout             time.Duration `msgpack:"to,omitempty" json:"timeout_ns,omitempty"`
	AllowReconstruction bool          `msgpack:"rc,omitempty" json:"allow_reconstruction,omitempty"`
	// AsObject keeps the result in the object stores of workers instead of here. It
	// is lost with the last of its copies; AllowReconstruction says that the future
	// may then run again.
	AsObject bool `msgpack:"ob,omitempty" json:"as_object,omitempty"`

	// Schedule is the schedule that submitted the future, and ScheduledAt the time
	// that it stands for, in milliseconds.
	Schedule    string `msgpack:"sc,omitempty" json:"schedule,omitempty"`
	ScheduledAt int64  `msgpack:"sa,omitempty" json:"scheduled_at_ms,omitempty"`

	// Fork says which future this one is a fork of; nil for others.
	Fork *Fork `msgpack:"fk,omitempty" json:"fork,omitempty"`

	// Later says that it was not to run at once: a time was named before which it would not.
	Later bool `msgpack:"lt,omitempty" json:"later,omitempty"`

	Session     SessionID         `msgpack:"s,omitempty" json:"session,omitempty"`
	Trace       map[string]string `msgpack:"t,omitempty" json:"trace,omitempty"`
	SubmittedAt int64             `msgpack:"at" json:"submitted_at_ms"`
}

// Growth is how much more memory a future requires after each attempt that had too
// little: Factor times as much, up to Max bytes.
type Growth struct {
	Factor float64 `msgpack:"f" json:"factor"`
	Max    int64   `msgpack:"m" json:"max_bytes"`
}

// Pace limits one worker to starting PerSecond futures per second among those
// with the same Key, such as the host that they call; if it is Shared, all workers
// of the cluster together. The slowest pace is one start a day.
type Pace struct {
	Key       string  `msgpack:"k" json:"key"`
	PerSecond float64 `msgpack:"s" json:"per_second"`
	Shared    bool    `msgpack:"w,omitempty" json:"shared,omitempty"`
}

// Held reports whether the future has an owner, so that it waits for Assign.
func (s *Spec) Held() bool { return s.Owner != "" }

// IsKept reports whether the future stays until its owner discards it.
func (s *Spec) IsKept() bool { return s.Held() && !s.Lapses }

// FunctionPut is the function of futures whose results were put, not computed.
const FunctionPut = "put"

// IsPut reports whether the result was put, not computed.
func (s *Spec) IsPut() bool { return s.Function == FunctionPut }

// FunctionPromise is the function of promises: futures that no worker runs.
const FunctionPromise = "promise"

// IsPromise reports whether the future is a promise: it is blocked, without inputs, until
// somebody completes it.
func (s *Spec) IsPromise() bool { return s.Function == FunctionPromise }

// HasInputs reports whether the future takes results of others.
func (s *Spec) HasInputs() bool { return len(s.Inputs) > 0 || s.InputsRef != nil }

// CountInputs returns how many inputs it takes.
func (s *Spec) CountInputs() int {
	if s.InputsRef != nil {
		return int(s.InputsRef.Size / int64(len(ID{})))
	}
	return len(s.Inputs) / len(ID{})
}

// ListsInputs reports whether keys list the inputs that the future waits for while it
// is blocked. Of fewer inputs their own records say which have ended.
func (s *Spec) ListsInputs() bool { return s.CountInputs() > MaxUnlistedInputs }

// Class returns the future's class in the ready index.
func (s *Spec) Class() Class {
	r := s.Requirements
	return Class{Queue: s.Queue, CPU: r.CPU, RAM: r.RAM, GPU: r.GPU, Labels: LabelText(r.Labels)}
}

// Needing returns the spec with what attempts have made of its requirements.
func (s *Spec) Needing(a *Attempts) *Spec {
	if a.RAM == 0 && !a.Unplaceable {
		return s
	}
	needing := *s
	if a.RAM != 0 {
		needing.Requirements.RAM = a.RAM
	}
	if a.Unplaceable {
		labels := map[string]string{LabelNear: s.Near.String()}
		maps.Copy(labels, s.Requirements.Labels)
		needing.Requirements.Labels = labels
	}
	return &needing
}

// Token is the fence of a claim: it names the worker that took the future and
// which of its claim transactions did. It contains no time.
type Token struct {
	Worker   WorkerID `msgpack:"w" json:"worker"`
	Sequence int64    `msgpack:"s" json:"sequence"`
}

// Claim names the holder of a future. It stays in place when the future is
// realized, beside the result that carries the same token.
type Claim struct {
	Token
	Stamp kv.Stamp `msgpack:"-" json:"-"`
}

// Attempts counts a future's attempts and says where it waits.
type Attempts struct {
	Failed   int   `msgpack:"n,omitempty" json:"failed,omitempty"`   // attempts that ended in a failure
	Crashes  int   `msgpack:"c,omitempty" json:"crashes,omitempty"`  // deaths of workers that running it may have caused
	Rejected int   `msgpack:"p,omitempty" json:"rejected,omitempty"` // claims given back by workers that could not run it
	Rebuilt  int   `msgpack:"r,omitempty" json:"rebuilt,omitempty"`  // runs asked for because a result was lost
	Due      int64 `msgpack:"d,omitempty" json:"due_ms,omitempty"`   // when the future is due, if not 0
	// RAM is the memory that the future requires since attempts had too little, 0
	// for that of its spec.
	RAM int64 `msgpack:"m,omitempty" json:"ram_bytes,omitempty"`
	// Assigned is the worker that it waits for while it is ready, and that may
	// receive it again when it is given back. Reason is the one given by the
	// last assignment, such as the chunk of a batch.
	Assigned WorkerID `msgpack:"w,omitempty" json:"assigned,omitempty"`
	Reason   string   `msgpack:"y,omitempty" json:"reason,omitempty"`
	// Near is the worker that has most bytes of the objects that it takes, and
	// NearWait how long others leave it to that one while it is ready.
	Near     WorkerID      `msgpack:"h,omitempty" json:"near,omitempty"`
	NearWait time.Duration `msgpack:"i,omitempty" json:"near_wait_ns,omitempty"`
	// Unplaceable says that it must be near an object, and that none of the workers
	// that have it could run it.
	Unplaceable bool `msgpack:"j,omitempty" json:"unplaceable,omitempty"`
	// Slot says that the future is delayed and keeps the slot of its lane.
	Slot bool `msgpack:"l,omitempty" json:"slot,omitempty"`
	// Snoozed is how often its function asked to be run again later.
	Snoozed int `msgpack:"s,omitempty" json:"snoozed,omitempty"`
	// Lifted says that its time limits count no more: it was asked for again after its
	// end.
	Lifted bool `msgpack:"f,omitempty" json:"lifted,omitempty"`
	// Taken says that the future is a bundle, claimed, and has taken members.
	Taken bool `msgpack:"k,omitempty" json:"taken,omitempty"`
	// Deaths are the last deaths of workers that held it, whether or not they
	// count as crashes.
	Deaths Deaths `msgpack:"x,omitempty" json:"deaths,omitzero"`
	// Refused are the last rejections. A worker that rejected it passes it over for a while
	// in which others may take it.
	Refused Refusals `msgpack:"u,omitempty" json:"refused,omitzero"`
}

// Suspicion is how much speaks for the future having killed its workers: 0 if none of
// them died with it, and more for each that did. One above 0 makes it a poison candidate.
func (a Attempts) Suspicion() int { return max(a.Deaths.Len(), a.Crashes) }

// BlockedRecord says that a future waits for its inputs.
type BlockedRecord struct {
	// Linked is how many of its inputs, in their order, are linked to it: each of
	// those is realized, or notifies it when it ends.
	Linked int `msgpack:"n,omitempty" json:"linked"`
	// Objects says that results of inputs are, or are to be, objects, so that the
	// worker that has them is looked for when it is unblocked.
	Objects bool `msgpack:"o,omitempty" json:"objects,omitempty"`
}

// ResolveRecord says how far the dependencies of a future are resolved.
type ResolveRecord struct {
	// Notified is the last dependant that was notified of the future's end.
	Notified ID `msgpack:"t,omitempty" json:"notified,omitzero"`
	// Released is how many of its inputs, in their order, the future no longer
	// uses.
	Released int `msgpack:"r,omitempty" json:"released,omitempty"`
}

// Exception is the last failure of a future.
type Exception struct {
	Kind      FailureKind `msgpack:"k" json:"kind"`
	Message   string      `msgpack:"m,omitempty" json:"message,omitempty"`
	Attempt   int         `msgpack:"a,omitempty" json:"attempt,omitempty"`
	Worker    WorkerID    `msgpack:"w,omitempty" json:"worker,omitempty"`
	Final     bool        `msgpack:"f,omitempty" json:"final"`
	Permanent bool        `msgpack:"p,omitempty" json:"permanent,omitempty"` // another attempt could not succeed
	At        int64       `msgpack:"t" json:"at_ms"`
	ExitCode  int         `msgpack:"x,omitempty" json:"exit_code,omitempty"`
	// StartedAt is when the attempt began, 0 if that is unknown.
	StartedAt int64     `msgpack:"b,omitempty" json:"started_at_ms,omitempty"`
	Stdout    []byte    `msgpack:"o,omitempty" json:"stdout,omitempty"`
	Stderr    []byte    `msgpack:"e,omitempty" json:"stderr,omitempty"`
	StderrRef *ChunkRef `msgpack:"er,omitempty" json:"-"`
	Truncated bool      `msgpack:"tr,omitempty" json:"truncated,omitempty"`
	// FailedOn lists the workers of the last failed attempts, at most 8, ending
	// with this one's.
	FailedOn []WorkerID `msgpack:"fo,omitempty" json:"failed_on,omitempty"`
	Usage    *Usage     `msgpack:"us,omitempty" json:"usage,omitempty"`
}

// Usage is what an attempt took of its machine, as far as its worker knows it: 0 for
// what it does not.
type Usage struct {
	CPUUser time.Duration `msgpack:"u,omitempty" json:"cpu_user_ns,omitempty"`
	CPUSys  time.Duration `msgpack:"s,omitempty" json:"cpu_sys_ns,omitempty"`
	Memory  int64         `msgpack:"m,omitempty" json:"memory_max_bytes,omitempty"` // the most it had at a time
}

// CancelRequest asks the holder of a future to stop it.
type CancelRequest struct {
	Reason string `msgpack:"r,omitempty" json:"reason,omitempty"`
	At     int64  `msgpack:"t" json:"at_ms"`
}

// Result is the result of a realized future.
type Result struct {
	Token
	Codec     string        `msgpack:"c,omitempty" json:"codec,omitempty"`
	Value     []byte        `msgpack:"v,omitempty" json:"value,omitempty"`
	ValueRef  *ChunkRef     `msgpack:"vr,omitempty" json:"-"`
	Object    string        `msgpack:"ob,omitempty" json:"object,omitempty"` // the content hash, if workers have it
	Size      int64         `msgpack:"z,omitempty" json:"size"`
	ExitCode  int           `msgpack:"x,omitempty" json:"exit_code,omitempty"`
	Stderr    []byte        `msgpack:"e,omitempty" json:"stderr,omitempty"`
	StderrRef *ChunkRef     `msgpack:"er,omitempty" json:"-"`
	Truncated bool          `msgpack:"tr,omitempty" json:"truncated,omitempty"`
	Attempt   int           `msgpack:"a,omitempty" json:"attempt"`
	RunTime   time.Duration `msgpack:"d,omitempty" json:"run_time_ns"`
	At        int64         `msgpack:"t" json:"at_ms"`
	Usage     *Usage        `msgpack:"us,omitempty" json:"usage,omitempty"`
	Stamp     kv.Stamp      `msgpack:"-" json:"-"`
}

// PinsRecord says who keeps a future from being removed, in the order of the names.
// A pin with a session ends with that; Sessions has an empty text for others.
type PinsRecord struct {
	Holders  []string `msgpack:"h" json:"holders"`
	Sessions []string `msgpack:"s" json:"sessions"`
}

// CopyRecord says that a worker has the result of a future as an object.
type CopyRecord struct {
	Worker WorkerID `msgpack:"w" json:"worker"`
	Object string   `msgpack:"ob" json:"object"`
	Size   int64    `msgpack:"z,omitempty" json:"size"`
	At     int64    `msgpack:"t" json:"at_ms"`
	// Away is until when, in milliseconds, readers wait for a worker that has left and keeps
	// the copy in its directory, for the next process with that; 0 for others.
	Away int64 `msgpack:"aw,omitempty" json:"away_until_ms,omitempty"`
}

// Resources are the resources that a worker offers or has free.
type Resources struct {
	Slots int   `msgpack:"s" json:"slots"`
	CPU   int64 `msgpack:"c,omitempty" json:"cpu_millis"`
	RAM   int64 `msgpack:"r,omitempty" json:"ram_bytes"`
	GPU   int64 `msgpack:"g,omitempty" json:"gpu_millis"`
}

// Fit reports whether a future with these requirements fits.
func (r Resources) Fit(q Requirements) bool {
	return r.Slots > 0 && r.CPU >= q.CPU && r.RAM >= q.RAM && r.GPU >= q.GPU
}

// Take returns the resources left while a future with these requirements runs.
func (r Resources) Take(q Requirements) Resources {
	return Resources{Slots: r.Slots - 1, CPU: r.CPU - q.CPU, RAM: r.RAM - q.RAM, GPU: r.GPU - q.GPU}
}

// Give returns the resources free after such a future has ended.
func (r Resources) Give(q Requirements) Resources {
	return Resources{Slots: r.Slots + 1, CPU: r.CPU + q.CPU, RAM: r.RAM + q.RAM, GPU: r.GPU + q.GPU}
}

// WorkerInfo describes a worker. Its record is the fence that a reaper clears.
type WorkerInfo struct {
	ID        WorkerID  `msgpack:"-" json:"id"`
	Address   string    `msgpack:"a,omitempty" json:"address,omitempty"`
	Name      string    `msgpack:"n,omitempty" json:"name,omitempty"`
	Queues    []string  `msgpack:"q" json:"queues"`
	Functions []string  `msgpack:"f,omitempty" json:"functions,omitempty"` // exact names, or wasm:* for any module
	Readers   []string  `msgpack:"r,omitempty" json:"readers,omitempty"`   // those of them that are readers of actors
	Capacity  Resources `msgpack:"c" json:"capacity"`
	StartedAt int64     `msgpack:"t" json:"started_at_ms"`
	Opening   string    `msgpack:"o,omitempty" json:"-"` // the opening of an embedded store that it belongs to
	Process   int       `msgpack:"p,omitempty" json:"process,omitempty"`
	Version   string    `msgpack:"v,omitempty" json:"version,omitempty"`
	// Connection names the connection to the process that has the store open,
	// if the worker uses one.
	Connection string `msgpack:"x,omitempty" json:"connection,omitempty"`
	// Labels are those that futures may require, with labelWorker and labelAddress.
	Labels map[string]string `msgpack:"l,omitempty" json:"labels,omitempty"`
	// Objects is where its object store is served, empty if it has none. Those
	// that connect there prove to know Secret, which is never shown.
	Objects string `msgpack:"ob,omitempty" json:"objects,omitempty"`
	Secret  Secret `msgpack:"se,omitempty" json:"-"`
	// Leaving says that it counts as holder of no more objects than it has.
	Leaving bool `msgpack:"le,omitempty" json:"-"`
}

// Secret is a text that is stored and neither shown nor logged.
type Secret string

// String returns a placeholder.
func (Secret) String() string { return "(not shown)" }

// GoString returns a placeholder.
func (Secret) GoString() string { return "(not shown)" }

// Runs reports whether the worker can run a function.
func (w *WorkerInfo) Runs(function string) bool {
	for _, f := range w.Functions {
		if f == function || (f == AnyModule && len(function) > 5 && function[:5] == "wasm:") {
			return true
		}
	}
	return false
}

// AnyModule stands in WorkerInfo.Functions for every WASM module.
const AnyModule = "wasm:*"

// Heartbeat is the record that a worker writes periodically. Only a change of
// it shows that the worker is alive; its time is for display.
type Heartbeat struct {
	Count   int64     `msgpack:"n" json:"count"`
	Free    Resources `msgpack:"f" json:"free"`
	Running int       `msgpack:"r,omitempty" json:"running"`
	At      int64     `msgpack:"t" json:"at_ms"`
	// Awaiting is how many of the running functions wait for other futures.
	Awaiting int `msgpack:"w,omitempty" json:"awaiting"`
	// Full are functions of which so many wait for other futures that the worker
	// starts no more of them.
	Full []string `msgpack:"u,omitempty" json:"full,omitempty"`
	// Stored is how many bytes of results the worker has as objects, and Room how
	// many more it has room for. NoRoom says that it takes no futures whose results
	// are to be objects, for lack of room.
	Stored int64 `msgpack:"o,omitempty" json:"stored_bytes,omitempty"`
	Room   int64 `msgpack:"b,omitempty" json:"object_room_bytes,omitempty"`
	NoRoom bool  `msgpack:"x,omitempty" json:"no_object_room,omitempty"`
	// Draining says that the worker claims no more, and stops once what it runs has ended.
	Draining bool `msgpack:"d,omitempty" json:"draining,omitempty"`
	// Awaits says what running functions await: at most MaxAwaits of them, those that have waited for
	// the longest time.
	Awaits []Await `msgpack:"a,omitempty" json:"awaits,omitempty"`
}

// DoneEntry lists futures that finished in one transaction.
type DoneEntry struct {
	At  int64  `msgpack:"t" json:"at_ms"`
	IDs IDList `msgpack:"i" json:"ids"`
}

// SessionRecord is the heartbeat of a client process.
type SessionRecord struct {
	Count   int64  `msgpack:"n"`
	At      int64  `msgpack:"t" json:"at_ms"`
	Opening string `msgpack:"o,omitempty"`
}

// FailureKind says why an attempt, or a future, failed.
type FailureKind string

// The kinds of failure, the same words everywhere.
const (
	KindError      FailureKind = "error"      // the function returned an error
	KindExit       FailureKind = "exit"       // the module ended with an exit code other than 0
	KindPanic      FailureKind = "panic"      // the function panicked, the module trapped
	KindTimeout    FailureKind = "timeout"    // it ran longer than its timeout
	KindMemory     FailureKind = "memory"     // it exceeded its memory limit
	KindLost       FailureKind = "lost"       // its worker died, too many times
	KindCancelled  FailureKind = "cancelled"  // it was cancelled
	KindUpstream   FailureKind = "upstream"   // a future that it depends on failed
	KindInfeasible FailureKind = "infeasible" // no worker can ever run it
	KindUnloadable FailureKind = "unloadable" // its code can't be loaded
	KindTooLarge   FailureKind = "too_large"  // its result exceeds the limit
	KindExpired    FailureKind = "expired"    // it waited longer than it may
	KindDeadline   FailureKind = "deadline"   // its deadline has passed
)

// Retryable reports whether another attempt may end differently.
func (k FailureKind) Retryable() bool {
	switch k {
	case KindError, KindExit, KindPanic, KindTimeout, KindMemory:
		return true
	default:
		return false
	}
}
