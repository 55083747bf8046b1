package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/seam"
)

// Function is a Go function that a worker runs: from the bytes of the arguments
// to those of the result. It ends soon after its context does. The context's
// cause says why: a timeout, a cancel, a shutdown, a lost claim.
type Function func(ctx context.Context, args []byte) ([]byte, error)

// ModuleRunner runs WASM modules. Package workers/wasm has one.
type ModuleRunner interface {
	// RunModule calls a module and returns once it has ended, at the latest shortly
	// after ctx has. A failure of the module is in the outcome; an error says
	// that the runner itself failed, and another worker may do better.
	RunModule(ctx context.Context, call ModuleCall) (ModuleOutcome, error)
}

// ModuleCall is one call of a module.
type ModuleCall struct {
	// CID is the module's content id, and Method the export to call, empty for its
	// start.
	CID, Method string
	// Load fetches the module's bytes.
	Load func(context.Context) ([]byte, error)
	// Argv are the arguments behind the function's own name.
	Argv  []string
	Env   map[string]string
	Stdin []byte
	// Input, if not nil, returns what the module reads instead of Stdin, as it reads it.
	// It may be called more than once. If its Read returns an error, so does RunModule.
	Input func(ctx context.Context) io.Reader
	// Output, if not nil, takes the standard output of a module that writes more than
	// the runner wants to have in memory. If its Write returns an error, so does
	// RunModule. With OutputBound it is bounded like output that is in memory.
	Output      io.Writer
	OutputBound bool
	// Host answers what the module asks. If it returns an error, so does RunModule.
	Host ModuleHost
	// Timeout is the longest that the call may run, 0 for as long as ctx allows.
	Timeout time.Duration
	// MemoryLimit is the most memory that it may have, in bytes, 0 for what the
	// runner allows. That is at most MaxMemory, if it is not 0.
	MemoryLimit, MaxMemory int64
}

// ModuleHost answers what a module asks by what it imports from "futura":
//
//   - step_get, by a name, for what an earlier attempt has recorded of the next step of that name;
//   - step_put for the record of the step that step_get has not found, before it returns;
//   - state_get for the state of the actor that it is a call of, and state_put and state_delete for what that
//     becomes with its result.
//
// The value is valid until it returns. An error ends the call.
type ModuleHost func(ctx context.Context, function, name string, value []byte) (answer []byte, found bool, err error)

// ModuleOutcome is the outcome of a call.
type ModuleOutcome struct {
	// Stdout is the standard output, or its beginning if Output has taken the whole.
	Stdout, Stderr []byte
	ExitCode       int
	// Truncated is set when Stderr is the end of a longer stream.
	Truncated bool
	// Usage is what the call took, as far as the runner knows it.
	Usage layout.Usage
	// Kind is why the call failed, empty if it did not.
	Kind    layout.FailureKind
	Message string
}

// Options of a worker. The zero value runs Go functions of the queue default
// with all of the machine. A worker has its own copies of the slices and maps.
type Options struct {
	// Name is shown to people. Defaults to none.
	Name string
	// Address, such as "10.0.0.1:7000", makes the worker take over from the
	// previous worker at this address: its futures are taken back at start.
	// Defaults to none.
	Address string
	// Queues that the worker serves. Defaults to "default".
	Queues []string
	// Labels are those that futures may require, besides worker=NAME and
	// address=ADDRESS, which a worker has if it has a Name and an Address that
	// are valid values. Default to none.
	Labels map[string]string
	// Slots is how many futures run at a time, at most 100,000, not counting those
	// that wait for others. Defaults to GOMAXPROCS.
	Slots int
	// MaxAwaiting is how many functions of one name may wait for other futures at a
	// time. A Go function that awaits a future in its own context gives its slot and
	// its CPU to others meanwhile, and keeps its RAM and GPU. When the wait is over,
	// it goes on before anything new starts. The worker starts no more of a function
	// of which so many wait; functions of other names go on. Only a function that
	// awaits futures of its own name can come to a stop that way, and then the log
	// and Explain say so. Defaults to 1,000.
	MaxAwaiting int
	// CPU (thousandths of a core), RAM (bytes) and GPU (thousandths of a
	// device) are what futures with requirements share. CPU defaults to 1000
	// for each GOMAXPROCS, which heeds the limit of a container; RAM to the
	// machine's, or to the limit of the control group; GPU to 0.
	CPU, RAM, GPU int64
	// Modules runs WASM modules, such as a wasm.Executor. Defaults to none: the
	// worker takes no WASM futures.
	Modules ModuleRunner
	// ModuleTimeout is the timeout of a module whose future has none, neither of its own
	// nor by a Policy. Negative for none: a module that never ends then keeps its slot. It
	// does not hold for a Remote, which has its own. Defaults to 1 h.
	ModuleTimeout time.Duration
	// Remote runs the worker's functions elsewhere, all but those that its lanes call
	// with members, which it does not take. Middleware is not around them. Defaults to
	// none.
	Remote Remote
	// Objects is the worker's store of results that are objects. Defaults to none.
	Objects ObjectOptions
	// NoHints makes a worker with an object store refuse the hints of other processes
	// that there is work for it, and give them none of results. Defaults to false; see
	// futures.Options.NoHints for what hints are.
	NoHints bool
	// AwaitsRoom makes Run wait for a store that can only be read, such as one on a full disk, with a warning: the
	// worker registers once it can be written. Defaults to false: Run returns kv.ErrReadOnly.
	AwaitsRoom bool
	// Policy limits what the functions of this worker get: a timeout or a memory
	// limit of a module above it is cut, and a larger result fails its future. The
	// policy of the cluster holds as well. MaxPriority has no effect: only the
	// cluster's does. Defaults to no limits.
	Policy layout.Policy
	// Middleware is around every call of a function, Go or WASM, but for those with many
	// futures of a lane, the first one outermost. FunctionMiddleware is within it, around the calls of functions by
	// the names that futures have, such as go:resize, wasm:CID or wasm:CID/METHOD.
	// Default to none.
	Middleware         []Middleware
	FunctionMiddleware map[string][]Middleware
	// Poll is how often an idle worker looks for work without a hint: four polls
	// cover all shards. Of up to 128 idle workers that can run the same, with as much
	// free, one looks that often, in turn, and each at least once a minute: what a label
	// requires one of them for waits longer if its hint is lost. Defaults to 1 s.
	Poll time.Duration
	// Fleet is what the worker shares with others of its process. Defaults to none.
	Fleet *Fleet
	// DrainTimeout is how long running functions may go on after Run's context
	// has ended. Defaults to 25 s: Kubernetes kills a process after 30 s, and what
	// still runs then would not be given back.
	DrainTimeout time.Duration
	// Logger is told what goes wrong: each failed attempt at the level warn, with
	// the stack of a panic, and each future that failed for good at the level
	// error. Of failures that differ only in numbers and ids, five in a minute
	// have lines of their own, unless the level debug is on; the others are
	// counted in one line. Defaults to none.
	Logger *slog.Logger
	// OnAttemptFailed is called after each failed attempt of this worker, once
	// the store has recorded it, and OnFailed for each future that this worker saw
	// fail for good, after OnAttemptFailed; futures that were cancelled are none.
	// A worker that takes back the futures of dead ones sees those fail that too
	// many workers died with, and those that no worker could run. Hooks are called from several goroutines, and hold up
	// the worker until they return. Default to none.
	OnAttemptFailed, OnFailed func(Failure)
	// Source has futures for the worker that the store does not have. Defaults to none.
	Source Source
	// StreamsOutput says that all middleware passes on what functions return as it is, so that
	// large output of modules need not be in memory. Defaults to false.
	StreamsOutput bool
	// Seam is for packages of this module; others can't construct one.
	Seam *seam.Worker
}

