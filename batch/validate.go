package batch

import (
	"fmt"
	"math"
	"strings"
)

const (
	// maxQueueName is the longest name of a queue.
	maxQueueName = 64
	// maxTimeout keeps a timeout within what a time.Duration counts, in seconds.
	maxTimeout = int64(1) << 32
)

// Validate returns ErrBadBatch for an invalid template or invalid arguments. It names
// all that is wrong with the template, and the first list of arguments that is.
func Validate(t *Template, arguments [][]string) error {
	wrong := t.mistakes()
	switch {
	case len(arguments) == 0:
		wrong = append(wrong, "arguments is empty: a batch needs at least one list of arguments")
	case len(arguments) > MaxItems:
		wrong = append(wrong, fmt.Sprintf("%d lists of arguments: a batch has at most %d", len(arguments), MaxItems))
	default:
		wrong = append(wrong, t.badArguments(arguments)...)
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrBadBatch, strings.Join(wrong, "; "))
}

func (t *Template) mistakes() (wrong []string) {
	c := &t.Config
	bad := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	bad(t.FunctionID == "", "template.function_id is missing")
	bad(c.Nodes < -1 || c.Nodes > MaxItems, "number_of_nodes is %d: use -1 for all, or how many, at most %d", c.Nodes,
		MaxItems)
	bad(c.Concurrency > MaxItems, "concurrency is %d: at most %d", c.Concurrency, MaxItems)
	bad(c.Timeout < 0 || c.Concurrency < 0 || c.RatePerHost < 0,
		"timeout, concurrency and rate_per_host must not be negative")
	bad(math.IsNaN(c.RatePerHost) || math.IsInf(c.RatePerHost, 1), "rate_per_host is %v: use a number, or 0 for no limit",
		c.RatePerHost)
	bad(c.RunTime < 0 || c.Memory < 0, "run_time and memory must not be negative")
	bad(int64(c.Timeout) > maxTimeout || c.RunTime > 1000*maxTimeout,
		"timeout is %d seconds, run_time %d milliseconds: at most %d seconds", c.Timeout, c.RunTime, maxTimeout)
	bad(len(c.Queue) > maxQueueName, "the queue's name has %d bytes: at most %d", len(c.Queue), maxQueueName)
	bad(c.Entry != "" && strings.HasPrefix(t.FunctionID, goPrefix),
		"entry is %.80q: a Go function has no exports, leave it out", c.Entry)
	bad(c.Entry != "" && !plainMethod.MatchString(c.Entry),
		"entry is %.80q: the name of an export is 1 to 64 of A-Z, a-z, 0-9 and . _ -", c.Entry)
	return wrong
}

// badArguments names the first list that is too large.
func (t *Template) badArguments(arguments [][]string) []string {
	environment := 0
	for _, e := range t.Config.Environment {
		environment += len(e.Name) + len(e.Value)
	}
	for i, list := range arguments {
		n := 0
		for _, a := range list {
			n += len(a)
		}
		if n > MaxArguments {
			return []string{fmt.Sprintf("arguments[%d] has %d bytes: at most %d", i, n, MaxArguments)}
		}
		if n+environment > MaxItem {
			return []string{fmt.Sprintf("arguments[%d] and env_vars have %d bytes together: at most %d", i, n+environment,
				MaxItem)}
		}
	}
	return nil
}
