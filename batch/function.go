package batch

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// maxAlias is the longest alias that a cluster takes.
const maxAlias = 128

// FunctionAlias is the alias under which a cluster keeps the module that is a
// method of a function of b7s: a file of its archive. That is ID--METHOD where
// both are plain (letters, digits, and . _ -) and the whole can be cut in one
// way only and is at most 128 bytes; else "b7s-" and the SHA-256 of ID/METHOD
// in hex. No two methods have the same alias.
func FunctionAlias(functionID, method string) string {
	alias := functionID + "--" + method
	if plainName.MatchString(functionID) && plainName.MatchString(method) && strings.Count(alias, "--") == 1 &&
		!strings.Contains(alias, "---") && len(alias) <= maxAlias {
		return alias
	}
	sum := sha256.Sum256([]byte(functionID + "/" + method))
	return "b7s-" + hex.EncodeToString(sum[:])
}

// Functions are the names that a template's function may have in a cluster, the
// first that is there counts: the module that was installed as this method,
// else the method as a function that a module exports, or for a method that is
// empty or a file's name the module itself. A function "go:NAME" is that.
func (t *Template) Functions() []string {
	if strings.HasPrefix(t.FunctionID, "go:") {
		return []string{t.FunctionID}
	}
	names := []string{"wasm:" + FunctionAlias(t.FunctionID, t.Method)}
	switch {
	case !plainName.MatchString(t.FunctionID) || len(t.FunctionID) > maxAlias:
		return names
	case t.Method == "" || strings.HasSuffix(t.Method, ".wasm"):
		return append(names, "wasm:"+t.FunctionID)
	case plainName.MatchString(t.Method):
		return append(names, "wasm:"+t.FunctionID+"/"+t.Method)
	}
	return names
}
