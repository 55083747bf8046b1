package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// MaxConverted is the largest result that is converted to another encoding, in
// bytes: converted, it may take a hundred times as much memory.
const MaxConverted = 4 << 20

// appendValue appends a result in the encoding of the arguments.
func appendValue(b []byte, codec string, v Value) ([]byte, error) {
	raw := v.Codec != layout.CodecJSON && v.Codec != layout.CodecMsgpack
	converts := v.Codec != codec && (codec == layout.CodecJSON || !raw)
	if converts && len(v.Bytes) > MaxConverted {
		return nil, fmt.Errorf("%w: a %s result of %d bytes as %s: at most %d are converted; let the function return %s",
			ErrTooLarge, v.Codec, len(v.Bytes), codec, MaxConverted, codec)
	}
	if codec == layout.CodecJSON {
		return appendJSON(b, v)
	}
	return appendMsgpack(b, v)
}

func appendJSON(b []byte, v Value) ([]byte, error) {
	switch v.Codec {
	case layout.CodecJSON:
		if !json.Valid(v.Bytes) {
			return nil, fmt.Errorf("%w JSON", ErrUndecodable)
		}
		return append(b, v.Bytes...), nil
	case layout.CodecMsgpack:
		if err := whole(v.Bytes); err != nil {
			return nil, err
		}
		var converted bytes.Buffer
		if _, err := msgp.UnmarshalAsJSON(&converted, v.Bytes); err != nil {
			return nil, fmt.Errorf("%w as JSON: %w", ErrUndecodable, err)
		}
		if !json.Valid(converted.Bytes()) {
			return nil, fmt.Errorf("%w as JSON: it has keys or values that JSON lacks", ErrUndecodable)
		}
		return append(b, converted.Bytes()...), nil
	default:
		if !utf8.Valid(v.Bytes) {
			return nil, fmt.Errorf("%w as JSON: %d bytes that are not UTF-8 text", ErrUndecodable, len(v.Bytes))
		}
		text, err := json.Marshal(string(v.Bytes))
		return append(b, text...), err
	}
}

func appendMsgpack(b []byte, v Value) ([]byte, error) {
	switch v.Codec {
	case layout.CodecMsgpack:
		if err := whole(v.Bytes); err != nil {
			return nil, err
		}
		return append(b, v.Bytes...), nil
	case layout.CodecJSON:
		d := json.NewDecoder(bytes.NewReader(v.Bytes))
		d.UseNumber()
		var value any
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("%w JSON: %w", ErrUndecodable, err)
		}
		if _, err := d.Token(); err != io.EOF {
			return nil, fmt.Errorf("%w JSON: more than one value", ErrUndecodable)
		}
		return appendAny(b, value)
	default:
		return msgp.AppendBytes(b, v.Bytes), nil
	}
}

// whole requires exactly one msgpack value.
func whole(b []byte) error {
	rest, err := msgp.Skip(b)
	switch {
	case err != nil:
		return fmt.Errorf("%w msgpack: %w", ErrUndecodable, err)
	case len(rest) > 0:
		return fmt.Errorf("%w msgpack: %d bytes after the value", ErrUndecodable, len(rest))
	}
	return nil
}

// appendAny appends a decoded JSON value.
func appendAny(b []byte, value any) (_ []byte, err error) {
	switch v := value.(type) {
	case json.Number:
		return appendNumber(b, v)
	case []any:
		b = msgp.AppendArrayHeader(b, uint32(len(v)))
		for _, element := range v {
			if b, err = appendAny(b, element); err != nil {
				return nil, err
			}
		}
		return b, nil
	case map[string]any:
		b = msgp.AppendMapHeader(b, uint32(len(v)))
		for name, member := range v {
			if b, err = appendAny(msgp.AppendString(b, name), member); err != nil {
				return nil, err
			}
		}
		return b, nil
	default:
		return msgp.AppendIntf(b, value)
	}
}

func appendNumber(b []byte, n json.Number) ([]byte, error) {
	if !strings.ContainsAny(n.String(), ".eE") {
		if i, err := n.Int64(); err == nil {
			return msgp.AppendInt64(b, i), nil
		}
	}
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("%w JSON: %w", ErrUndecodable, err)
	}
	return msgp.AppendFloat64(b, f), nil
}
