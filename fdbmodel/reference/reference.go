// Package reference finds references to futures within encoded arguments, and
// replaces them by the results of those futures.
//
// In JSON a reference is an object with the one member "$future", whose value is
// the id of a future as text. In msgpack it is an extension of the type Extension
// with the 16 bytes of the id. Other encodings have none.
//
// It is pure: it knows ids and encodings, but no store. Arguments come from other
// programs; malformed ones are ErrBadReference or ErrUndecodable, never a panic.
package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tinylib/msgp/msgp"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Extension is the msgpack extension type of a reference, and Member the member of
// a JSON object that is one.
const (
	Extension = 70
	Member    = "$future"
)

var (
	// ErrBadReference is returned for a reference without the id of a future.
	ErrBadReference = errors.New("not a reference to a future")
	// ErrUndecodable is returned for arguments or a result that their codec can't
	// decode.
	ErrUndecodable = errors.New("undecodable")
	// ErrTooLarge is returned by Resolve when the arguments exceed their limit.
	ErrTooLarge = errors.New("arguments with the results of their inputs are too large")
)

// span is where a reference lies in the arguments.
type span struct {
	begin, end int
	id         layout.ID
}

// References are encoded arguments, with the references in them.
type References struct {
	codec string
	args  []byte
	spans []span
}

// Find finds the references in arguments, which it keeps. Without references its
// cost is that of a search for the bytes that each has.
func Find(codec string, args []byte) (References, error) {
	spans, err := find(codec, args)
	return References{codec, args, spans}, err
}

// Of returns the futures that arguments refer to, each once, in the order of
// their first reference.
func Of(codec string, args []byte) ([]layout.ID, error) {
	r, err := Find(codec, args)
	return r.IDs(), err
}

// IDs returns the futures that the arguments refer to, each once, in the order of
// their first reference.
func (r References) IDs() (ids []layout.ID) {
	seen := make(map[layout.ID]bool, len(r.spans))
	for _, s := range r.spans {
		if !seen[s.id] {
			seen[s.id], ids = true, append(ids, s.id)
		}
	}
	return ids
}

// Value is the result of a future.
type Value struct {
	Codec string
	Bytes []byte
}

// Resolve returns the arguments in which the results of futures replace the
// references to them, at most limit bytes. A result is converted to the encoding
// of the arguments: msgpack to JSON and back; a raw one becomes a JSON string,
// which requires UTF-8, or binary msgpack.
func (r References) Resolve(limit int, result func(layout.ID) (Value, error)) ([]byte, error) {
	args := r.args
	if len(r.spans) == 0 {
		return args, nil
	}
	out := make([]byte, 0, len(args))
	from := 0
	for _, s := range r.spans {
		value, err := result(s.id)
		if err != nil {
			return nil, err
		}
		out = append(out, args[from:s.begin]...)
		if out, err = appendValue(out, r.codec, value); err != nil {
			return nil, fmt.Errorf("result of future %s: %w", s.id, err)
		}
		if from = s.end; len(out)+len(args)-from > limit {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
		}
	}
	return append(out, args[from:]...), nil
}

func find(codec string, args []byte) ([]span, error) {
	switch codec {
	case layout.CodecJSON:
		return findJSON(args)
	case layout.CodecMsgpack:
		return findMsgpack(args)
	default:
		return nil, nil
	}
}

// findJSON looks for the tokens { "$future" "ID" }.
func findJSON(args []byte) (spans []span, err error) {
	if !bytes.Contains(args, []byte(`"`+Member+`"`)) {
		return nil, nil
	}
	if !json.Valid(args) {
		return nil, fmt.Errorf("%w JSON", ErrUndecodable)
	}
	d := json.NewDecoder(bytes.NewReader(args))
	begin, at, id := 0, 0, ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return spans, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w JSON: %w", ErrUndecodable, err)
		}
		text, isText := token.(string)
		switch {
		case token == json.Delim('{'):
			begin, at = int(d.InputOffset())-1, 1
		case at == 1 && isText && text == Member:
			at = 2
		case at == 2 && isText:
			id, at = text, 3
		case at == 2:
			return nil, fmt.Errorf("%w: %s must be the id of a future as a string", ErrBadReference, Member)
		case at == 3 && token == json.Delim('}'):
			parsed, err := layout.ParseID(id)
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %w", ErrBadReference, Member, err)
			}
			spans = append(spans, span{begin, int(d.InputOffset()), parsed})
			at = 0
		case at == 3:
			return nil, fmt.Errorf("%w: an object with %s may have no other member", ErrBadReference, Member)
		default:
			at = 0
		}
	}
}

// header is how a reference begins in msgpack: an extension of 16 bytes.
var header = [...]byte{0xd8, Extension}

func findMsgpack(args []byte) (spans []span, err error) {
	if !bytes.Contains(args, header[:]) {
		return nil, nil
	}
	rest := args
	for left := uint64(1); left > 0; left-- {
		var n uint32
		switch msgp.NextType(rest) {
		case msgp.ArrayType:
			if n, rest, err = msgp.ReadArrayHeaderBytes(rest); err == nil {
				left += uint64(n)
			}
		case msgp.MapType:
			if n, rest, err = msgp.ReadMapHeaderBytes(rest); err == nil {
				left += 2 * uint64(n)
			}
		default:
			begin := len(args) - len(rest)
			if rest, err = msgp.Skip(rest); err == nil && bytes.HasPrefix(args[begin:], header[:]) {
				spans = append(spans, span{begin, begin + 18, layout.ID(args[begin+2 : begin+18])})
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%w msgpack: %w", ErrUndecodable, err)
		}
	}
	return spans, nil
}

// Append appends a reference to msgpack.
func Append(b []byte, id layout.ID) []byte { return append(append(b, header[:]...), id[:]...) }

// JSON returns a reference in JSON.
func JSON(id layout.ID) []byte { return fmt.Appendf(nil, "{%q:%q}", Member, id.String()) }
