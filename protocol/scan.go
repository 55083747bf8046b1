package protocol

import "fmt"

// scan counts what a message consists of, before anything is allocated for it. It
// doesn't check that the message is JSON.
func (l Limits) scan(data []byte) error {
	depth, objects, lists, values := 0, 0, 0, 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = endOfString(data, i)
		case '{':
			depth++
			objects++
			values++
		case '[':
			depth++
			lists++
			values++
		case '}', ']':
			depth--
		case ',':
			values++
		}
		if depth > l.Depth {
			return fmt.Errorf("%w: values are nested more than %d deep", ErrLimit, l.Depth)
		}
	}
	for _, c := range []struct {
		what     string
		n, limit int
	}{{"objects", objects, l.Objects}, {"lists", lists, l.Lists}, {"values", values, l.Values}} {
		if c.n > c.limit {
			return fmt.Errorf("%w: it has %d %s: at most %d", ErrLimit, c.n, c.what, c.limit)
		}
	}
	if objects > sparseObjects && objects*objectBytes > len(data) {
		return fmt.Errorf("%w: it has %d objects in %d bytes: more than %d need %d bytes each", ErrLimit, objects, len(data),
			sparseObjects, objectBytes)
	}
	return nil
}

// An empty object takes up to 300 bytes of memory. Messages that say something
// have at least so many bytes for each, on average.
const (
	sparseObjects = 1000
	objectBytes   = 16
)

// endOfString returns the place of the quote that ends the string which begins at
// i, or that of the last byte.
func endOfString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return min(i, len(data)-1)
}
