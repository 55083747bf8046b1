package futures

import (
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Names of the model that applications need.
type (
	// ID identifies a future forever. It prints as a UUID.
	ID = layout.ID
	// WorkerID identifies one membership of a worker.
	WorkerID = layout.WorkerID
	// State is a future's place in its life cycle.
	State = layout.State
	// FailureKind says why an attempt, or a future, failed.
	FailureKind = layout.FailureKind
	// Requirements are what a worker must have free to take a future.
	Requirements = layout.Requirements
	// Config has the settings that all processes of a cluster share.
	Config = layout.Config
	// Filter selects the futures that List returns.
	Filter = inspect.Filter
	// Explanation says why a future is not running, or where it runs.
	Explanation = inspect.Explanation
	// Counts are numbers of futures by queue, owner and state.
	Counts = layout.Counts
	// Cluster is the data model below a client, for packages that take one.
	Cluster = fdbmodel.Cluster
)

// ParseID parses the printed form of an id. It returns ErrBadID for anything
// else.
func ParseID(text string) (ID, error) { return layout.ParseID(text) }

// The states of a future.
const (
	Blocked  = layout.Blocked  // waits for the results of other futures
	Ready    = layout.Ready    // waits for a worker
	Delayed  = layout.Delayed  // waits for its time
	Claimed  = layout.Claimed  // a worker holds it
	Realized = layout.Realized // has its result
	Failed   = layout.Failed   // failed for good
)

// The kinds of failure.
const (
	KindError      = layout.KindError      // the function returned an error
	KindExit       = layout.KindExit       // the module ended with an exit code other than 0
	KindPanic      = layout.KindPanic      // the function panicked, the module trapped
	KindTimeout    = layout.KindTimeout    // it ran longer than its timeout
	KindMemory     = layout.KindMemory     // it needed more memory than it may have
	KindLost       = layout.KindLost       // its worker died, too many times
	KindCancelled  = layout.KindCancelled  // it was cancelled
	KindUpstream   = layout.KindUpstream   // a future that it depends on failed
	KindInfeasible = layout.KindInfeasible // no worker can ever run it
	KindUnloadable = layout.KindUnloadable // its code can't be loaded
	KindTooLarge   = layout.KindTooLarge   // its result exceeds the limit
	KindExpired    = layout.KindExpired    // it waited longer than it may
	KindDeadline   = layout.KindDeadline   // its deadline has passed
)

// Codecs are encodings of arguments and results.
const (
	CodecMsgpack = layout.CodecMsgpack // a msgpack value, as typed functions use it
	CodecJSON    = layout.CodecJSON    // a JSON value, as typed functions take it from other languages
	CodecRaw     = layout.CodecRaw     // bytes as they are
	CodecArgv    = layout.CodecArgv    // no bytes: the arguments are Task.Argv
	CodecInputs  = layout.CodecInputs  // no bytes: the arguments are the results of Task.After, one after the other
)

// Errors of the model and of the store.
var (
	// ErrNotFound is returned when a future does not exist: it was never
	// submitted, its retention has passed, or it was discarded.
	ErrNotFound = fdbmodel.ErrNotFound
	// ErrBadID is returned when text is not an id.
	ErrBadID = layout.ErrBadID
	// ErrBadName is returned for an invalid name of a cluster, queue, function or
	// alias.
	ErrBadName = layout.ErrBadName
	// ErrBadSpec is returned when the description of a future is invalid.
	ErrBadSpec = layout.ErrBadSpec
	// ErrUnfit is returned for a future that names a worker that can never run it,
	// and with Task.RequireFit for one that no worker could.
	ErrUnfit = layout.ErrUnfit
	// ErrBadCursor is returned by List for an invalid cursor.
	ErrBadCursor = layout.ErrBadCursor
	// ErrTooLarge is returned when arguments or a result exceed their limit.
	ErrTooLarge = fdbmodel.ErrTooLarge
	// ErrIDInUse is returned by Submit when the id or key belongs to a future with
	// other content.
	ErrIDInUse = fdbmodel.ErrIDInUse
	// ErrTransition is returned when the state of a future does not allow the
	// operation, such as a Discard of one that is running.
	ErrTransition = fdbmodel.ErrTransition
	// ErrNewerRecord is returned for a record that a newer version of Futura has
	// written.
	ErrNewerRecord = layout.ErrNewerRecord
	// ErrUnknownResult is returned when it is unknown whether a change was
	// committed.
	ErrUnknownResult = kv.ErrUnknownResult
)
