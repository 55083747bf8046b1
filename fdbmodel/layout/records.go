package layout

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Codecs say how the bytes of arguments and results are meant.
const (
	CodecMsgpack = "msgpack" // a msgpack value, what typed Go functions use
	CodecJSON    = "json"    // a JSON value, what typed Go functions take from other languages
	CodecRaw     = "raw"     // bytes as they are; standard input of a WASM function
	CodecArgv    = "argv"    // no bytes; the arguments are Spec.Argv
)

// CodecKey is the key under which the context of a Go function has the codec of
// its arguments, a string. The result is to be of the same one.
type CodecKey struct{}

// Requirements are what a worker must have free to take a future. Every
// future takes one slot of its worker as well. RAM is also the most memory that
// a WASM function gets; Go functions are held to nothing.
type Requirements struct {
	CPU    int64             `msgpack:"c,omitempty" json:"cpu_millis,omitempty"` // thousandths of a core
	RAM    int64             `msgpack:"r,omitempty" json:"ram_bytes,omitempty"`  // bytes
	GPU    int64             `msgpack:"g,omitempty" json:"gpu_millis,omitempty"` // thousandths of a device
	Labels map[string]string `msgpack:"l,omitempty" json:"labels,omitempty"`     // reserved for placement
}

// Backoff says how long a failed future waits for its next attempt: Base
// doubled with each failed attempt, at most Max, times a random factor between
// 0.5 and 1.5.
type Backoff struct {
	Base time.Duration `msgpack:"b,omitempty" json:"base_ns,omitempty"` // Defaults to 1 s.
	Max  time.Duration `msgpack:"m,omitempty" json:"max_ns,omitempty"`  // Defaults to 5 min.
}

// ChunkRef points at a value that is too large for its record and lies in
// pieces in the chunks subspace.
type ChunkRef struct {
	Kind  string `msgpack:"k" json:"kind"`  // args, result or stderr
	Token string `msgpack:"t" json:"token"` // who wrote it: the claim for results
	Size  int64  `msgpack:"s" json:"size"`  // bytes
	Count int    `msgpack:"n" json:"count"` // chunks
}

// Spec is what never changes of a future: what to run, with what, where it may
// run and what happens when it fails.
type Spec struct {
	Function string            `msgpack:"f" json:"function"`
	Codec    string            `msgpack:"c,omitempty" json:"codec,omitempty"`
	Args     []byte            `msgpack:"a,omitempty" json:"-"`           // where they are small
	ArgsSize int64             `msgpack:"az,omitempty" json:"args_bytes"` // wherever they are
	ArgsRef  *ChunkRef         `msgpack:"ar,omitempty" json:"-"`          // if large
	ArgsKey  bool              `msgpack:"ak,omitempty" json:"-"`          // where they have a key of their own
	Argv     []string          `msgpack:"av,omitempty" json:"argv,omitempty"`
	Env      map[string]string `msgpack:"e,omitempty" json:"env,omitempty"`

	Queue        string       `msgpack:"q,omitempty" json:"queue"`
	Group        string       `msgpack:"g,omitempty" json:"group,omitempty"`
	Held         bool         `msgpack:"h,omitempty" json:"held,omitempty"` // waits for Assign, never in the pool
	Tenant       string       `msgpack:"tn,omitempty" json:"tenant,omitempty"`
	Priority     uint8        `msgpack:"p,omitempty" json:"priority"`
	Requirements Requirements `msgpack:"r,omitempty" json:"requirements"`

	// Parallel is how many futures of its group one worker runs at a time, if
	// not 0. Pace bounds how often a worker starts what is alike.
	Parallel int   `msgpack:"pl,omitempty" json:"parallel,omitempty"`
	Pace     *Pace `msgpack:"pc,omitempty" json:"pace,omitempty"`

	MaxRetries          int           `msgpack:"mr,omitempty" json:"max_retries"`
	Backoff             Backoff       `msgpack:"b,omitempty" json:"backoff"`
	Timeout             time.Duration `msgpack:"to,omitempty" json:"timeout_ns,omitempty"`
	AllowReconstruction bool          `msgpack:"rc,omitempty" json:"allow_reconstruction,omitempty"`

	Session     SessionID         `msgpack:"s,omitempty" json:"session,omitempty"`
	Trace       map[string]string `msgpack:"t,omitempty" json:"trace,omitempty"`
	SubmittedAt int64             `msgpack:"at" json:"submitted_at_ms"`
}

