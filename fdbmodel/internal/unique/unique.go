// Package unique has the names of unique futures: what they are made from, which future has one, and
// what differs between two futures.
package unique

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Unique has a future be the only one of its kind: no other future with the same
// name may be submitted while it has that. The name is made from a key, from parts
// of the future, or from both.
type Unique struct {
	// Key is any text of up to MaxUniqueKey bytes. Defaults to none.
	Key string
	// By are the parts of the future that the name is made from as well. Defaults to
	// none with a key, and to all of them without one.
	By []Part
	// Until says when the future gives up the name. Defaults to UntilEnd. With UntilClaim, one that a
	// worker gives back before anything of an attempt is left has the name again,
	// unless another future took it meanwhile.
	Until layout.UniqueUntil
	// For keeps the name for a period from the submit on, even if the future ends
	// before that: at most 366 days, none with UntilEver. Defaults to none.
	For time.Duration
	// OnConflict says what becomes of a submit while another future has the name.
	// Defaults to ConflictRefuse.
	OnConflict Conflict
}

// Part is a part of a future that its name is made from.
type Part string

// The parts of a future.
const (
	Function  Part = "function" // an alias counts as the module that it stands for
	Queue     Part = "queue"
	Arguments Part = "arguments" // with their codec, argv, the environment and the inputs
)

// Parts lists the parts of a future.
func Parts() []Part { return []Part{Function, Queue, Arguments} }

// Conflict says what becomes of a submit while another future has its name.
type Conflict string

const (
	// ConflictRefuse returns a TakenError.
	ConflictRefuse Conflict = ""
	// ConflictReturn returns the other future, even if its content differs, and if it was removed.
	ConflictReturn Conflict = "return"
	// ConflictReplace cancels the other future and gives its name to the new one, if
	// no worker has claimed the other. It returns a TakenError for one that is
	// claimed, or over: what has begun is not replaced.
	ConflictReplace Conflict = "replace"
)

// Check returns ErrBadSpec and ErrTooLarge.
func (u *Unique) Check() error {
	for _, part := range u.By {
		if !slices.Contains(Parts(), part) {
			return fmt.Errorf("%w: unique by %.20q: use function, queue or arguments", layout.ErrBadSpec, part)
		}
	}
	switch u.OnConflict {
	case ConflictRefuse, ConflictReturn, ConflictReplace:
	default:
		return fmt.Errorf("%w: on conflict %.20q: use refuse, return or replace", layout.ErrBadSpec, u.OnConflict)
	}
	if len(u.Key) > layout.MaxUniqueKey {
		return fmt.Errorf("%w: unique key of %d bytes: at most %d", layout.ErrTooLarge, len(u.Key), layout.MaxUniqueKey)
	}
	return layout.CheckUnique(u.Until, u.For)
}

// IsBy reports whether the name is made from a part of the future.
func (u *Unique) IsBy(part Part) bool {
	return u.Key == "" && len(u.By) == 0 || slices.Contains(u.By, part)
}

// Work is what a name may be made from.
type Work struct {
	Spec   *layout.Spec
	Args   []byte
	Inputs []layout.ID
}

// NameOf returns the name that a future has by u.
func (u *Unique) NameOf(work Work) layout.UniqueName {
	h := sha256.New()
	add := func(text string) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		h.Write([]byte(text))
	}
	add(u.Key)
	for _, part := range Parts() {
		if !u.IsBy(part) {
			continue
		}
		add(string(part))
		switch part {
		case Function:
			add(work.Spec.Function)
		case Queue:
			add(work.Spec.Queue)
		case Arguments:
			work.addArguments(add)
		}
	}
	return layout.UniqueName(fmt.Sprintf("%x", h.Sum(nil)[:16]))
}

// addArguments adds what OtherWork compares apart from the function and the queue.
func (w Work) addArguments(add func(string)) {
	add(w.Spec.Codec)
	if ref := w.Spec.ArgsRef; ref != nil {
		add(ref.Token)
	} else {
		add(ArgsToken(w.Args))
	}
	// Their numbers tell words from variables, whatever is in them.
	add(strconv.Itoa(len(w.Spec.Argv)))
	for _, word := range w.Spec.Argv {
		add(word)
	}
	add(strconv.Itoa(len(w.Spec.Env)))
	for _, name := range slices.Sorted(maps.Keys(w.Spec.Env)) {
		add(name)
		add(w.Spec.Env[name])
	}
	for _, id := range w.Inputs {
		add(string(id[:]))
	}
}

// ArgsToken is the token of the reference that PutArgs returns for arguments.
func ArgsToken(args []byte) string {
	sum := sha256.Sum256(args)
	return fmt.Sprintf("%x", sum[:16])
}
