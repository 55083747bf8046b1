package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// Problem is an error as RFC 9457 has it, with a code for programs.
type Problem struct {
	// Status is that of the response, Title its text, Detail what happened with
	// what can be done about it.
	Status int    `json:"status"`
	Title  string `json:"title"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Message is Detail under the name by which clients of b7s read errors.
	Message string `json:"message"`
	// Errors name the fields that are wrong.
	Errors []FieldError `json:"errors,omitempty"`

	cause error
}

// FieldError says what is wrong with a field of the request.
type FieldError struct {
	Location string `json:"location,omitempty"`
	Message  string `json:"message"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus makes the status the response's.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of a problem.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// Unwrap returns what caused the problem, nil if the request was wrong.
func (p *Problem) Unwrap() error { return p.cause }

// statusClosed is the status of a request whose client has gone, for the log.
const statusClosed = 499

// problemCode is one row of the table of errors.
type problemCode struct {
	err    error
	status int
	code   string
}

// problemCodes is the one table of errors, codes and statuses, in the order in
// which they are looked for: an unknown result comes with the reason for it.
func problemCodes() []problemCode {
	return []problemCode{
		{kv.ErrUnknownResult, http.StatusServiceUnavailable, "unknown_result"},
		{layout.ErrBadID, http.StatusBadRequest, "bad_id"},
		{layout.ErrBadName, http.StatusBadRequest, "bad_name"},
		{layout.ErrBadSpec, http.StatusBadRequest, "bad_future"},
		{layout.ErrBadCursor, http.StatusBadRequest, "bad_cursor"},
		{layout.ErrUnfit, http.StatusConflict, "unfit_worker"},
		{fdbmodel.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
		{fdbmodel.ErrNotFound, http.StatusNotFound, "not_found"},
		{fdbmodel.ErrIDInUse, http.StatusConflict, "id_in_use"},
		{fdbmodel.ErrTransition, http.StatusConflict, "wrong_state"},
		{layout.ErrNewerRecord, http.StatusInternalServerError, "newer_record"},
		{layout.ErrBadRecord, http.StatusInternalServerError, "bad_record"},
		{futures.ErrClosed, http.StatusServiceUnavailable, "stopping"},
		{kv.ErrClosed, http.StatusServiceUnavailable, "stopping"},
		{kv.ErrStoreFailed, http.StatusServiceUnavailable, "store_failed"},
		{kv.ErrUnavailable, http.StatusServiceUnavailable, "store_unavailable"},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, "timeout"},
		{context.Canceled, statusClosed, "client_gone"},
	}
}

// problemOf returns the problem that an error is, nil for none.
func problemOf(err error) error {
	if err == nil {
		return nil
	}
	return ProblemOf(err)
}

// ProblemOf returns the problem that an error of a cluster or its store is.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	for _, c := range problemCodes() {
		if errors.Is(err, c.err) {
			return NewProblem(c.status, c.code, err, "%s", err)
		}
	}
	return NewProblem(http.StatusInternalServerError, "internal", err, "%s", err)
}

// NewProblem returns a problem. cause, if there is one, is what Unwrap returns.
func NewProblem(status int, code string, cause error, format string, args ...any) *Problem {
	detail := fmt.Sprintf(format, args...)
	return &Problem{
		Status: status, Title: statusText(status), Code: code, Detail: detail, Message: detail, cause: cause,
	}
}

func statusText(status int) string {
	if status == statusClosed {
		return "Client Closed Request"
	}
	return http.StatusText(status)
}

func badRequest(format string, args ...any) error {
	return NewProblem(http.StatusBadRequest, "bad_request", nil, format, args...)
}

// asProblem turns what the framework has to say into a Problem.
func asProblem(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := NewProblem(m.Status, codeOf(m.Status), nil, "%s", m.Detail)
	for _, e := range m.Errors {
		if e != nil {
			p.Errors = append(p.Errors, FieldError{Location: e.Location, Message: e.Message})
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

// codeOf is the code of a problem that the framework found.
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

// WriteProblem answers a request with a problem.
func WriteProblem(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have gone
}
