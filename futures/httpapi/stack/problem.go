package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// maxFieldErrors is how many invalid fields a problem names.
const maxFieldErrors = 24

// Problem is an RFC 9457 problem with a code for programs.
type Problem struct {
	// Status is the status of the response, Title its text. Detail says what
	// happened and what can be done about it.
	Status int    `json:"status"`
	Title  string `json:"title"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Message repeats Detail under the name that clients of b7s read.
	Message string `json:"message"`
	// Errors name invalid fields, at most 24.
	Errors []FieldError `json:"errors,omitempty"`
	// About is what programs may want to know, by names that depend on Code.
	About map[string]any `json:"about,omitempty"`

	cause error
	// header is sent with the problem.
	header map[string]string
}

// FieldError says what is wrong with a field of the request.
type FieldError struct {
	Location string `json:"location,omitempty"`
	Message  string `json:"message"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the status of the response.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of a problem.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// SetHeader has a header sent with the problem.
func (p *Problem) SetHeader(name, value string) {
	if p.header == nil {
		p.header = map[string]string{}
	}
	p.header[name] = value
}

// GetHeaders returns the headers that are sent with the problem.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	for name, value := range p.header {
		h.Set(name, value)
	}
	return h
}

// Unwrap returns the cause of the problem, nil if the request was invalid.
func (p *Problem) Unwrap() error { return p.cause }

// StatusClosed is logged as the status of a request whose client has
// disconnected.
const StatusClosed = 499

// ErrorCode is one row of a table of errors: an error and its problem.
type ErrorCode struct {
	Err    error
	Status int
	Code   string
	// Describe says more in the problem, if it is not nil.
	Describe func(err error, p *Problem)
}

// ProblemOf returns the problem for an error by a table of errors, whose rows
// are tried in order, then by the errors of package context. An error that
// matches no row is a server error.
func ProblemOf(table []ErrorCode, err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	for _, c := range table {
		if errors.Is(err, c.Err) {
			p := NewProblem(c.Status, c.Code, err, "%s", err)
			if c.Describe != nil {
				c.Describe(err, p)
			}
			return p
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return NewProblem(http.StatusGatewayTimeout, "timeout", err, "%s", err)
	case errors.Is(err, context.Canceled):
		return NewProblem(StatusClosed, "client_gone", err, "%s", err)
	default:
		return NewProblem(http.StatusInternalServerError, "internal", err, "%s", err)
	}
}

// NewProblem returns a problem. cause may be nil and is returned by Unwrap.
func NewProblem(status int, code string, cause error, format string, args ...any) *Problem {
	detail, title := fmt.Sprintf(format, args...), http.StatusText(status)
	if status == StatusClosed {
		title = "Client Closed Request"
	}
	return &Problem{Status: status, Title: title, Code: code, Detail: detail, Message: detail, cause: cause}
}

// Prefix is an error with a text before it, which a problem has before its detail.
func Prefix(err error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...) + ": " + err.Error()
	var p *Problem
	if !errors.As(err, &p) {
		return fmt.Errorf("%s%w", strings.TrimSuffix(text, err.Error()), err)
	}
	said := *p
	said.Detail, said.Message = text, text
	return &said
}

// BadRequest returns the problem for an invalid request.
func BadRequest(format string, args ...any) error {
	return NewProblem(http.StatusBadRequest, "bad_request", nil, format, args...)
}

// TooLarge returns the problem for a body above its limit.
func TooLarge(limit int64) *Problem {
	return NewProblem(http.StatusRequestEntityTooLarge, "too_large", nil,
		"the body has more bytes than limit=%d: send less at a time", limit)
}

// asProblem turns an error of the framework into a Problem.
func asProblem(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	if q := requestOf(ctx.Context()); q != nil && q.failure != nil {
		return q.failure, nil
	}
	if m.Status == http.StatusUnsupportedMediaType {
		return NewProblem(m.Status, codeOf(m.Status), nil, "the Content-Type %.80q is not understood: send JSON, as "+
			"application/json", ctx.Header("Content-Type")), nil
	}
	p := NewProblem(m.Status, codeOf(m.Status), nil, "%s", m.Detail)
	for _, e := range m.Errors {
		if e != nil && len(p.Errors) < maxFieldErrors {
			p.Errors = append(p.Errors, FieldError{Location: clip(e.Location), Message: clip(e.Message)})
		}
	}
	if len(p.Errors) > 0 {
		p.Detail += ": " + p.Errors[0].Message
		if p.Errors[0].Location != "" {
			p.Detail += " (" + p.Errors[0].Location + ")"
		}
		p.Message = p.Detail
	}
	return p, nil
}

// clip bounds how much of a client's own text a problem repeats.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// codeOf returns the code of a problem that the framework found.
func codeOf(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return "bad_request"
	case http.StatusRequestEntityTooLarge:
		return "too_large"
	case http.StatusUnsupportedMediaType:
		return "bad_media_type"
	case http.StatusRequestTimeout:
		return "timeout"
	default:
		return "internal"
	}
}

// fail answers a request with the problem for an error, in its route's shape.
func (s *Stack) fail(w http.ResponseWriter, found *route, err error) {
	p := ProblemOf(s.options.Errors, err)
	h := w.Header()
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="futura"`)
	}
	for name, value := range p.header {
		h.Set(name, value)
	}
	h.Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	var shown any = p
	if found != nil && found.shape != nil {
		shown = found.shape(p)
	}
	_ = json.NewEncoder(w).Encode(shown) // the client may have disconnected
}
