package main

import (
	"net/http"

	"github.com/futura-run/futura/internal/socket"
)

// idempotencyKey is the header of a request that has its effect once, however often it is
// sent.
const idempotencyKey = "Idempotency-Key"

// again sends a request once more whose connection was cut before an answer came, if that
// can do no harm: it reads, or has an idempotency key. Others may have had their effect.
type again struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a again) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(r)
	if err == nil || !socket.IsCut(err) || !isRepeatable(r) || r.Context().Err() != nil {
		return response, err
	}
	second := r.Clone(r.Context())
	if r.GetBody != nil {
		if second.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return a.RoundTripper.RoundTrip(second)
}

func isRepeatable(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get(idempotencyKey) != ""
}
