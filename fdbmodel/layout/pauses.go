package layout

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// What can be paused.
const (
	PauseQueue    = "queue"
	PauseFunction = "function"
)

// PauseRecord says that no worker takes futures of a queue, or of a function.
type PauseRecord struct {
	// At is since when, in milliseconds of Unix time, and Reason why.
	At     int64  `msgpack:"t" json:"at_ms"`
	Reason string `msgpack:"r,omitempty" json:"reason,omitempty"`
}

// CheckPause returns ErrBadName unless what is a queue or a function, and name may be
// the name of one.
func CheckPause(what, name string) error {
	switch what {
	case PauseQueue:
		return CheckQueueName(name)
	case PauseFunction:
		return CheckFunctionName(name)
	default:
		return fmt.Errorf("%w: %.40q can't be paused: use queue or function", ErrBadName, what)
	}
}

// Pauses returns the prefix of what is paused.
func (k Keyspace) Pauses() []byte { return k.Global(SubPauses) }

// Pause returns the key that says that a queue, or a function, is paused.
func (k Keyspace) Pause(what, name string) []byte {
	return tuple.AppendString(tuple.AppendString(k.Pauses(), what), name)
}
