package futures

import (
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Names of the model that applications need.
type (
	// ID names a future for ever. It prints as a UUID.
	ID = layout.ID
	// WorkerID names one start of a worker.
	WorkerID = layout.WorkerID
	// State is where a future is in its life.
	State = layout.State
	// FailureKind says why an attempt, or a future, failed.
	FailureKind = layout.FailureKind
	// Requirements are what a worker must have free to take a future.
	Requirements = layout.Requirements
	// Config is what all processes of a cluster agree on.
	Config = layout.Config
	// Filter says which futures List returns.
	Filter = inspect.Filter
	// Explanation says why a future is not running, or where it runs.
	Explanation = inspect.Explanation
	// Counts are numbers of futures by queue, group and state.
	Counts = layout.Counts
)

// ParseID reads an id as it prints. It returns ErrBadID.
func ParseID(text string) (ID, error) { return layout.ParseID(text) }

// The states of a future.
const (
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
)

// Codecs say how the bytes of arguments and results are meant.
const (
	CodecMsgpack = layout.CodecMsgpack // a msgpack value, as typed functions have it
	CodecJSON    = layout.CodecJSON    // a JSON value, as typed functions take it from other languages
	CodecRaw     = layout.CodecRaw     // bytes as they are
	CodecArgv    = layout.CodecArgv    // no bytes: the arguments are Task.Argv
)

// Errors of the model and of the store.
var (
	// ErrNotFound is returned when there is no such future: it never was, or
	// its retention has passed, or it was discarded.
	ErrNotFound = fdbmodel.ErrNotFound
	// ErrBadID is returned when text is not an id.
	ErrBadID = layout.ErrBadID
	// ErrBadName is returned for a cluster, queue, function or alias with a name
	// that it can't have.
	ErrBadName = layout.ErrBadName
	// ErrBadSpec is returned when a future can't be submitted as it is described.
	ErrBadSpec = layout.ErrBadSpec
	// ErrUnfit is returned for a future that is for a worker that can never run it.
	ErrUnfit = layout.ErrUnfit
	// ErrBadCursor is returned by List for a cursor of no list.
	ErrBadCursor = layout.ErrBadCursor
	// ErrTooLarge is returned when arguments or a result exceed their limit.
	ErrTooLarge = fdbmodel.ErrTooLarge
	// ErrIDInUse is returned by Submit when the id or key belongs to a future with
	// other content.
	ErrIDInUse = fdbmodel.ErrIDInUse
	// ErrTransition is returned when a future is in a state that does not allow
	// what was asked, such as a Discard of one that is running.
	ErrTransition = fdbmodel.ErrTransition
	// ErrNewerRecord is returned for what a newer version of Futura has written.
	ErrNewerRecord = layout.ErrNewerRecord
	// ErrUnknownResult is returned when it is not known whether a change has
	// happened.
	ErrUnknownResult = kv.ErrUnknownResult
)
