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
	c.carrier("carrier", m.Trace())
	m.check(c)
	return c.err
}

// checker keeps the first mistake that it finds in a message.
type checker struct {
	limits Limits
	name   string
	err    error
	// prefix is the path of what is checked, and ends with a dot or is empty. It
	// lacks the places in lists and the keys of maps.
	prefix string
	// rule is told of each rule of each field, if it is set.
	rule func(field, rule string)
}

// enter goes into a field, and returns the prefix that it was in.
func (c *checker) enter(field string) (left string) {
	left = c.prefix
	c.prefix += field + "."
	return left
}

func (c *checker) note(field, rule string) {
	if c.rule != nil {
		c.rule(c.prefix+field, rule)
	}
}

func (c *checker) fail(kind error, field, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s: %s %s", kind, c.name, c.prefix+field, fmt.Sprintf(format, args...))
	}
}

// required refuses an empty field.
func (c *checker) required(field string, empty bool) {
	c.note(field, "required")
	if empty {
		c.fail(ErrInvalid, field, "is missing")
	}
}

// most refuses a count above a limit.
func (c *checker) most(field string, n, limit int, unit string) {
	if c.rule != nil {
		c.note(field, fmt.Sprintf("at most %d %s", limit, unit))
	}
	if n > limit {
		c.fail(ErrLimit, field, "has %d %s: at most %d", n, unit, limit)
	}
}

// within refuses a number outside of a range.
func (c *checker) within(field string, n, lowest, highest int64) {
	if c.rule != nil {
		c.note(field, fmt.Sprintf("from %d to %d", lowest, highest))
	}
	if n < lowest || n > highest {
		c.fail(ErrInvalid, field, "is %d: from %d to %d", n, lowest, highest)
	}
}

// natural refuses a number below 0.
func (c *checker) natural(field string, n int64) {
	c.note(field, "0 or more")
	if n < 0 {
		c.fail(ErrInvalid, field, "is %d: 0 or more", n)
	}
}

// text refuses a text that is too long.
func (c *checker) text(field, value string, limit int) { c.most(field, written(value), limit, "bytes") }

// written is how many bytes a text has for whoever reads it: JSON has a character of three
// bytes instead of each that is no UTF-8.
func written(text string) (n int) {
	if utf8.ValidString(text) {
		return len(text)
	}
	for _, r := range text {
		n += utf8.RuneLen(r)
	}
	return n
}

// line refuses a text with characters that don't print. It may be empty.
func (c *checker) line(field, value string, limit int) {
	c.text(field, value, limit)
	c.note(field, "characters that print")
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
	c.note(field, "without `/`, `\\` and `..`")
	if strings.ContainsAny(value, `/\`) || strings.Contains(value, "..") || value == "." {
		c.fail(ErrInvalid, field, `has "/", "\" or "..": %.60q`, value)
	}
}

// function checks a function's id and method.
func (c *checker) function(id, method string) {
	c.required("function_id", id == "")
	c.note("method", "required, except for functions of Go")
	if method == "" && !strings.HasPrefix(id, "go:") {
		c.fail(ErrInvalid, "method", "is missing")
	}
	c.part("function_id", id)
	c.part("method", method)
}

// id checks the id of a request or chunk, which must be there.
func (c *checker) id(field, value string) {
	c.required(field, value == "")
	c.optionalID(field, value)
}

func (c *checker) optionalID(field, value string) {
	c.text(field, value, MaxID)
	c.note(field, "hex digits, `:` and `-`")
	if strings.ContainsFunc(value, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF:-", r) }) {
		c.fail(ErrInvalid, field, "is %.60q: use hex digits, colons and hyphens", value)
	}
}

func (c *checker) ids(field string, list []string) {
	c.most(field, len(list), MaxNames, "entries")
	for _, id := range list {
		c.optionalID(field, id)
	}
}

// indexes checks places of items.
func (c *checker) indexes(field string, list []int) {
	c.most(field, len(list), c.limits.Items, "entries")
	for _, i := range list {
		c.within(field, int64(i), 0, batch.MaxItems-1)
	}
}

func (c *checker) code(field string, code Code) {
	c.note(field, "three digits, or empty")
	notDigit := func(r rune) bool { return r < '0' || r > '9' }
	if len(code) > 0 && len(code) != 3 || strings.ContainsFunc(string(code), notDigit) {
		c.fail(ErrInvalid, field, "is %.20q: use three digits", string(code))
	}
}

func (c *checker) carrier(field string, carrier Carrier) {
	n := 0
	for name, value := range carrier {
		n += written(name) + written(value)
	}
	c.most(field, n, MaxCarrier, "bytes")
}

// items checks the arguments of items, of which there must be at least one.
func (c *checker) items(lists [][]string) {
	c.required("arguments", len(lists) == 0)
	c.most("arguments", len(lists), c.limits.Items, "items")
	c.arguments("arguments", nil)
	for i, list := range lists {
		if c.tooLong(list) {
			c.arguments(fmt.Sprintf("arguments[%d]", i), list)
			return
		}
	}
}

// arguments checks the arguments of one item.
func (c *checker) arguments(field string, list []string) {
	c.most(field, len(list), c.limits.Arguments, "arguments for one item")
	c.most(field, size(list), c.limits.ArgumentBytes, "bytes for one item")
}

func (c *checker) tooLong(list []string) bool {
	return len(list) > c.limits.Arguments || size(list) > c.limits.ArgumentBytes
}

func size(list []string) (n int) {
	for _, text := range list {
		n += written(text)
	}
	return n
}

func (c *checker) consensus(n Consensus) { c.within("consensus", int64(n), 0, int64(ConsensusPBFT)) }
