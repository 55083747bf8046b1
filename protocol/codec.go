package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Mistakes in messages.
var (
	// ErrMalformed is returned for bytes that are no JSON object, or have a field of
	// another kind than its type has.
	ErrMalformed = errors.New("malformed message")
	// ErrUnknownType is returned for an object whose "type" is missing or unknown.
	ErrUnknownType = errors.New("unknown type of message")
	// ErrLimit is returned for a message that exceeds a limit.
	ErrLimit = errors.New("message exceeds a limit")
	// ErrInvalid is returned for a message that lacks a field, or has a value in it
	// that it may not have. The error names the field.
	ErrInvalid = errors.New("invalid message")
	// ErrDialect is returned by Encode for a message that the dialect does not have.
	ErrDialect = errors.New("the dialect has no such message")
)

// Decode reads a message under DirectLimits; see Limits.Decode.
func Decode(data []byte) (Message, error) { return DirectLimits().Decode(data) }

// Encode writes a message under DirectLimits; see Limits.Encode.
func Encode(m Message, d Dialect) ([]byte, error) { return DirectLimits().Encode(m, d) }

// Decode reads one message of any dialect and spelling, and checks it. White
// space around it is allowed, fields that are not known are ignored, and names
// of fields may be in upper or lower case, as in b7s. The result doesn't refer
// to data. It returns ErrMalformed, ErrUnknownType, ErrLimit or ErrInvalid.
func (l Limits) Decode(data []byte) (Message, error) {
	if len(data) > l.Bytes {
		return nil, fmt.Errorf("%w: it has %d bytes: at most %d", ErrLimit, len(data), l.Bytes)
	}
	if err := l.scan(data); err != nil {
		return nil, err
	}
	m, err := decode(data)
	if err != nil {
		return nil, err
	}
	if err := l.Check(m); err != nil {
		return nil, err
	}
	return m, nil
}

// Encode writes a message in a dialect, without the fields that the dialect
// doesn't have, as one line without an end of line. It returns ErrInvalid or
// ErrLimit for what Decode would refuse, and ErrDialect for a message of Futura's
// own in another dialect. The message is not changed.
func (l Limits) Encode(m Message, d Dialect) ([]byte, error) {
	if d != DialectFutura && KindOf(m).Own {
		return nil, fmt.Errorf("%w: %s is Futura's own, not of the dialect %s", ErrDialect, m.Type(), d)
	}
	m = in(m, d)
	if err := l.Check(m); err != nil {
		return nil, err
	}
	data, err := json.Marshal(wireForm(m, d))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, m.Type(), err)
	}
	data = data[:len(data)-1]
	if len(data) > 1 {
		data = append(data, ',')
	}
	data = append(data, `"type":"`+m.Type()+`"}`...)
	if len(data) > l.Bytes {
		return nil, fmt.Errorf("%w: %s has %d bytes: at most %d; send fewer items", ErrLimit, m.Type(), len(data), l.Bytes)
	}
	if err := l.scan(data); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Type(), err)
	}
	return data, nil
}

// head is what tells the type of a message.
type head struct {
	Type    string `json:"type"`
	Chunks  object `json:"chunks"`
	Strands object `json:"strands"`
}

// object reports whether a field is an object.
type object bool

// UnmarshalJSON looks at the first byte.
func (o *object) UnmarshalJSON(data []byte) error {
	*o = data[0] == '{'
	return nil
}

func decode(data []byte) (Message, error) {
	h := head{Type: typeAtEnd(data)}
	m := newMessage(h.Type)
	if m == nil || h.Type == TypeExecuteResponse {
		h = head{}
		if err := unmarshalJSON(data, &h); err != nil {
			return nil, err
		}
	}
	asSingle := h.Type == TypeExecuteResponse && bool(h.Chunks || h.Strands)
	if asSingle {
		h.Type = TypeExecuteBatchResponse
	}
	if m = newMessage(h.Type); m == nil {
		return nil, fmt.Errorf("%w: %.60q", ErrUnknownType, h.Type)
	}
	if err := unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s: %w", h.Type, err)
	}
	if r, ok := m.(*ExecuteBatchResponse); ok {
		r.AsSingle = asSingle
	}
	return m, nil
}

// typeAtEnd returns the type of a message that ends with it, as nodes write them,
// or nothing. The last brace of an object is its own, what is in quotes has no
// quotes, and of two fields of one name the last counts: so a message that is
// JSON has this type.
func typeAtEnd(data []byte) string {
	before, found := bytes.CutSuffix(bytes.TrimRight(data, " \t\r\n"), []byte(`"}`))
	quote := bytes.LastIndexByte(before, '"')
	if !found || quote < 0 || !bytes.HasSuffix(before[:quote], []byte(`,"type":`)) {
		return ""
	}
	return string(before[quote+1:])
}

// unmarshalJSON returns ErrMalformed in the words of the wire. Errors of JSON may have all
// of a value in them.
func unmarshalJSON(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var mismatch *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch) && mismatch.Field == "":
		return fmt.Errorf("%w: it is a JSON %.60s: send an object", ErrMalformed, mismatch.Value)
	case errors.As(err, &mismatch):
		return fmt.Errorf("%w: field %s: a JSON %.60s can't be %s", ErrMalformed, mismatch.Field, mismatch.Value,
			mismatch.Type)
	case errors.As(err, &syntax):
		return fmt.Errorf("%w: %w (at byte %d)", ErrMalformed, syntax, syntax.Offset)
	default:
		return fmt.Errorf("%w: %.200s", ErrMalformed, err)
	}
}

// clamp bounds a number to the 32 bits that it has on the wire.
func clamp(n uint64) uint64 { return min(n, math.MaxUint32) }
