package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/futures/httpapi"
)

// problemCode is one row of the table of errors.
type problemCode struct {
	err    error
	status int
	code   string
}

// problemCodes are the errors of batches with their codes and statuses. Others
// have those of package httpapi.
func problemCodes() []problemCode {
	return []problemCode{
		{batch.ErrNotFound, http.StatusNotFound, "not_found"},
		{batch.ErrExists, http.StatusConflict, "id_in_use"},
		{batch.ErrState, http.StatusConflict, "wrong_state"},
		{batch.ErrBadBatch, http.StatusBadRequest, "bad_batch"},
		{batch.ErrUnavailable, http.StatusServiceUnavailable, "store_unavailable"},
		{errStopping, http.StatusServiceUnavailable, "stopping"},
	}
}

var (
	// errStopping is returned to requests that a server which stops can't serve
	// any more.
	errStopping = errors.New("the server stops: try again")
	// errCut ends an answer that can't be completed: its reader sees it cut off.
	errCut = errors.New("the answer was cut off")
)

// problemOf returns the problem that an error is.
func problemOf(err error) *httpapi.Problem {
	var p *httpapi.Problem
	if errors.As(err, &p) {
		return p
	}
	for _, c := range problemCodes() {
		if errors.Is(err, c.err) {
			return httpapi.NewProblem(c.status, c.code, err, "%s", err)
		}
	}
	return httpapi.ProblemOf(err)
}

func badRequest(format string, args ...any) error {
	return httpapi.NewProblem(http.StatusBadRequest, "bad_request", nil, format, args...)
}

// legacyProblem is a problem as clients of b7s read it, and others too.
type legacyProblem struct {
	httpapi.Problem
	Code string `json:"code" doc:"The code of b7s: the status as text"`
	Name string `json:"name" doc:"The code that other paths have"`
}

// fail answers a request with an error.
func fail(w http.ResponseWriter, legacy bool, err error) {
	p := problemOf(err)
	if !legacy {
		httpapi.WriteProblem(w, p)
		return
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(&legacyProblem{*p, strconv.Itoa(p.Status), p.Code}) // the client may have gone
}

// writeJSON answers a request.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // the client may have gone
	return nil
}
