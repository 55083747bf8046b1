package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
)

// MsgpackAsJSON returns a msgpack value of any content as JSON for people. A byte string is an object
// as in ValueDescription, and a reference to a future is as in JSON arguments. It returns
// layout.ErrBadRecord for what is not exactly one value, has keys that are no text, or is nested deeper than 32.
func MsgpackAsJSON(b []byte) ([]byte, error) {
	value, rest, err := viewMsgpack(b)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: %d bytes after the value", layout.ErrBadRecord, len(rest))
	}
	if isDeeper(value, maxViewDepth) {
		return nil, fmt.Errorf("%w: nested deeper than %d", layout.ErrBadRecord, maxViewDepth)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(nameValue(anyType, value, 0)); err != nil {
		return nil, fmt.Errorf("%w: %w", layout.ErrBadRecord, err)
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

// isDeeper reports whether something in a value is nested deeper than a depth.
func isDeeper(value any, depth int) bool {
	if depth < 0 {
		return true
	}
	deeper := func(inner any) bool { return isDeeper(inner, depth-1) }
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if deeper(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, deeper)
	}
	return false
}

// viewExtension shows a reference to a future and a time, and others by their type.
func viewExtension(x *msgp.RawExtension) any {
	if x.Type == reference.Extension && len(x.Data) == len(layout.ID{}) {
		return map[string]any{reference.Member: layout.ID(x.Data).String()}
	}
	if x.Type == msgp.MsgTimeExtension {
		encoded, err := msgp.AppendExtension(nil, x)
		if err == nil {
			var at time.Time
			if at, _, err = msgp.ReadTimeBytes(encoded); err == nil {
				return at.UTC().Format(time.RFC3339Nano)
			}
		}
	}
	return map[string]any{"extension": x.Type, "data": viewBytes(x.Data, len(x.Data))}
}
