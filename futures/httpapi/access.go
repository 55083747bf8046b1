package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// healthPath is open to everybody, so that a load balancer can ask.
const healthPath = "/api/v1/health"

// guard decides who may ask, and writes the log.
func (s *server) guard(next http.Handler) http.Handler {
	next = s.requireToken(next)
	// A web page of another origin can send requests, though not read answers.
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problem(http.StatusForbidden, "foreign_origin", nil, "a page of another origin may not send this"))
	}))
	next = s.requireHost(origins.Handler(next))
	return s.log(next)
}

func (s *server) requireHost(next http.Handler) http.Handler {
	if len(s.options.Hosts) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(s.options.Hosts, hostName(r.Host)) {
			writeProblem(w, problem(http.StatusMisdirectedRequest, "bad_host", nil,
				"the Host header %.100q is none of this server's names: %s", r.Host, strings.Join(s.options.Hosts, ", ")))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostName is a Host header without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

func (s *server) requireToken(next http.Handler) http.Handler {
	if s.options.Token == "" {
		return next
	}
	// Sums of equal length make the comparison's time tell nothing.
	want := sha256.Sum256([]byte(s.options.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(token))
		borne := strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
		if !borne && r.URL.Path != healthPath {
			w.Header().Set("WWW-Authenticate", `Bearer realm="futura"`)
			writeProblem(w, problem(http.StatusUnauthorized, "unauthorized", nil,
				`this needs the server's token: send "Authorization: Bearer TOKEN"`))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// requestID is the header that names a request in logs.
const requestID = "X-Request-Id"

// log gives each request an id and writes a line when it has ended.
func (s *server) log(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestID)
		if !plainID(id) {
			id = uuid.NewString()
		}
		h := w.Header()
		h.Set(requestID, id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		recorder := &recorder{ResponseWriter: w}
		start := time.Now()
		next.ServeHTTP(recorder, r)
		level := slog.LevelDebug
		if recorder.status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		s.options.Logger.LogAttrs(context.WithoutCancel(r.Context()), level, "request",
			slog.String("id", id), slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.Int("status", recorder.status), slog.Int64("bytes", recorder.bytes),
			slog.Duration("took", time.Since(start)), slog.String("from", r.RemoteAddr))
	})
}

// plainID tells whether a client's request id can stand in a log.
func plainID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id,
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:") == ""
}

// recorder keeps what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the writer below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
