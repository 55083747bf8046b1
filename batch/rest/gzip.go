package rest

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// compress wraps a response for a client that takes gzip. The returned end must
// be called.
func (s *server) compress(w http.ResponseWriter, r *http.Request) (zipped http.ResponseWriter, end func()) {
	w.Header().Add("Vary", "Accept-Encoding")
	if !acceptsGzip(r.Header.Get("Accept-Encoding")) {
		return w, func() {}
	}
	z := &zippingWriter{ResponseWriter: w, writer: s.zippers.Get().(*gzip.Writer)}
	return z, func() {
		if z.began {
			_ = z.writer.Close() // the client may have gone
		}
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

// zippingWriter compresses what is written, but for events, whose readers want
// each at once.
type zippingWriter struct {
	http.ResponseWriter
	writer  *gzip.Writer
	decided bool
	began   bool
}

// WriteHeader implements http.ResponseWriter.
func (z *zippingWriter) WriteHeader(status int) {
	h := z.Header()
	if !z.decided && status >= http.StatusOK {
		z.decided = true
		z.began = status != http.StatusNoContent && h.Get("Content-Encoding") == "" &&
			!strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
		if z.began {
			h.Set("Content-Encoding", "gzip")
			h.Del("Content-Length")
			z.writer.Reset(z.ResponseWriter)
		}
	}
	z.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (z *zippingWriter) Write(b []byte) (int, error) {
	if !z.decided {
		z.WriteHeader(http.StatusOK)
	}
	if z.began {
		return z.writer.Write(b)
	}
	return z.ResponseWriter.Write(b)
}

// FlushError sends what was written.
func (z *zippingWriter) FlushError() error {
	var err error
	if z.began {
		err = z.writer.Flush()
	}
	return errors.Join(err, http.NewResponseController(z.ResponseWriter).Flush())
}

// Unwrap lets http.ResponseController reach the writer below.
func (z *zippingWriter) Unwrap() http.ResponseWriter { return z.ResponseWriter }

// unzip returns what a gzip body holds.
func unzip(body io.Reader) (io.Reader, error) {
	z, err := gzip.NewReader(body)
	if err != nil {
		return nil, badRequest("the body is no gzip: %v", err)
	}
	return z, nil
}
