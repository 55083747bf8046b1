package batch

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// goPrefix begins a function id that is a Go function of the workers.
const goPrefix = "go:"

var (
	plainName   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	plainMethod = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
)

// FunctionAlias is the alias under which a cluster keeps the module that is a
// method of a function of b7s: a file of its archive. That is ID/METHOD where
// both are plain (letters, digits, and . _ -) and no longer than 128 and 64; else
// "b7s-" and the SHA-256 of ID/METHOD in hex. No two methods have the same alias that
// differ in ID/METHOD.
func FunctionAlias(functionID, method string) string {
	if plainName.MatchString(functionID) && plainMethod.MatchString(method) {
		return functionID + "/" + method
	}
	sum := sha256.Sum256([]byte(functionID + "/" + method))
	return "b7s-" + hex.EncodeToString(sum[:])
}

// Functions are the names that a template's function may have in a cluster, the
// first that exists counts: the module that was installed as this method, and
// the module of the function itself where no method is named. A cluster takes
// ID/METHOD for the module ID if there is no such alias: for its export METHOD,
// or for its start if METHOD is the name of a file. A function "go:NAME" is
// that.
func (t *Template) Functions() []string {
	if strings.HasPrefix(t.FunctionID, goPrefix) {
		return []string{t.FunctionID}
	}
	names := []string{"wasm:" + FunctionAlias(t.FunctionID, t.Method)}
	if t.Method == "" && plainName.MatchString(t.FunctionID) {
		names = append(names, "wasm:"+t.FunctionID)
	}
	return names
}
