package stack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// Limits of JSON that is checked before it is decoded. The value of a field
// named input, or value, is a function's own, and not checked.
const (
	maxValues = 50_000
	maxDepth  = 32
)

func isOwn(field string) bool { return field == "input" || field == "value" }

// OwnJSON is a body that is a function's own as a whole, in a route whose body is not validated. Check
// says what is wrong with it.
type OwnJSON json.RawMessage

// Schema implements huma.SchemaProvider: it is any JSON.
func (OwnJSON) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

// Check returns the body, nil for none and for null, or a problem for what is no JSON and what CheckText refuses.
func (o *OwnJSON) Check() (json.RawMessage, error) {
	if o == nil || len(bytes.TrimSpace(*o)) == 0 {
		return nil, nil
	}
	var body *json.RawMessage
	err := CheckText(*o)
	if err == nil {
		err = json.Unmarshal(*o, &body)
	}
	switch {
	case err != nil:
		return nil, BadRequest("%v", err)
	case body == nil:
		return nil, nil
	}
	return *body, nil
}

// Unmarshal counts the values of JSON before it decodes it, so that a small
// body stays small in memory: it returns an error for more than 50,000 values or
// a nesting of more than 32, outside of fields named input and value, and for what CheckText
// refuses. Decoding into an any gives the value that the framework checks, in which a
// function's own is null and no other field is there twice. An OwnJSON it leaves unchecked.
func Unmarshal(data []byte, v any) error {
	if own, is := v.(**OwnJSON); is {
		body := OwnJSON(bytes.Clone(data))
		*own = &body
		return nil
	}
	if err := CheckText(data); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	to, strict := v.(*any)
	c := &counted{decoder: d, strict: strict}
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
	if strict {
		*to = tree
		return nil
	}
	err = json.Unmarshal(data, v)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && strings.HasPrefix(mismatch.Value, "number ") {
		if plain := plainNumbers(data); plain != nil {
			err = json.Unmarshal(plain, v)
		}
	}
	if errors.As(err, &mismatch) {
		return wrongNumber(mismatch)
	}
	return err
}

// plainNumbers is JSON with its whole numbers as integers are decoded: 2e3 and 2000.0 as 2000. A function's own stays
// as it is. It is nil where there are none.
func plainNumbers(data []byte) (plain []byte) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	done := 0
	(&counted{decoder: d, number: func(n json.Number) {
		if whole, is := wholeNumber(string(n)); is && whole != string(n) {
			end := int(d.InputOffset())
			plain = append(append(plain, data[done:end-len(n)]...), whole...)
			done = end
		}
	}}).value(0)
	if plain == nil {
		return nil
	}
	return append(plain, data[done:]...)
}

// longestNumber is the length of a number in JSON, and its exponent, up to which it may be a whole one for a field.
const longestNumber = 40

// wholeNumber returns a number of JSON as digits alone, if it is whole.
func wholeNumber(text string) (digits string, is bool) {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	n, err := strconv.Atoi(cmp.Or(exponent, "0"))
	if err != nil || len(text) > longestNumber || max(n, -n) > longestNumber {
		return "", false
	}
	value, is := new(big.Rat).SetString(text)
	if !is || !value.IsInt() {
		return "", false
	}
	return value.Num().String(), true
}

// tooMuch is a number that a field has no room for.
type tooMuch struct {
	*json.UnmarshalTypeError
	most uint64
}

// wrongNumber returns the error for a field of another type, in words if that is a number that the field has no room
// for.
func wrongNumber(err *json.UnmarshalTypeError) error {
	number := strings.HasPrefix(err.Value, "number ")
	switch kind := err.Type.Kind(); {
	case number && kind >= reflect.Int && kind <= reflect.Int64:
		return tooMuch{err, 1<<(err.Type.Bits()-1) - 1}
	case number && kind >= reflect.Uint && kind <= reflect.Uint64:
		return tooMuch{err, 1<<err.Type.Bits() - 1}
	default:
		return err
	}
}

// Error implements error.
func (e tooMuch) Error() string {
	return fmt.Sprintf("%s: %s is too much, or no whole number: use at most %d", e.Field,
		strings.TrimPrefix(e.Value, "number "), e.most)
}

// Unwrap returns the decoder's error.
func (e tooMuch) Unwrap() error { return e.UnmarshalTypeError }

// counted reads values up to a limit.
type counted struct {
	decoder *json.Decoder
	values  int
	strict  bool              // refuses a field that is there twice
	number  func(json.Number) // hears of each, if the decoder uses them; nil for none
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
		if _, twice := object[name]; twice && c.strict {
			return nil, fmt.Errorf("the field %.40q is there twice: send it once", name)
		}
		if isOwn(name) {
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
	token, err := c.decoder.Token()
	if n, is := token.(json.Number); is && c.number != nil {
		c.number(n)
	}
	return token, err
}

// CheckText returns an error for JSON of which decoding would change a text: what is not UTF-8, and
// a half of a surrogate pair that is escaped alone.
func CheckText(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("the JSON is not UTF-8: send texts in UTF-8, and other bytes in base64 where a field encoding " +
			"says so")
	}
	for {
		at := bytes.IndexByte(data, '\\')
		if at < 0 {
			return nil
		}
		data = data[at:]
		first, escaped := escape(data)
		if !escaped || !utf16.IsSurrogate(first) {
			data = data[min(2, len(data)):]
			continue
		}
		second, _ := escape(data[6:])
		if utf16.DecodeRune(first, second) == utf8.RuneError {
			return fmt.Errorf("%s is half of a surrogate pair, which is no text: send both halves, or bytes in base64 where a "+
				"field encoding says so", data[:6])
		}
		data = data[12:]
	}
}

// escape is the character that data begins with, if it is escaped by its number.
func escape(data []byte) (r rune, escaped bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(n), err == nil
}