// defaultDrain leaves a process that has 30 s to end the time to give back what
// still runs.
const defaultDrain = 25 * time.Second

// defaultMaxAwaiting bounds the stacks of functions that wait.
const defaultMaxAwaiting = 1000

// DefaultModuleTimeout is the default of Options.ModuleTimeout.
const DefaultModuleTimeout = time.Hour

// maxSlots bounds the goroutines that wait for work.
const maxSlots = 100_000

func (o Options) withDefaults() Options {
	o.Queues, o.Labels = slices.Clone(o.Queues), maps.Clone(o.Labels)
	o.Middleware, o.FunctionMiddleware = slices.Clone(o.Middleware), maps.Clone(o.FunctionMiddleware)
	if len(o.Queues) == 0 {
		o.Queues = []string{layout.DefaultQueue}
	}
	o.Slots = cmp.Or(o.Slots, runtime.GOMAXPROCS(0))
	o.MaxAwaiting = cmp.Or(o.MaxAwaiting, defaultMaxAwaiting)
	o.ModuleTimeout = cmp.Or(o.ModuleTimeout, DefaultModuleTimeout)
	o.CPU = cmp.Or(o.CPU, 1000*int64(runtime.GOMAXPROCS(0)))
	if o.RAM == 0 {
		o.RAM = machineMemory()
	}
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, defaultDrain)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o *Options) validate() error {
	if o.Slots > maxSlots {
		return fmt.Errorf("workers: slots %d: at most %d, since each has a goroutine; run several workers", o.Slots, maxSlots)
	}
	if o.MaxAwaiting < 1 {
		return fmt.Errorf("workers: at most %d functions of a name may await others: allow at least 1", o.MaxAwaiting)
	}
	if o.Slots < 1 || o.CPU < 0 || o.RAM < 0 || o.GPU < 0 || o.Poll < 0 || o.DrainTimeout < 0 {
		return fmt.Errorf("workers: slots %d, cpu %d, ram %d, gpu %d, poll %v, drain %v: slots must be positive and "+
			"nothing negative", o.Slots, o.CPU, o.RAM, o.GPU, o.Poll, o.DrainTimeout)
	}
	if o.Remote != nil && o.Modules != nil {
		return errors.New("workers: a worker with a Remote has no Modules: make two workers")
	}
	if err := o.Policy.Validate(); err != nil {
		return err
	}
	if err := o.validateMiddleware(); err != nil {
		return err
	}
	for name, value := range o.Labels {
		if err := layout.CheckLabel(name, value); err != nil {
			return err
		}
		if name == layout.LabelPeer && o.Remote == nil {
			return fmt.Errorf("%w: label %s: only peers have it, given by the head that they are connected to",
				layout.ErrBadName, name)
		}
	}
	for _, queue := range o.Queues {
		if err := layout.CheckQueueName(queue); err != nil {
			return err
		}
	}
	return nil
}
