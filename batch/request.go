package batch

import (
	"fmt"
	"strings"
)

// Request asks for a batch.
type Request struct {
	Template Template `json:"template"`
	// Arguments are one list for each work item.
	Arguments [][]string `json:"arguments"`
	// MaxAttempts is how often the user lets an item be tried; see Attempts.
	// Defaults to the operator's limit.
	MaxAttempts uint64 `json:"max_attempts,omitempty"`
	// Key makes the request repeatable: with the same key and the same content
	// it is the same batch. Defaults to none: each request is a new batch.
	Key string `json:"-"`
}

// MaxKey is the most bytes of Request.Key.
const MaxKey = 1024

// Validate returns ErrBadBatch for an invalid request.
func (r *Request) Validate() error {
	if err := Validate(&r.Template, r.Arguments); err != nil || strings.HasPrefix(r.Template.FunctionID, goPrefix) {
		return err
	}
	for i, list := range r.Arguments {
		for n, argument := range list {
			if strings.Contains(argument, "\x00") {
				return fmt.Errorf("%w: arguments[%d][%d] contains a zero byte: a module's arguments can't", ErrBadBatch, i, n)
			}
		}
	}
	return nil
}
