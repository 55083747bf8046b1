package stack

import (
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// zipperBytes is the memory that compressing an answer takes.
const zipperBytes = 1 << 20

func newZippers() sync.Pool { return sync.Pool{New: func() any { return gzip.NewWriter(nil) }} }

// compress wraps a response for a client that has a token and accepts gzip. The
// returned end must be called once the answer has been written, unless it is cut off.
func (s *Stack) compress(out *response, r *http.Request, q *request) (zipped http.ResponseWriter, end func()) {
	out.Header().Add("Vary", "Accept-Encoding")
	if !q.authenticated || !acceptsGzip(r.Header.Get("Accept-Encoding")) {
		return out, func() {}
	}
	z := &zippingWriter{ResponseWriter: out, request: q, context: r.Context()}
	return z, func() {
		if z.writer == nil {
			return
		}
		if z.failed || z.left > 0 && r.Method != http.MethodHead {
			out.cut = true
			return
		}
		_ = z.writer.Close() // the client may have disconnected
		s.zippers.Put(z.writer)
	}
}

func acceptsGzip(header string) bool {
	for _, part := range strings.Split(header, ",") {
		name, parameters, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			quality, given := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
			q, err := strconv.ParseFloat(quality, 64)
			return !given || err == nil && q > 0
		}
	}
	return false
}

// zippingWriter compresses an answer, except for events, whose readers want
// each at once, and unless the budget has no memory for it.
type zippingWriter struct {
	http.ResponseWriter
	request *request
	context context.Context
	decided bool
	// writer is nil for an answer that is not compressed.
	writer *gzip.Writer
	// left is how many bytes of the declared length were not written, failed is set once one could not be.
	left   int64
	failed bool
}

// WriteHeader implements http.ResponseWriter.
func (z *zippingWriter) WriteHeader(status int) {
	h := z.Header()
	if !z.decided && status >= http.StatusOK {
		z.decided = true
		if status != http.StatusNoContent && status != http.StatusNotModified && h.Get("Content-Encoding") == "" &&
			status != http.StatusPartialContent && h.Get("Content-Range") == "" &&
			!strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") && z.request.try(zipperBytes) {
			h.Set("Content-Encoding", "gzip")
			z.left, _ = strconv.ParseInt(h.Get("Content-Length"), 10, 64)
			h.Del("Content-Length")
			h.Del("Accept-Ranges") // they would be parts of what is not compressed
			if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
				h.Set("ETag", "W/"+tag)
			}
			z.writer = z.request.stack.zippers.Get().(*gzip.Writer)
			z.writer.Reset(z.ResponseWriter)
		}
	}
	z.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (z *zippingWriter) Write(b []byte) (n int, err error) {
	if !z.decided {
		z.WriteHeader(http.StatusOK)
	}
	if z.writer == nil {
		return z.ResponseWriter.Write(b)
	}
	for first := true; err == nil && (first || n < len(b)); first = false {
		piece := b[n:min(len(b), n+pieceBytes)]
		if err = z.request.work(z.context, int64(len(piece))); err == nil {
			wrote, failed := z.writer.Write(piece)
			n, err = n+wrote, failed
		}
	}
	z.left -= int64(n)
	z.failed = z.failed || err != nil
	return n, err
}

// FlushError sends the bytes that were written so far.
func (z *zippingWriter) FlushError() error {
	var err error
	if z.writer != nil {
		err = z.writer.Flush()
	}
	return errors.Join(err, http.NewResponseController(z.ResponseWriter).Flush())
}

// Unwrap lets http.ResponseController reach the writer below.
func (z *zippingWriter) Unwrap() http.ResponseWriter { return z.ResponseWriter }
