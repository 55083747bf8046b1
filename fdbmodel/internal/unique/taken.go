package unique

import (
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// ErrTaken is returned by submit and retry when another future has the name of
// a unique one. Every TakenError matches it.
var ErrTaken = errors.New("not unique")

// TakenError says which future has the name of a unique one. Nothing was
// changed.
type TakenError struct {
	// ID is the future that has the name, and State its state: 0 if it was removed
	// and kept the name. The ID is zero if an earlier task of the same call or transaction
	// has it: neither of them is made.
	ID    layout.ID
	State layout.State
	// Task is the number of that earlier task of the same call, counted from 1; 0 for
	// none, and for one of an earlier call in the same transaction.
	Task int
	// Name and Key say what both have in common. Key is cut, and empty if the name
	// was made without one.
	Name layout.UniqueName
	Key  string
	// Until and FreeAt say when the other gives up the name. FreeAt is the zero time
	// if no period says so.
	Until  layout.UniqueUntil
	FreeAt time.Time
	// Differs is the first part of the other future that differs, such as
	// "arguments"; empty if it is the same work.
	Differs string

	notReplaced bool // it was to be replaced
	begun       bool
	period      bool // FreeAt is still to come
}

// Unwrap returns ErrTaken.
func (e *TakenError) Unwrap() error { return ErrTaken }

// CountTask has a TakenError that names a task of its transaction count those of earlier transactions of the call too.
func CountTask(err error, before int) {
	var taken *TakenError
	if errors.As(err, &taken) && taken.Task > 0 {
		taken.Task += before
	}
}

// Error implements error.
func (e *TakenError) Error() string {
	what := "the same work"
	if e.Key != "" {
		what = fmt.Sprintf("the key %.80q", e.Key)
	}
	text := fmt.Sprintf("%v: %s has %s", ErrTaken, e.holder(), what)
	if e.Differs != "" {
		text += ", with other " + e.Differs
	}
	return text + ": " + e.remedy()
}

func (e *TakenError) holder() string {
	switch {
	case e.Task > 0:
		return fmt.Sprintf("task %d of the same call", e.Task)
	case e.ID.IsZero():
		return "an earlier task of the same transaction"
	case e.State == 0:
		return fmt.Sprintf("future %s (which was removed)", e.ID)
	default:
		return fmt.Sprintf("future %s (%s)", e.ID, e.State)
	}
}

// remedy says how long the other one keeps the name, and what helps.
func (e *TakenError) remedy() string {
	if e.ID.IsZero() {
		return "submit one of them"
	}
	release := fmt.Sprintf("futura unique release --name %s", e.Name)
	over := e.State == 0 || e.State.Terminal()
	waits := !over && !e.begun
	var why, replace string
	switch {
	case !e.notReplaced && waits:
		replace = "replace it, "
	case !e.notReplaced:
	case over:
		why = "it is over and is not replaced; "
	case waits:
		why = "it gets in line for its lane at the same time and is not replaced; "
	default:
		why = "it has begun and is not replaced; "
	}
	why += "it keeps it " + e.until(over)
	switch {
	case over && e.period:
		return why + ": wait until then, release it (" + release + "), or use another key"
	case over && e.Until == layout.UntilEver:
		return why + ": release it (" + release + "), or use another key"
	case e.period || e.Until == layout.UntilEver:
		return why + ": " + replace + "use another key, or release it once it is over (" + release + ")"
	default:
		return why + ": await it, " + replace + "cancel it, or use another key"
	}
}

// until is when the other one gives up the name by itself.
func (e *TakenError) until(over bool) string {
	at := e.FreeAt.UTC().Format(time.RFC3339)
	switch {
	case e.Until == layout.UntilEver:
		return "for ever"
	case e.period && (over || e.begun && e.Until == layout.UntilClaim):
		return "until " + at
	case e.Until == layout.UntilClaim && e.period:
		return "until a worker claims it, and until " + at + " at least"
	case e.Until == layout.UntilClaim:
		return "until a worker claims it"
	case e.period:
		return "until it is over, and until " + at + " at least"
	default:
		return "until it is over"
	}
}
