package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// rangeWriter holds back an answer which says that a range can't be satisfied, so that
// it can be a problem.
type rangeWriter struct {
	http.ResponseWriter
	refused bool
}

// Unwrap is for http.ResponseController.
func (w *rangeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *rangeWriter) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// asksForNothing reports whether a Range header asks for the last 0 bytes alone, which
// http.ServeContent answers with a range that ends before it begins.
func asksForNothing(header string) bool {
	ranges, is := strings.CutPrefix(header, "bytes=")
	if !is {
		return false
	}
	for part := range strings.SplitSeq(ranges, ",") {
		if digits, last := strings.CutPrefix(strings.TrimSpace(part), "-"); !last || digits == "" ||
			strings.Trim(digits, "0") != "" {
			return false
		}
	}
	return true
}

// badRange is the problem of a range that a result of size bytes does not have.
func badRange(h http.Header, header string, size int64) error {
	for _, name := range []string{"Content-Type", "Futura-Codec", "Futura-Exit-Code", "ETag", "Accept-Ranges"} {
		h.Del(name)
	}
	h.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
	return stack.NewProblem(http.StatusRequestedRangeNotSatisfiable, "bad_range", nil,
		"Range: %.80q: the result has %d bytes; ask for some of them, such as bytes=0-99", header, size)
}
