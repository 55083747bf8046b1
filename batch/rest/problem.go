package rest

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/source"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// errStopping is returned to requests that a server which stops can't serve any
// more.
var errStopping = errors.New("the server stops: try again")

// errorCodes are the problems that errors of batches are, and those of the
// cluster.
func errorCodes() []stack.ErrorCode {
	return append([]stack.ErrorCode{
		{Err: batch.ErrNotFound, Status: http.StatusNotFound, Code: "not_found"},
		{Err: batch.ErrBusy, Status: http.StatusServiceUnavailable, Code: "busy", Describe: soon},
		{Err: batch.ErrExists, Status: http.StatusConflict, Code: "id_in_use"},
		{Err: batch.ErrState, Status: http.StatusConflict, Code: "wrong_state"},
		{Err: batch.ErrBadBatch, Status: http.StatusBadRequest, Code: "bad_batch"},
		{Err: batch.ErrUnavailable, Status: http.StatusServiceUnavailable, Code: "store_unavailable"},
		{Err: source.ErrPrivate, Status: http.StatusForbidden, Code: "private_source"},
		{Err: source.ErrPlain, Status: http.StatusForbidden, Code: "insecure_source"},
		{Err: source.ErrSource, Status: http.StatusBadGateway, Code: "bad_source"},
		{Err: source.ErrArchive, Status: http.StatusUnprocessableEntity, Code: "bad_archive"},
		{Err: errStopping, Status: http.StatusServiceUnavailable, Code: "stopping"},
	}, httpapi.Errors()...)
}

// soon has a request repeated after a second.
func soon(_ error, p *stack.Problem) { p.SetHeader("Retry-After", "1") }

// legacyProblem is a problem as clients of b7s read it, and others too.
type legacyProblem struct {
	stack.Problem
	Code string `json:"code" doc:"The code of b7s: the status as text"`
	Name string `json:"name" doc:"The code on other paths"`
}

// legacyShape shows a problem to clients of b7s.
func legacyShape(p *stack.Problem) any { return &legacyProblem{*p, strconv.Itoa(p.Status), p.Code} }