// Pace says that one worker starts at most PerSecond futures per second of those
// with the same Key, such as the host that they call.
type Pace struct {
	Key       string  `msgpack:"k" json:"key"`
	PerSecond float64 `msgpack:"s" json:"per_second"`
}

// Class is the class of the future in the ready index.
func (s *Spec) Class() Class {
	r := s.Requirements
	return Class{Queue: s.Queue, Group: s.Group, Cpu: r.CPU, Ram: r.RAM, Gpu: r.GPU}
}

// Token is the fence of a claim: which worker took the future, and with which
// of its claim transactions. There is no time in it.
type Token struct {
	Worker   WorkerID `msgpack:"w" json:"worker"`
	Sequence int64    `msgpack:"s" json:"sequence"`
}

// Claim says who holds a future. It stays in place when the future is realized,
// beside the result that carries the same token.
type Claim struct {
	Token
	Stamp kv.Stamp `msgpack:"-" json:"-"`
}

// Attempts counts what a future has been through and says where it waits.
type Attempts struct {
	Failed  int   `msgpack:"n,omitempty" json:"failed,omitempty"`   // attempts that ended in a failure
	Crashes int   `msgpack:"c,omitempty" json:"crashes,omitempty"`  // claims that ended with the death of their worker
	PutBack int   `msgpack:"p,omitempty" json:"put_back,omitempty"` // claims given back by workers that could not run it
	Due     int64 `msgpack:"d,omitempty" json:"due_ms,omitempty"`   // waits until then, if not 0
	// Assigned is the worker that it waits for while it is ready, and that may
	// get it back when it is given back. Why is what whoever assigned it last said,
	// such as the chunk of a batch.
	Assigned WorkerID `msgpack:"w,omitempty" json:"assigned,omitempty"`
	Why      string   `msgpack:"y,omitempty" json:"why,omitempty"`
}

// Exception is the last failure of a future.
type Exception struct {
	Kind      FailureKind `msgpack:"k" json:"kind"`
	Message   string      `msgpack:"m,omitempty" json:"message,omitempty"`
	Attempt   int         `msgpack:"a,omitempty" json:"attempt,omitempty"`
	Worker    WorkerID    `msgpack:"w,omitempty" json:"worker,omitempty"`
	Final     bool        `msgpack:"f,omitempty" json:"final"`
	Permanent bool        `msgpack:"p,omitempty" json:"permanent,omitempty"` // no attempt after it could help
	At        int64       `msgpack:"t" json:"at_ms"`
	ExitCode  int         `msgpack:"x,omitempty" json:"exit_code,omitempty"`
	Stdout    []byte      `msgpack:"o,omitempty" json:"stdout,omitempty"`
	Stderr    []byte      `msgpack:"e,omitempty" json:"stderr,omitempty"`
	StderrRef *ChunkRef   `msgpack:"er,omitempty" json:"-"`
	Truncated bool        `msgpack:"tr,omitempty" json:"truncated,omitempty"`
	// FailedOn are the workers of the last attempts that failed, at most 8, this
	// one's last. They are kept for held futures only.
	FailedOn []WorkerID `msgpack:"fo,omitempty" json:"failed_on,omitempty"`
}

// CancelRequest asks whoever runs a future to stop.
type CancelRequest struct {
	Reason string `msgpack:"r,omitempty" json:"reason,omitempty"`
	At     int64  `msgpack:"t" json:"at_ms"`
}

// Result is what a future came to.
type Result struct {
	Token
	Codec     string        `msgpack:"c,omitempty" json:"codec,omitempty"`
	Value     []byte        `msgpack:"v,omitempty" json:"value,omitempty"`
	ValueRef  *ChunkRef     `msgpack:"vr,omitempty" json:"-"`
	Size      int64         `msgpack:"z,omitempty" json:"size"`
	ExitCode  int           `msgpack:"x,omitempty" json:"exit_code,omitempty"`
	Stderr    []byte        `msgpack:"e,omitempty" json:"stderr,omitempty"`
	StderrRef *ChunkRef     `msgpack:"er,omitempty" json:"-"`
	Truncated bool          `msgpack:"tr,omitempty" json:"truncated,omitempty"`
	Attempt   int           `msgpack:"a,omitempty" json:"attempt"`
	RunTime   time.Duration `msgpack:"d,omitempty" json:"run_time_ns"`
	At        int64         `msgpack:"t" json:"at_ms"`
	Stamp     kv.Stamp      `msgpack:"-" json:"-"`
}

