package layout

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of names.
const (
	maxQueueName    = 64
	maxFunctionName = 256
)

var (
	clusterName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	queueName   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	goFunction  = regexp.MustCompile(`^go:[A-Za-z0-9._-]{1,128}$`)
	wasmName    = regexp.MustCompile(`^wasm:[A-Za-z0-9._-]{1,128}(/[A-Za-z0-9._-]{1,64})?$`)
	aliasName   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}(/[A-Za-z0-9._-]{1,64})?$`)
)

// CheckClusterName returns ErrBadName unless name may name a cluster.
func CheckClusterName(name string) error {
	if !clusterName.MatchString(name) {
		return fmt.Errorf("%w: cluster %.64q: use 1 to 32 of a-z, 0-9 and -, not beginning with -", ErrBadName, name)
	}
	return nil
}

// CheckName returns ErrBadName unless name has 1 to 64 of the characters A to Z, a to z, 0 to 9
// and . _ -; what says what it is to name.
func CheckName(what, name string) error {
	if !queueName.MatchString(name) {
		return fmt.Errorf("%w: %s %.80q: use 1 to %d of A-Z, a-z, 0-9 and . _ -", ErrBadName, what, name, maxQueueName)
	}
	return nil
}

// CheckQueueName returns ErrBadName unless name may name a queue.
func CheckQueueName(name string) error { return CheckName("queue", name) }

// CheckFunctionName returns ErrBadName unless name is go:NAME, wasm:CID,
// wasm:CID/METHOD, wasm:ALIAS or wasm:ALIAS/METHOD.
func CheckFunctionName(name string) error {
	if len(name) <= maxFunctionName && (goFunction.MatchString(name) || wasmName.MatchString(name)) {
		return nil
	}
	return fmt.Errorf("%w: function %.80q: use go:NAME or wasm:NAME[/METHOD], where a name has 1 to 128 of "+
		"A-Z, a-z, 0-9 and . _ -", ErrBadName, name)
}

// CheckAlias returns ErrBadName unless alias may stand for a module: a name, or
// NAME/FILE for one of the files that were stored together.
func CheckAlias(alias string) error {
	if !aliasName.MatchString(alias) {
		return fmt.Errorf("%w: alias %.80q: use 1 to 128 of A-Z, a-z, 0-9 and . _ -, or two such names with a / "+
			"between them", ErrBadName, alias)
	}
	return nil
}

// SplitWasm splits wasm:MODULE/METHOD; method is empty if the name has none.
func SplitWasm(function string) (module, method string, ok bool) {
	rest, ok := strings.CutPrefix(function, "wasm:")
	if !ok {
		return "", "", false
	}
	module, method, _ = strings.Cut(rest, "/")
	return module, method, true
}

// DefaultQueue is the queue of futures and workers that name none.
const DefaultQueue = "default"

// CheckHolder returns ErrBadName unless name is one that a future can be pinned by.
func CheckHolder(name string) error {
	bad := func(r rune) bool {
		return r == utf8.RuneError || r == '/' || unicode.IsSpace(r) || !unicode.IsGraphic(r)
	}
	if name == "" || len(name) > maxLabel || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("%w: pin by %.80q: use 1 to %d bytes without spaces, control and format characters, and /",
			ErrBadName, name, maxLabel)
	}
	return nil
}
