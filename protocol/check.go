package protocol

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/futura-run/futura/batch"
)

// Check returns ErrInvalid or ErrLimit for a message that Encode refuses and
// Decode never returns.
func (l Limits) Check(m Message) error {
	c := &checker{limits: l, name: m.Type()}
	c.carrier(m.Trace())
	m.check(c)
	return c.err
}

// checker keeps the first mistake that it finds in a message.
type checker struct {
	limits Limits
	name   string
	err    error
}

func (c *checker) fail(kind error, field, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s: %s %s", kind, c.name, field, fmt.Sprintf(format, args...))
	}
}

func (c *checker) missing(field string) { c.fail(ErrInvalid, field, "is missing") }

// most refuses a count above a limit.
func (c *checker) most(field string, n, limit int, unit string) {
	if n > limit {
		c.fail(ErrLimit, field, "has %d %s: at most %d", n, unit, limit)
	}
}

// within refuses a number outside of a range.
func (c *checker) within(field string, n, lowest, highest int64) {
	if n < lowest || n > highest {
		c.fail(ErrInvalid, field, "is %d: from %d to %d", n, lowest, highest)
	}
}

// text refuses a text that is too long.
func (c *checker) text(field, value string, limit int) { c.most(field, len(value), limit, "bytes") }

// line refuses a text with characters that don't print. It may be empty.
func (c *checker) line(field, value string, limit int) {
	c.text(field, value, limit)
	if strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(value) {
		c.fail(ErrInvalid, field, "has characters that don't print: %.60q", value)
	}
}

// names checks a list of names.
func (c *checker) names(field string, list []string) {
	c.most(field, len(list), MaxNames, "entries")
	for _, name := range list {
		c.line(field, name, MaxName)
	}
}

// part refuses what could lead out of a directory, were it part of a path. It may
// be empty.
func (c *checker) part(field, value string) {
	c.line(field, value, MaxName)
	if strings.ContainsAny(value, `/\`) || strings.Contains(value, "..") || value == "." {
		c.fail(ErrInvalid, field, `has "/", "\" or "..": %.60q`, value)
	}
}

// function checks a function's id and method.
func (c *checker) function(id, method, prefix string) {
	if id == "" {
		c.missing(prefix + "function_id")
	}
	if method == "" && !strings.HasPrefix(id, "go:") {
		c.missing(prefix + "method")
	}
	c.part(prefix+"function_id", id)
	c.part(prefix+"method", method)
}

// id checks the id of a request or chunk, which must be there.
func (c *checker) id(field, value string) {
	if value == "" {
		c.missing(field)
		return
	}
	c.optionalID(field, value)
}

func (c *checker) optionalID(field, value string) {
	c.text(field, value, MaxID)
	if strings.ContainsFunc(value, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF:-", r) }) {
		c.fail(ErrInvalid, field, "is %.60q: use hex digits, colons and hyphens", value)
	}
}

func (c *checker) ids(field string, list []string) {
	c.most(field, len(list), MaxNames, "entries")
	for _, id := range list {
		c.id(field, id)
	}
}

func (c *checker) code(field string, code Code) {
	digit := func(r rune) bool { return r < '0' || r > '9' }
	if len(code) > 3 || strings.ContainsFunc(string(code), digit) {
		c.fail(ErrInvalid, field, "is %.20q: use three digits", string(code))
	}
}

func (c *checker) carrier(carrier Carrier) {
	n := 0
	for name, value := range carrier {
		n += len(name) + len(value)
	}
	c.most("carrier", n, MaxCarrier, "bytes")
}

// topic checks the name of a topic. It may be empty.
func (c *checker) topic(value string) { c.line("topic", value, MaxName) }

// items checks the arguments of items, of which there must be at least one.
func (c *checker) items(lists [][]string) {
	if len(lists) == 0 {
		c.missing("arguments")
	}
	c.most("arguments", len(lists), c.limits.Items, "items")
	for i, list := range lists {
		if c.err != nil {
			return
		}
		if c.tooLong(list) {
			c.arguments(fmt.Sprintf("arguments[%d]", i), list)
		}
	}
}

// arguments checks the arguments of one item.
func (c *checker) arguments(field string, list []string) {
	c.most(field, len(list), c.limits.Arguments, "arguments")
	c.most(field, size(list), c.limits.ArgumentBytes, "bytes")
}

func (c *checker) tooLong(list []string) bool {
	return len(list) > c.limits.Arguments || size(list) > c.limits.ArgumentBytes
}

func size(list []string) (n int) {
	for _, text := range list {
		n += len(text)
	}
	return n
}

func (c *checker) config(f *Config) {
	c.within("config.number_of_nodes", int64(f.Nodes), -1, batch.MaxItems)
	c.within("config.timeout", int64(f.Timeout), 0, maxSeconds)
	if f.Consensus != "" && f.Consensus != "raft" && f.Consensus != "pbft" {
		c.fail(ErrInvalid, "config.consensus_algorithm", `is %.20q: use raft, pbft or ""`, f.Consensus)
	}
	if f.Threshold < 0 || f.Threshold > 1 {
		c.fail(ErrInvalid, "config.threshold", "is %g: from 0 to 1", f.Threshold)
	}
	c.text("config.stdin", f.Stdin, batch.MaxItem)
	c.most("config.env_vars", len(f.Environment), MaxNames, "entries")
	n := 0
	for _, e := range f.Environment {
		n += len(e.Name) + len(e.Value)
	}
	c.most("config.env_vars", n, batch.MaxItem, "bytes")
	c.names("config.permissions", f.Permissions)
	if f.Runtime != nil {
		for _, value := range []string{f.Runtime.Entry, f.Runtime.Logger, f.Runtime.Drivers} {
			c.text("config.runtime", value, MaxText)
		}
	}
	if f.Aggregation != nil {
		c.line("config.result_aggregation.type", f.Aggregation.Type, MaxName)
		c.parameters("config.result_aggregation.parameters", f.Aggregation.Parameters)
	}
	c.attributes("config.attributes", f.Attributes)
}

// maxSeconds is the most seconds of a timeout: 100 years.
const maxSeconds = 100 * 366 * 24 * 3600

func (c *checker) parameters(field string, list []Parameter) {
	c.most(field, len(list), MaxNames, "entries")
	for _, p := range list {
		c.line(field, p.Name, MaxName)
		c.text(field, p.Value, c.limits.ArgumentBytes)
	}
}

func (c *checker) attributes(field string, a *Attributes) {
	if a == nil {
		return
	}
	c.parameters(field+".values", a.Values)
	c.names(field+".attestors", a.Attestors.Each)
	c.names(field+".attestors", a.Attestors.OneOf)
}

func (c *checker) consensus(n Consensus) { c.within("consensus", int64(n), 0, int64(ConsensusPBFT)) }