// Resources are what a worker offers or has free.
type Resources struct {
	Slots int   `msgpack:"s" json:"slots"`
	CPU   int64 `msgpack:"c,omitempty" json:"cpu_millis"`
	RAM   int64 `msgpack:"r,omitempty" json:"ram_bytes"`
	GPU   int64 `msgpack:"g,omitempty" json:"gpu_millis"`
}

// Fit tells whether a future with these requirements fits.
func (r Resources) Fit(q Requirements) bool {
	return r.Slots > 0 && r.CPU >= q.CPU && r.RAM >= q.RAM && r.GPU >= q.GPU
}

// Take returns what is left when a future with these requirements runs.
func (r Resources) Take(q Requirements) Resources {
	return Resources{Slots: r.Slots - 1, CPU: r.CPU - q.CPU, RAM: r.RAM - q.RAM, GPU: r.GPU - q.GPU}
}

// Give returns what is free when such a future has ended.
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
	Capacity  Resources `msgpack:"c" json:"capacity"`
	StartedAt int64     `msgpack:"t" json:"started_at_ms"`
	Opening   string    `msgpack:"o,omitempty" json:"-"` // the opening of an embedded store that it belongs to
	Process   int       `msgpack:"p,omitempty" json:"process,omitempty"`
	Version   string    `msgpack:"v,omitempty" json:"version,omitempty"`
	// Connection names the connection to the process that has the store open,
	// where the worker reaches it through one.
	Connection string `msgpack:"x,omitempty" json:"connection,omitempty"`
}

// Runs tells whether the worker can run a function.
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

// Heartbeat is what a worker says of itself again and again. Only its change
// says that the worker lives; its time is for people.
type Heartbeat struct {
	Count   int64     `msgpack:"n" json:"count"`
	Free    Resources `msgpack:"f" json:"free"`
	Running int       `msgpack:"r,omitempty" json:"running"`
	At      int64     `msgpack:"t" json:"at_ms"`
}

// DoneEntry lists futures that finished in one transaction.
type DoneEntry struct {
	At  int64  `msgpack:"t" json:"at_ms"`
	IDs IdList `msgpack:"i" json:"ids"`
}

// SessionRecord is the sign of life of a client process.
type SessionRecord struct {
	Count   int64  `msgpack:"n"`
	At      int64  `msgpack:"t" json:"at_ms"`
	Opening string `msgpack:"o,omitempty"`
}

// JanitorRecord names the worker whose janitor is at work.
type JanitorRecord struct {
	Worker WorkerID `msgpack:"w"`
	Count  int64    `msgpack:"n"`
}

// FailureKind says why an attempt, or a future, failed.
type FailureKind string

// The kinds of failure, the same words everywhere.
const (
	KindError      FailureKind = "error"      // the function returned an error
	KindExit       FailureKind = "exit"       // the module ended with an exit code other than 0
	KindPanic      FailureKind = "panic"      // the function panicked, the module trapped
	KindTimeout    FailureKind = "timeout"    // it ran longer than its timeout
	KindMemory     FailureKind = "memory"     // it needed more memory than it may have
	KindLost       FailureKind = "lost"       // its worker died, too many times
	KindCancelled  FailureKind = "cancelled"  // it was cancelled
	KindUpstream   FailureKind = "upstream"   // a future that it depends on failed
	KindInfeasible FailureKind = "infeasible" // no worker can ever run it
	KindUnloadable FailureKind = "unloadable" // its code can't be loaded
	KindTooLarge   FailureKind = "too_large"  // its result exceeds the limit
)

// Retryable tells whether another attempt may end differently.
func (k FailureKind) Retryable() bool {
	switch k {
	case KindError, KindExit, KindPanic, KindTimeout, KindMemory:
		return true
	default:
		return false
	}
}
