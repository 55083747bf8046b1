package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// bodyProblem says what is wrong with a body.
func bodyProblem(err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	var p *stack.Problem
	switch {
	case errors.As(err, &p), errors.Is(err, batch.ErrBadBatch):
		return err
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, io.EOF):
		return stack.BadRequest("the body is empty: send JSON")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return stack.BadRequest("the body is cut off")
	case errors.As(err, &syntax):
		return stack.BadRequest("the body is not valid JSON: %v (at byte %d)", syntax, syntax.Offset)
	case errors.As(err, &mismatch):
		return misfit(cmp.Or(mismatch.Field, "the body"), mismatch)
	default:
		return stack.BadRequest("the body can't be read: %v", err)
	}
}

// readJSON decodes a body of at most limit bytes that is one JSON value. Fields
// that to does not have are passed over.
func readJSON(r *http.Request, limit int64, to any) error {
	content, err := stack.Body(r, limit)
	if err == nil {
		err = decodeJSON(r.Context(), content, to)
	}
	if err != nil {
		return bodyProblem(err)
	}
	return nil
}

func decodeJSON(ctx context.Context, content io.Reader, to any) error {
	var raw json.RawMessage
	d := json.NewDecoder(&spaceReader{from: content})
	if err := d.Decode(&raw); err != nil {
		return err
	}
	if err := atEnd(d); err != nil {
		return err
	}
	// The raw value is a copy, and decoding makes another one of its texts.
	if err := stack.Reserve(ctx, 2*int64(len(raw))); err != nil {
		return err
	}
	return stack.Unmarshal(raw, to)
}

// atEnd returns an error if something follows the value.
func atEnd(d *json.Decoder) error {
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = stack.BadRequest("the body continues after the JSON object")
		}
		return err
	}
	return nil
}

// maxList is the most bytes of one item's list of arguments as JSON, where each
// byte of an argument may be written as six.
const maxList = 8 * batch.MaxArguments

// What a list and a string hold in memory beside their bytes, as a slice of them
// grows.
const (
	listBytes   = 48
	stringBytes = 24
)

// decodeBatch reads the request for a batch, list by list, so that what it
// needs is bounded by the limits of a batch. Fields are found whatever their
// case, the last of those with one name counts, unknown ones are passed over.
func decodeBatch(ctx context.Context, content io.Reader) (*batchRequest, error) {
	d := json.NewDecoder(&spaceReader{from: content})
	if err := expect(d, '{'); err != nil {
		return nil, err
	}
	request := &batchRequest{}
	err := decodeFields(ctx, d, request)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return request, atEnd(d)
}

func decodeFields(ctx context.Context, d *json.Decoder, request *batchRequest) error {
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		switch key := name.(string); {
		case strings.EqualFold(key, "arguments"):
			request.Arguments, err = decodeLists(ctx, d)
		case strings.EqualFold(key, "template"):
			err = decodeTemplate(d, &request.Template)
		case strings.EqualFold(key, "max_attempts"):
			err = named("max_attempts", d.Decode(&request.MaxAttempts))
		case strings.EqualFold(key, "topic"):
			err = named("topic", d.Decode(&request.Topic))
		default:
			var unknown json.RawMessage
			err = d.Decode(&unknown)
		}
		if err != nil {
			return err
		}
	}
	return expect(d, '}')
}

func expect(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err == nil && token != want {
		err = stack.BadRequest("the body must be a JSON object")
	}
	return err
}

func decodeTemplate(d *json.Decoder, to *templateBody) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	if len(raw) > MaxTemplate {
		return stack.NewProblem(http.StatusRequestEntityTooLarge, "too_large", nil,
			"template has %d bytes: at most %d are read, and a batch keeps at most %d", len(raw), MaxTemplate, batch.MaxTemplate)
	}
	return named("template", stack.Unmarshal(raw, to))
}

// named puts the name of the field before that of a wrong one inside it.
func named(field string, err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		if mismatch.Field != "" {
			field += "." + mismatch.Field
		}
		return misfit(field, mismatch)
	}
	return err
}

// misfit is the problem of a field that has, or of whose elements one has, JSON of another type.
func misfit(field string, m *json.UnmarshalTypeError) error {
	got := map[string]string{
		"array": "a list", "object": "an object", "string": "a string", "bool": "true or false", "number": "a number",
	}[m.Value]
	number, _ := strings.CutPrefix(m.Value, "number ")
	return stack.BadRequest("%s: use %s, not %.40s", field, wanted(m.Type), cmp.Or(got, number))
}

// wanted names the JSON that a type is.
func wanted(t reflect.Type) string {
	switch kind := t.Kind(); {
	case kind == reflect.String:
		return "a string"
	case kind == reflect.Bool:
		return "true or false"
	case kind == reflect.Slice:
		return "a list"
	case kind >= reflect.Int && kind <= reflect.Int64:
		return fmt.Sprintf("a whole number up to %d", uint64(1)<<(t.Bits()-1)-1)
	case kind >= reflect.Uint && kind <= reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
	case kind == reflect.Float64:
		return "a number"
	default:
		return "an object"
	}
}

func decodeLists(ctx context.Context, d *json.Decoder) ([][]string, error) {
	token, err := d.Token()
	if err != nil || token == nil {
		return nil, err
	}
	if token != json.Delim('[') {
		return nil, stack.BadRequest("arguments must be a list of lists of strings")
	}
	var lists [][]string
	for d.More() {
		if len(lists) == batch.MaxItems {
			return nil, fmt.Errorf("%w: arguments has more than %d lists", batch.ErrBadBatch, batch.MaxItems)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		if len(raw) > maxList {
			return nil, fmt.Errorf("%w: arguments[%d] has %d bytes as JSON: at most %d arguments bytes, and %d in all",
				batch.ErrBadBatch, len(lists), len(raw), batch.MaxArguments, maxList)
		}
		if err := stack.CheckText(raw); err != nil {
			return nil, stack.BadRequest("arguments[%d]: %v", len(lists), err)
		}
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, stack.BadRequest("arguments[%d] must be a list of strings", len(lists))
		}
		if err := stack.Reserve(ctx, listBytes+stringBytes*int64(len(list))); err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	_, err = d.Token()
	return lists, err
}
