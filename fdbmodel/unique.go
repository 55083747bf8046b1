package fdbmodel

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
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
	By []UniquePart
	// Until says when the future gives up the name. Defaults to UntilEnd. One that a
	// worker gives back after it was claimed has the name again with UntilClaim,
	// unless another future took it meanwhile.
	Until layout.UniqueUntil
	// For keeps the name for a period from the submit on, even if the future ends
	// before that: at most 366 days, none with UntilEver. Defaults to none.
	For time.Duration
	// OnConflict says what becomes of a submit while another future has the name.
	// Defaults to ConflictRefuse.
	OnConflict Conflict
}

// UniquePart is a part of a future that its name is made from.
type UniquePart string

// The parts of a future.
const (
	UniqueFunction  UniquePart = "function" // an alias counts as the module that it stands for
	UniqueQueue     UniquePart = "queue"
	UniqueArguments UniquePart = "arguments" // with their codec, argv, the environment and the inputs
)

// UniqueParts lists the parts of a future.
func UniqueParts() []UniquePart { return []UniquePart{UniqueFunction, UniqueQueue, UniqueArguments} }

// Conflict says what becomes of a submit while another future has its name.
type Conflict string

const (
	// ConflictRefuse returns a NotUniqueError.
	ConflictRefuse Conflict = ""
	// ConflictReturn returns the other future, even if its content differs.
	ConflictReturn Conflict = "return"
	// ConflictReplace cancels the other future and gives its name to the new one, if
	// no worker has claimed the other. It returns a NotUniqueError for one that is
	// claimed, or over: what has begun is not replaced.
	ConflictReplace Conflict = "replace"
)

// ErrNotUnique is returned by submit and retry when another future has the name of
// a unique one. Every NotUniqueError matches it.
var ErrNotUnique = errors.New("not unique")

// NotUniqueError says which future has the name of a unique one. Nothing was
// changed.
type NotUniqueError struct {
	// ID is the future that has the name, and State its state: 0 if it was removed
	// and kept the name.
	ID    layout.ID
	State layout.State
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

	replace bool
}

// Unwrap returns ErrNotUnique.
func (e *NotUniqueError) Unwrap() error { return ErrNotUnique }

// Error implements error.
func (e *NotUniqueError) Error() string {
	what := "the same work"
	if e.Key != "" {
		what = fmt.Sprintf("the key %.80q", e.Key)
	}
	state := "which was removed"
	if e.State != 0 {
		state = e.State.String()
	}
	text := fmt.Sprintf("%v: future %s (%s) has %s", ErrNotUnique, e.ID, state, what)
	if e.Differs != "" {
		text += ", with other " + e.Differs
	}
	return text + ": " + e.remedy()
}

func (e *NotUniqueError) remedy() string {
	over := e.State == 0 || e.State.Terminal()
	var until string
	switch {
	case e.Until == layout.UntilEver:
		return "it keeps it for ever: release it (futura unique release), or use another key"
	case !e.FreeAt.IsZero() && over:
		until = "until " + e.FreeAt.UTC().Format(time.RFC3339)
	case !e.FreeAt.IsZero():
		until = "until it is over, and until " + e.FreeAt.UTC().Format(time.RFC3339) + " at least"
	case e.Until == layout.UntilClaim:
		until = "until a worker claims it"
	default:
		until = "until it is over"
	}
	if e.replace {
		return "it has begun and is not replaced; it keeps it " + until
	}
	return "it keeps it " + until + ": await it, replace or cancel it, or use another key"
}

// check returns ErrBadSpec and ErrTooLarge.
func (u *Unique) check() error {
	for _, part := range u.By {
		if !slices.Contains(UniqueParts(), part) {
			return fmt.Errorf("%w: unique by %.20q: use function, queue or arguments", layout.ErrBadSpec, part)
		}
	}
	switch u.OnConflict {
	case ConflictRefuse, ConflictReturn, ConflictReplace:
	default:
		return fmt.Errorf("%w: on conflict %.20q: use refuse, return or replace", layout.ErrBadSpec, u.OnConflict)
	}
	if len(u.Key) > layout.MaxUniqueKey {
		return fmt.Errorf("%w: unique key of %d bytes: at most %d", ErrTooLarge, len(u.Key), layout.MaxUniqueKey)
	}
	return layout.CheckUnique(u.Until, u.For)
}

