// Package jsonpointer finds the text that an RFC 6901 pointer leads to in JSON.
package jsonpointer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Check returns an error unless text is an RFC 6901 pointer to a part of a value.
func Check(text string) error {
	_, err := parse(text)
	return err
}

func parse(text string) ([]string, error) {
	steps := strings.Split(text, "/")
	if steps[0] != "" || len(steps) < 2 {
		return nil, fmt.Errorf("pointer %.80q: it does not begin with /", text)
	}
	for i, step := range steps {
		if strings.Contains(strings.ReplaceAll(strings.ReplaceAll(step, "~0", ""), "~1", ""), "~") {
			return nil, fmt.Errorf("pointer %.80q: ~ is written ~0, and / in a name ~1", text)
		}
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
	}
	return steps[1:], nil
}

// Text returns the string, integer or boolean that an RFC 6901 pointer leads to in
// JSON: a string as it is, the others as they are written. Of fields with the same name
// the last one counts. It returns an error for a value of another type, and for none.
// It needs no memory but for the value.
func Text(document []byte, pointer string) (string, error) {
	steps, err := parse(pointer)
	if err != nil {
		return "", err
	}
	if !json.Valid(document) {
		return "", errors.New("the input is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	value, err := pointed(d, steps)
	if err != nil {
		return "", fmt.Errorf("the input: %w", err)
	}
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			break // one number has many spellings
		}
		return v.String(), nil
	}
	return "", fmt.Errorf("the input has no string, integer or boolean at %s", pointer)
}

// pointed reads a value, and returns the scalar that steps lead to from there, else nil.
func pointed(d *json.Decoder, steps []string) (found any, err error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	open, nested := token.(json.Delim)
	if !nested {
		if len(steps) > 0 {
			return nil, nil
		}
		return token, nil
	}
	for i := 0; d.More(); i++ {
		step := strconv.Itoa(i)
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			step, _ = name.(string)
		}
		if len(steps) == 0 || step != steps[0] {
			if err := skipValue(d); err != nil {
				return nil, err
			}
			continue
		}
		if found, err = pointed(d, steps[1:]); err != nil {
			return nil, err
		}
	}
	_, err = d.Token()
	return found, err
}

// skipValue reads a value, however deep.
func skipValue(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
