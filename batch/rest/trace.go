package rest

import (
	"context"
	"net/http"
	"strings"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// The headers of a trace, as W3C's Trace Context has them.
const (
	traceParent = "traceparent"
	traceState  = "tracestate"
	// maxTraceState is how many bytes of the latter are kept with each item; a longer one is
	// left out.
	maxTraceState = 512
)

// withTrace is the context of a request with the trace that it is part of, if its headers
// name one.
func withTrace(r *http.Request) context.Context {
	parent := r.Header.Get(traceParent)
	if !isTraceParent(parent) {
		return r.Context()
	}
	carrier := map[string]string{traceParent: parent}
	if state := strings.Join(r.Header.Values(traceState), ","); isTraceState(state) {
		carrier[traceState] = state
	}
	return context.WithValue(r.Context(), layout.TraceKey{}, carrier)
}

// isTraceParent reports whether a text is version 00 of the header: 00-TRACE-SPAN-FLAGS, in
// hex digits of lower case, where neither trace nor span is all zeros.
func isTraceParent(text string) bool {
	if len(text) != len("00-")+32+len("-")+16+len("-01") || text[:3] != "00-" || text[35] != '-' || text[52] != '-' {
		return false
	}
	trace, span, flags := text[3:35], text[36:52], text[53:]
	return strings.Trim(trace, "0") != "" && strings.Trim(span, "0") != "" &&
		strings.Trim(trace+span+flags, "0123456789abcdef") == ""
}

// isTraceState reports whether a text can be kept with each item.
func isTraceState(text string) bool {
	strange := func(r rune) bool { return r < ' ' || r > '~' }
	return text != "" && len(text) <= maxTraceState && !strings.ContainsFunc(text, strange)
}