// parts returns the parts of the future that the name is made from.
func (u *Unique) parts() []UniquePart {
	if u.Key == "" && len(u.By) == 0 {
		return UniqueParts()
	}
	return u.By
}

// UniqueNameOf returns the name that a submission has by its Unique. Its spec must
// have the function and the queue that it is stored with.
func UniqueNameOf(s *Submission) layout.UniqueName {
	h := sha256.New()
	add := func(text string) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		h.Write([]byte(text))
	}
	add(s.Unique.Key)
	parts := s.Unique.parts()
	for _, part := range UniqueParts() {
		if !slices.Contains(parts, part) {
			continue
		}
		add(string(part))
		switch part {
		case UniqueFunction:
			add(s.Spec.Function)
		case UniqueQueue:
			add(s.Spec.Queue)
		case UniqueArguments:
			addArguments(s, add)
		}
	}
	return layout.UniqueName(fmt.Sprintf("%x", h.Sum(nil)[:16]))
}

// UniqueName is UniqueNameOf for a submission as Submit takes it. It returns the errors
// of Submit for what the name is made from; a future that is unique by its key alone
// needs nothing else.
func (c *Cluster) UniqueName(ctx context.Context, s Submission) (layout.UniqueName, error) {
	if s.Unique == nil {
		return "", fmt.Errorf("%w: it does not say by what it is unique", layout.ErrBadSpec)
	}
	if err := s.Unique.check(); err != nil {
		return "", err
	}
	s.Spec.Queue = cmp.Or(s.Spec.Queue, layout.DefaultQueue)
	s.Spec.Codec = cmp.Or(s.Spec.Codec, layout.CodecRaw)
	if slices.Contains(s.Unique.parts(), UniqueFunction) {
		function, err := c.ResolveFunction(ctx, s.Spec.Function)
		if err != nil {
			return "", err
		}
		s.Spec.Function = function
	}
	return UniqueNameOf(&s), nil
}

// addArguments adds what otherWork compares apart from the function and the queue.
func addArguments(s *Submission, add func(string)) {
	add(s.Spec.Codec)
	if ref := s.Spec.ArgsRef; ref != nil {
		add(ref.Token)
	} else {
		add(argsToken(s.Args))
	}
	// Their numbers tell words from variables, whatever is in them.
	add(strconv.Itoa(len(s.Spec.Argv)))
	for _, word := range s.Spec.Argv {
		add(word)
	}
	add(strconv.Itoa(len(s.Spec.Env)))
	for _, name := range slices.Sorted(maps.Keys(s.Spec.Env)) {
		add(name)
		add(s.Spec.Env[name])
	}
	for _, id := range s.Inputs {
		add(string(id[:]))
	}
}

// argsToken is the token of the reference that PutArgs returns for arguments.
func argsToken(args []byte) string {
	sum := sha256.Sum256(args)
	return fmt.Sprintf("%x", sum[:16])
}

// nameUnique gives the spec of a unique submission its name.
func (s *Submission) nameUnique() error {
	s.Spec.Unique = nil
	if s.Unique == nil {
		return nil
	}
	if s.Spec.Owner != "" {
		return fmt.Errorf("%w: a future of a batch can't be unique", layout.ErrBadSpec)
	}
	if err := s.Unique.check(); err != nil {
		return err
	}
	s.Spec.Unique = &layout.Unique{
		Name: UniqueNameOf(s), Key: layout.ShowUniqueKey(s.Unique.Key), Until: s.Unique.Until, For: s.Unique.For,
	}
	return nil
}
