package futures

import (
	"fmt"
	"io"
)

// maxJSONDepth is how deep JSON may be nested, as in encoding/json.
const maxJSONDepth = 10_000

// jsonState is what jsonChecker expects next.
type jsonState uint8

const (
	jsonValue     jsonState = iota // a value
	jsonFirst                      // the first value of an array, or its end
	jsonFirstName                  // the first name of an object, or its end
	jsonName                       // a name of an object
	jsonColon
	jsonComma // a comma, or the end of what is open
	jsonEnd   // nothing
	jsonString
	jsonEscape
	jsonHex
	jsonWord // the rest of true, false or null
	jsonMinus
	jsonZero
	jsonDigits
	jsonPoint
	jsonFraction
	jsonExponent // behind e
	jsonSign     // behind its sign
	jsonPower
)

// jsonChecker checks that bytes are one JSON value, as they come and whatever their
// number. It accepts what encoding/json does. Its zero value has seen none.
type jsonChecker struct {
	state  jsonState
	open   []bool // of each array or object around, whether it is an object
	name   bool   // the string is a name
	hex    int    // digits that are left of an escape
	word   string // that is left
	offset int64
}

// write checks what comes next.
func (j *jsonChecker) write(p []byte) error {
	for i := 0; i < len(p); i++ {
		if c := p[i]; j.state == jsonString && c >= ' ' && c != '"' && c != '\\' {
			continue
		} else if !j.next(c) {
			return fmt.Errorf("%w: value to put: codec json: %q at byte %d does not belong there", ErrBadSpec, c,
				j.offset+int64(i)+1)
		}
	}
	j.offset += int64(len(p))
	return nil
}

// end checks that nothing is missing.
func (j *jsonChecker) end() error {
	if len(j.open) == 0 && (j.state == jsonEnd || j.endsNumber()) {
		return nil
	}
	return fmt.Errorf("%w: value to put: codec json: it ends after %d bytes, before its end", ErrBadSpec, j.offset)
}

func (j *jsonChecker) endsNumber() bool {
	return j.state == jsonZero || j.state == jsonDigits || j.state == jsonFraction || j.state == jsonPower
}

func (j *jsonChecker) next(c byte) bool {
	switch j.state {
	case jsonString, jsonEscape, jsonHex:
		return j.inString(c)
	case jsonWord:
		if j.word[0] != c {
			return false
		}
		if j.word = j.word[1:]; j.word == "" {
			j.ended()
		}
		return true
	case jsonMinus, jsonZero, jsonDigits, jsonPoint, jsonFraction, jsonExponent, jsonSign, jsonPower:
		if to, ok := j.inNumber(c); ok {
			j.state = to
			return true
		}
		if !j.endsNumber() {
			return false
		}
		j.ended()
	}
	if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
		return true
	}
	return j.between(c)
}

// between takes what is neither space nor within a string, word or number.
func (j *jsonChecker) between(c byte) bool {
	switch j.state {
	case jsonFirst:
		return c == ']' && j.close(false) || c != ']' && j.begin(c)
	case jsonValue:
		return j.begin(c)
	case jsonFirstName, jsonName:
		if c == '}' && j.state == jsonFirstName {
			return j.close(true)
		}
		j.state, j.name = jsonString, true
		return c == '"'
	case jsonColon:
		j.state = jsonValue
		return c == ':'
	case jsonComma:
		object := j.open[len(j.open)-1]
		switch {
		case c == ',' && object:
			j.state = jsonName
		case c == ',':
			j.state = jsonValue
		default:
			return c == '}' && j.close(true) || c == ']' && j.close(false)
		}
		return true
	}
	return false
}

// begin begins a value.
func (j *jsonChecker) begin(c byte) bool {
	switch {
	case c == '{' || c == '[':
		if j.state = jsonFirst; c == '{' {
			j.state = jsonFirstName
		}
		j.open = append(j.open, c == '{')
		return len(j.open) <= maxJSONDepth
	case c == '"':
		j.state, j.name = jsonString, false
	case c == '-':
		j.state = jsonMinus
	case c == '0':
		j.state = jsonZero
	case c >= '1' && c <= '9':
		j.state = jsonDigits
	case c == 't':
		j.state, j.word = jsonWord, "rue"
	case c == 'f':
		j.state, j.word = jsonWord, "alse"
	case c == 'n':
		j.state, j.word = jsonWord, "ull"
	default:
		return false
	}
	return true
}

// close ends an object or array.
func (j *jsonChecker) close(object bool) bool {
	if n := len(j.open) - 1; j.open[n] == object {
		j.open = j.open[:n]
		j.ended()
		return true
	}
	return false
}

// ended ends a value.
func (j *jsonChecker) ended() {
	if j.state = jsonComma; len(j.open) == 0 {
		j.state = jsonEnd
	}
}

func (j *jsonChecker) inString(c byte) bool {
	switch {
	case j.state == jsonHex:
		if j.hex--; j.hex == 0 {
			j.state = jsonString
		}
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	case j.state == jsonEscape:
		switch c {
		case 'u':
			j.state, j.hex = jsonHex, 4
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			j.state = jsonString
		default:
			return false
		}
	case c == '\\':
		j.state = jsonEscape
	case c == '"' && j.name:
		j.state = jsonColon
	case c == '"':
		j.ended()
	}
	return c >= ' '
}

func (j *jsonChecker) inNumber(c byte) (to jsonState, ok bool) {
	digit := c >= '0' && c <= '9'
	switch s := j.state; {
	case s == jsonMinus && c == '0':
		return jsonZero, true
	case (s == jsonMinus || s == jsonDigits) && digit:
		return jsonDigits, true
	case (s == jsonZero || s == jsonDigits) && c == '.':
		return jsonPoint, true
	case (s == jsonPoint || s == jsonFraction) && digit:
		return jsonFraction, true
	case j.endsNumber() && s != jsonPower && (c == 'e' || c == 'E'):
		return jsonExponent, true
	case s == jsonExponent && (c == '+' || c == '-'):
		return jsonSign, true
	case (s == jsonExponent || s == jsonSign || s == jsonPower) && digit:
		return jsonPower, true
	}
	return 0, false
}

// jsonReader fails where what it reads is not JSON.
type jsonReader struct {
	from  io.Reader
	check jsonChecker
}

// Read implements io.Reader.
func (r *jsonReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if failed := r.check.write(p[:n]); failed != nil {
		return 0, failed
	}
	if err == io.EOF {
		if failed := r.check.end(); failed != nil {
			return n, failed
		}
	}
	return n, err
}
