package tuple

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// String returns a key in a form to read, such as
//
//	("futura", "default", 3, "futures", 0190f5a2-4d5e-7c11-8000-0123456789ab)
//
// Bytes behind the last whole element follow the tuple with a plus sign, as in
// (3)+"\xff"; a key that is no tuple at all is a quoted string.
func String(key []byte) string {
	t, end, err := decodeElements(key, 0, 0)
	if err == nil {
		return t.String()
	}
	if len(t) == 0 {
		return quoteBytes(key)
	}
	return t.String() + "+" + quoteBytes(key[end:])
}

// String returns the tuple in a form to read.
func (t Tuple) String() string {
	var s strings.Builder
	t.print(&s)
	return s.String()
}

func (t Tuple) print(s *strings.Builder) {
	s.WriteByte('(')
	for i, e := range t {
		if i > 0 {
			s.WriteString(", ")
		}
		switch e := e.(type) {
		case Tuple:
			e.print(s)
		case nil:
			s.WriteString("nil")
		case string:
			s.WriteString(strconv.Quote(e))
		case []byte:
			s.WriteString("b" + quoteBytes(e))
		case *big.Int:
			s.WriteString(e.String())
		case [16]byte:
			s.WriteString(UUID(e).String())
		default:
			fmt.Fprint(s, e)
		}
	}
	s.WriteByte(')')
}

// quoteBytes quotes b with every byte outside of ASCII's printable ones as
// \xNN.
func quoteBytes(b []byte) string {
	var s strings.Builder
	s.WriteByte('"')
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			s.WriteByte('\\')
			s.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&s, `\x%02x`, c)
		default:
			s.WriteByte(c)
		}
	}
	s.WriteByte('"')
	return s.String()
}
