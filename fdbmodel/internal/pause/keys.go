package pause

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// What can be paused.
const (
	Queue    = "queue"
	Function = "function"
)

// Record says that no worker takes futures of a queue, or of a function.
type Record struct {
	// At is since when, in milliseconds of Unix time, and Reason why.
	At     int64  `msgpack:"t" json:"at_ms"`
	Reason string `msgpack:"r,omitempty" json:"reason,omitempty"`
}

// Check returns ErrBadName unless what is a queue or a function, and name may be
// the name of one.
func Check(what, name string) error {
	switch what {
	case Queue:
		return layout.CheckQueueName(name)
	case Function:
		return layout.CheckFunctionName(name)
	default:
		return fmt.Errorf("%w: %.40q can't be paused: use queue or function", layout.ErrBadName, what)
	}
}

// part is what the keys of what is paused have within the bulletin.
const part = "paused"

// KeyPause is the kind of key of what is paused.
const KeyPause = "pause"

// Kinds returns the kind of key of what is paused.
func Kinds() []layout.KeyKind {
	return []layout.KeyKind{{
		Name: KeyPause, Subspace: layout.SubBulletin, Record: layout.RecordOf[Record],
		Elements: []layout.Element{layout.Fixed(part), layout.Choice("what", Function, Queue), layout.Text("name")},
		Holds:    "no worker takes futures of a function, or of a queue", Writer: "Pause; cleared by Resume",
	}}
}

var table = layout.NewTable(Kinds())

// Parse splits a key of what is paused.
func Parse(key []byte) (what, name string) {
	k := table.Parse(key)
	if k.Kind == nil {
		return "", ""
	}
	return k.Text("what"), k.Text("name")
}

// Keys makes the keys of what is paused.
type Keys layout.Keyspace

// All returns the prefix of what is paused.
func (k Keys) All() []byte { return tuple.AppendString(layout.Keyspace(k).Bulletin(), part) }

// Pause returns the key that says that a queue, or a function, is paused.
func (k Keys) Pause(what, name string) []byte {
	return tuple.AppendString(tuple.AppendString(k.All(), what), name)
}
