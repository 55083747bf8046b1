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

// GuardOptions say who may reach a handler.
type GuardOptions struct {
	// Hosts are the names, without port, that the Host header may have. Defaults
	// to any.
	Hosts []string
	// Admit returns the problem of a request that may not be sent, nil for
	// others. Defaults to all that may.
	Admit func(*http.Request) *Problem
	// Logger gets a line for each request, at debug level, failures of the
	// server at error level. Defaults to none.
	Logger *slog.Logger
	// AccessLog has the lines at info level. Defaults to false.
	AccessLog bool
}

// Guard returns a handler that lets to next what may reach it: by its Host
// header, its origin, and o.Admit. It gives each request an id (the client's
// X-Request-Id if it is plain), and logs how it ended.
func Guard(next http.Handler, o GuardOptions) http.Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Admit != nil {
		next = o.admit(next)
	}
	// A web page of another origin can send requests, though not read answers.
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteProblem(w, NewProblem(http.StatusForbidden, "foreign_origin", nil, "a page of another origin may not send this"))
	}))
	next = o.requireHost(origins.Handler(next))
	return o.log(next)
}

func (o *GuardOptions) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := o.Admit(r)
		if p == nil {
			next.ServeHTTP(w, r)
			return
		}
		if p.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="futura"`)
		}
		WriteProblem(w, p)
	})
}

func (o *GuardOptions) requireHost(next http.Handler) http.Handler {
	if len(o.Hosts) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(o.Hosts, hostName(r.Host)) {
			WriteProblem(w, NewProblem(http.StatusMisdirectedRequest, "bad_host", nil,
				"the Host header %.100q is none of this server's names: %s", r.Host, strings.Join(o.Hosts, ", ")))
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

// BearerToken returns the token that a request bears, empty if it bears none.
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// admitToken admits requests that bear the token.
func admitToken(token string) func(*http.Request) *Problem {
	if token == "" {
		return nil
	}
	// Sums of equal length make the comparison's time tell nothing.
	want := sha256.Sum256([]byte(token))
	return func(r *http.Request) *Problem {
		got := sha256.Sum256([]byte(BearerToken(r)))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 || r.URL.Path == healthPath {
			return nil
		}
		return NewProblem(http.StatusUnauthorized, "unauthorized", nil,
			`this needs the server's token: send "Authorization: Bearer TOKEN"`)
	}
}

// requestID is the header that names a request in logs.
const requestID = "X-Request-Id"

// log gives each request an id and writes a line when it has ended.
func (o *GuardOptions) log(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestID)
		if !plainID(id) {
			id = uuid.NewString()
		}
		h := w.Header()
		h.Set(requestID, id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		recorder := &Recorder{ResponseWriter: w}
		start := time.Now()
		next.ServeHTTP(recorder, r)
		level := slog.LevelDebug
		if o.AccessLog {
			level = slog.LevelInfo
		}
		if recorder.status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		o.Logger.LogAttrs(context.WithoutCancel(r.Context()), level, "request",
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

// Recorder keeps what was answered.
type Recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader implements http.ResponseWriter.
func (r *Recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *Recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Status returns the status that was sent, 0 before.
func (r *Recorder) Status() int { return r.status }

// Unwrap lets http.ResponseController reach the writer below.
func (r *Recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
