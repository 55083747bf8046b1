package stack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Limits of JSON that is checked before it is decoded. The value of a field
// named input is a function's own, and not checked.
const (
	maxValues = 50_000
	maxDepth  = 32
	ownField  = "input"
)

// Unmarshal counts the values of JSON before it decodes it, so that a small
// body stays small in memory: it returns an error for more than 50,000 values or
// a nesting of more than 32, outside of fields named input. Decoding into an any
// gives the value that the framework checks, in which a function's own input is
// null.
func Unmarshal(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	c := &counted{decoder: d}
	tree, err := c.value(0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("the body continues after the JSON value")
		}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("unexpected end of JSON input")
	}
	if err != nil {
		return err
	}
	if to, ok := v.(*any); ok {
		*to = tree
		return nil
	}
	return json.Unmarshal(data, v)
}

// counted reads values up to a limit.
type counted struct {
	decoder *json.Decoder
	values  int
}

func (c *counted) value(depth int) (any, error) {
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if depth == maxDepth {
		return nil, fmt.Errorf("values are nested more than %d deep", maxDepth)
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for c.decoder.More() {
			v, err := c.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = c.decoder.Token()
		return list, err
	case json.Delim('{'):
		return c.object(depth)
	default:
		return token, nil
	}
}

func (c *counted) object(depth int) (any, error) {
	object := map[string]any{}
	for c.decoder.More() {
		token, err := c.token()
		if err != nil {
			return nil, err
		}
		name := token.(string)
		if name == ownField {
			var own json.RawMessage
			if err := c.decoder.Decode(&own); err != nil {
				return nil, err
			}
			object[name] = nil
			if own[0] == '"' {
				object[name] = ""
			}
			continue
		}
		if object[name], err = c.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := c.decoder.Token()
	return object, err
}

func (c *counted) token() (json.Token, error) {
	if c.values++; c.values > maxValues {
		return nil, fmt.Errorf("more than %d JSON values: send fewer at a time", maxValues)
	}
	return c.decoder.Token()
}
