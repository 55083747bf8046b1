package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/futures/httpapi"
)

// errTooLarge is returned for a body above its limit.
var errTooLarge = errors.New("the body is too large")

// body returns a request's body, decompressed and bounded by limit. release
// must be called: large bodies are read a few at a time, since they are held in
// memory.
func (s *server) body(w http.ResponseWriter, r *http.Request, limit int64) (
	content io.Reader, release func(), err error,
) {
	if r.ContentLength > limit {
		return nil, nil, tooLarge(limit)
	}
	release = func() {}
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	if r.ContentLength < 0 || r.ContentLength > largeBody || encoding != "" {
		select {
		case s.large <- struct{}{}:
			release = func() { <-s.large }
		case <-r.Context().Done():
			return nil, nil, r.Context().Err()
		}
	}
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(bodyTime)) == nil {
		slot := release
		release = func() {
			_ = control.SetReadDeadline(time.Time{}) // the connection has gone
			slot()
		}
	}
	content = http.MaxBytesReader(w, r.Body, limit)
	switch encoding {
	case "", "identity":
	case "gzip":
		content, err = unzip(content)
	default:
		err = httpapi.NewProblem(http.StatusUnsupportedMediaType, "bad_media_type", nil,
			"Content-Encoding %.40q: use gzip or none", encoding)
	}
	if err != nil {
		release()
		return nil, nil, bodyProblem(err, limit)
	}
	return &boundedReader{content, limit}, release, nil
}

// boundedReader fails, rather than ends, at its limit.
type boundedReader struct {
	from io.Reader
	left int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

func tooLarge(limit int64) error {
	return httpapi.NewProblem(http.StatusRequestEntityTooLarge, "too_large", nil,
		"the body has more than %d bytes: send less at a time", limit)
}

// bodyProblem says what is wrong with a body.
func bodyProblem(err error, limit int64) error {
	var tooMuch *http.MaxBytesError
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	var p *httpapi.Problem
	switch {
	case errors.As(err, &p), errors.Is(err, batch.ErrBadBatch):
		return err
	case errors.Is(err, errTooLarge), errors.As(err, &tooMuch):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return httpapi.NewProblem(http.StatusRequestTimeout, "timeout", err, "the body took longer than %v", bodyTime)
	case errors.Is(err, io.EOF):
		return badRequest("the body is empty: send JSON")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest("the body is cut off")
	case errors.As(err, &syntax):
		return badRequest("the body is no JSON: %v (at byte %d)", syntax, syntax.Offset)
	case errors.As(err, &mismatch):
		return badRequest("%s: a JSON %s is none of %s", or(mismatch.Field, "the body"), mismatch.Value, mismatch.Type)
	default:
		return badRequest("the body can't be read: %v", err)
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// readJSON decodes a body of at most limit bytes that is one JSON value. Fields
// that to does not have are passed over.
func (s *server) readJSON(w http.ResponseWriter, r *http.Request, limit int64, to any) error {
	content, release, err := s.body(w, r, limit)
	if err != nil {
		return err
	}
	defer release()
	return wrongBody(decodeJSON(content, to), limit)
}

func wrongBody(err error, limit int64) error {
	if err == nil {
		return nil
	}
	return bodyProblem(err, limit)
}

func decodeJSON(content io.Reader, to any) error {
	d := json.NewDecoder(&spaceReader{from: content})
	if err := d.Decode(to); err != nil {
		return err
	}
	return atEnd(d)
}

// atEnd returns an error if something follows the value.
func atEnd(d *json.Decoder) error {
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = badRequest("something follows the JSON object")
		}
		return err
	}
	return nil
}

// maxList is the most bytes of one item's list of arguments as JSON, where each
// byte of an argument may be written as six.
const maxList = 8 * batch.MaxArguments

// decodeBatch reads the request for a batch, list by list, so that what it
// needs is bounded by the limits of a batch. Fields are found whatever their
// case, the last of those with one name counts, unknown ones are passed over.
func decodeBatch(content io.Reader) (*batchRequest, error) {
	d := json.NewDecoder(&spaceReader{from: content})
	if err := expect(d, '{'); err != nil {
		return nil, err
	}
	request := &batchRequest{}
	err := decodeFields(d, request)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return request, atEnd(d)
}

func decodeFields(d *json.Decoder, request *batchRequest) error {
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		switch key := name.(string); {
		case strings.EqualFold(key, "arguments"):
			request.Arguments, err = decodeLists(d)
		case strings.EqualFold(key, "template"):
			err = decodeTemplate(d, &request.Template)
		case strings.EqualFold(key, "max_attempts"):
			err = decodeAttempts(d, &request.MaxAttempts)
		case strings.EqualFold(key, "topic"):
			err = d.Decode(&request.Topic)
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
		err = badRequest("the body must be a JSON object")
	}
	return err
}

func decodeTemplate(d *json.Decoder, to *templateBody) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	if len(raw) > MaxTemplate {
		return httpapi.NewProblem(http.StatusRequestEntityTooLarge, "too_large", nil,
			"template has %d bytes: at most %d", len(raw), MaxTemplate)
	}
	return named("template", json.Unmarshal(raw, to))
}

func decodeAttempts(d *json.Decoder, to *uint64) error {
	var mismatch *json.UnmarshalTypeError
	if err := d.Decode(to); errors.As(err, &mismatch) {
		return badRequest("max_attempts: %s is none of 0 to %d", mismatch.Value, ^uint64(0))
	} else if err != nil {
		return err
	}
	return nil
}

// named puts the name of the field before that of a wrong one inside it.
func named(field string, err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		if mismatch.Field != "" {
			field += "." + mismatch.Field
		}
		return badRequest("%s: a JSON %s is none of %s", field, mismatch.Value, mismatch.Type)
	}
	return err
}

func decodeLists(d *json.Decoder) ([][]string, error) {
	token, err := d.Token()
	if err != nil || token == nil {
		return nil, err
	}
	if token != json.Delim('[') {
		return nil, badRequest("arguments: a list of lists of strings is expected")
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
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, named(fmt.Sprintf("arguments[%d]", len(lists)), err)
		}
		lists = append(lists, list)
	}
	_, err = d.Token()
	return lists, err
}
