package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

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

// serveRanges answers with the ranges of a content of size bytes that a request asks for, or with all of it. has
// begins what a problem says of the size. What reads several ranges may go on for a moment after it has returned.
func serveRanges(w http.ResponseWriter, r *http.Request, has string, content io.ReadSeeker, size int64) error {
	asked, ranged := r.Header.Get("Range"), &rangeWriter{ResponseWriter: w}
	if asksForNothing(asked) && r.Header.Get("If-Range") == "" {
		return badRange(w.Header(), asked, has, size)
	}
	http.ServeContent(ranged, r, "", time.Time{}, content)
	if ranged.refused {
		return badRange(w.Header(), asked, has, size)
	}
	return nil
}

// badRange is the problem of a range that a content of size bytes does not have.
func badRange(h http.Header, header, has string, size int64) error {
	for _, name := range []string{"Content-Type", "Futura-Codec", "Futura-Exit-Code", "ETag", "Accept-Ranges"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "no-store") // which ServeContent has removed
	h.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
	return stack.NewProblem(http.StatusRequestedRangeNotSatisfiable, "bad_range", nil,
		"Range: %.80q: %s %d bytes; ask for some of them, such as bytes=0-99", header, has, size)
}
