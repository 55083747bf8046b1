// Package stack is the common base of this module's HTTP APIs: one mux, one
// description, one set of problems, and the limits that protect a server.
// Packages register their routes with it, each with the permission that a
// request needs. A Stack bounds the bytes that all requests hold together,
// those of one client, the pace of bodies and answers, and streams; Serve
// bounds connections too.
package stack

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
)

// exactCase refuses fields in another case than that of the description: they would be decoded by accident.
var exactCase = sync.OnceFunc(func() { huma.ValidateStrictCasing = true })

// Options of a Stack. The zero value serves every client that can reach it: set
// Tokens, unless a proxy in front of the handler controls access.
type Options struct {
	// Title, Description and Version describe the API. Version defaults to "dev".
	Title, Description, Version string
	// Errors maps errors of handlers to problems, in the order in which they are
	// tried. Those of package context follow.
	Errors []ErrorCode
	// Tokens are the tokens that requests must send, each with its role. Defaults
	// to none: every client may do everything.
	Tokens *Tokens
	// Hosts are the names, without port, that the Host header may have; others are
	// refused, so that a web page can't reach a loopback address through its own
	// domain name. Defaults to any.
	Hosts []string
	// Collectors are served at /metrics. Defaults to none.
	Collectors []prometheus.Collector
	// Stopping ends the waits of requests when it is closed: they answer with the
	// present state. Defaults to never.
	Stopping <-chan struct{}
	// Logger gets a line for each request: at debug level, at info level with AccessLog and for changes that
	// only an administrator may make, and at error level for failures of the server, with their error, at most 20 in
	// ten seconds, with the number of those omitted. The same bound holds for requests without a valid
	// token: for those that are answered, and those that are refused. Defaults to none.
	Logger *slog.Logger
	// Trace is called with each admitted request below /api/, but for those that anyone may
	// send, and its route, such as "GET /api/v1/futures/{id}". A path that may have a secret is shortened, as it is
	// logged. The request is answered and logged in the context that it returns, and ended is called with the status.
	// Defaults to none.
	Trace func(r *http.Request, route string) (traced context.Context, ended func(status int))
	// AccessLog raises these lines to info level. Defaults to false.
	AccessLog bool
	// Limits bound the resources of requests. The zero value suits most servers.
	Limits Limits
}

// Stack serves the registered routes. Register all of them before Handler or
// Serve is called.
type Stack struct {
	options Options
	mux     *http.ServeMux
	api     huma.API
	routes  map[string]*route // by the mux's pattern
	metrics *metrics
	// memory is for requests with a token, unauthenticated for others: they wait
	// for nothing that the others hold.
	memory, unauthenticated *memory
	// open and failed are the budgets of requests without a valid token.
	open, failed *addressBudgets
	zippers      sync.Pool
	logs         logs
	origins      *http.CrossOriginProtection
	site         string // the path of the pages, empty for none
	secrets      []secretPath
	seal         sync.Once
	answered     http.Handler
}

// New returns a stack that serves /metrics, /openapi.json, /docs and / in
// addition to the registered routes.
func New(o Options) *Stack {
	exactCase()
	o.Version = cmp.Or(o.Version, "dev")
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Limits = o.Limits.withDefaults()
	unauthenticated := o.Limits.unauthenticated()
	s := &Stack{
		options: o, mux: http.NewServeMux(), routes: map[string]*route{}, metrics: newMetrics(o.Collectors),
		memory: newMemory(&o.Limits), unauthenticated: newMemory(&unauthenticated),
		open: newAddressBudgets(o.Limits.OpenRequests), failed: newAddressBudgets(o.Limits.FailedRequests),
		origins: http.NewCrossOriginProtection(), zippers: newZippers(),
	}
	s.api = humago.New(s.mux, s.describe())
	s.metrics.watch(s.memory, s.unauthenticated)
	s.raw("GET /metrics", Read, s.metrics.handler())
	s.raw("GET /{$}", Public, http.HandlerFunc(s.index))
	s.registerSessions()
	return s
}

// Collect serves more collectors at /metrics.
func (s *Stack) Collect(more ...prometheus.Collector) { s.metrics.registry.MustRegister(more...) }

// Version returns the version in the description.
func (s *Stack) Version() string { return s.options.Version }

// Handler returns the handler of all routes. No routes can be registered after
// it.
func (s *Stack) Handler() http.Handler {
	s.seal.Do(func() {
		s.registerDocuments()
		s.answered = http.HandlerFunc(s.serve)
	})
	return s.answered
}

// requestID is the header that names a request in logs.
const requestID = "X-Request-Id"

// serve answers one request, counts and logs it.
func (s *Stack) serve(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	q := &request{
		stack: s, bearer: Token{Role: Public}, id: r.Header.Get(requestID), route: "none", connection: connectionOf(r),
	}
	if !isPlain(q.id, maxRequestID) {
		q.id = uuid.NewString()
	}
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, q))
	out := newResponse(w, r, q)
	s.metrics.running.Inc()
	defer func() {
		failed := recover()
		if failed != nil && failed != http.ErrAbortHandler {
			q.cause, q.panicked = fmt.Errorf("panic: %v", failed), string(debug.Stack())
		}
		q.end()
		out.end(failed)
		if q.traced != nil {
			q.traced(out.status)
		}
		s.metrics.running.Dec()
		s.metrics.count(q.route, out.status, time.Since(start))
		s.log(r, q, out, time.Since(start))
		if failed != nil {
			panic(failed)
		}
	}()
	h := out.Header()
	h.Set(requestID, q.id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	found := s.find(r)
	err := s.admit(r, q, found)
	if !q.authenticated && q.isLast(err) {
		h.Set("Connection", "close")
	}
	if err != nil {
		q.cause = err
		s.fail(out, found, err)
		return
	}
	q.administers = found.permission == Admin && r.Method != http.MethodGet && r.Method != http.MethodHead
	if s.options.Trace != nil && found.permission != Public && strings.Contains(q.route, " /api/") {
		var ctx context.Context
		ctx, q.traced = s.options.Trace(q.withoutSecret(r), q.route)
		r = r.WithContext(ctx)
	}
	s.answer(out, r, q, found)
}

// answer lets a route answer an admitted request.
func (s *Stack) answer(out *response, r *http.Request, q *request, found *route) {
	if out.body == nil && !q.holdConnection() {
		panic(http.ErrAbortHandler) // it was closed in favour of another
	}
	err := found.checkLength(r.ContentLength)
	if err == nil {
		err = found.checkClear(r)
	}
	if err == nil && found.stream {
		err = q.stream()
	}
	if err == nil && found.weight > 0 && r.ContentLength != 0 {
		err = q.take(r.Context(), found.weigh(r.ContentLength))
	}
	if err != nil {
		q.cause = err
		s.fail(out, found, err)
		return
	}
	if out.body != nil && found.buffered {
		out.body.held = 2 // a growing buffer is copied
	}
	q.changes = found.permission != Read && r.Method != http.MethodGet && r.Method != http.MethodHead
	r, answered := q.bind(r, found.patience)
	defer answered()
	zipped, end := s.compress(out, r, q)
	found.handler.ServeHTTP(zipped, r)
	if end(); out.cut {
		panic(http.ErrAbortHandler)
	}
}

// Waiting returns a context that ends with ctx, after d, when the server stops, or within two seconds after the
// token of the request of ctx has expired or was revoked. Meanwhile the request has no bound of the store. The
// returned function must be called.
func (s *Stack) Waiting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	Yield(ctx)
	q, resume := requestOf(ctx), Aside(ctx)
	ctx, cancel := context.WithTimeout(ctx, d)
	go func() {
		defer resume()
		defer cancel()
		tick := time.NewTicker(reloadTime)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if s.mayGoOn(q) {
					continue
				}
			case <-s.options.Stopping:
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, cancel
}

// mayGoOn reports whether the token of a request still has the role that it had.
func (s *Stack) mayGoOn(q *request) bool {
	if q == nil || q.secret == "" {
		return true
	}
	token, known := s.options.Tokens.Find(q.secret)
	return known && token.Role >= q.bearer.Role
}

// Stopping reports whether the server is stopping.
func (s *Stack) Stopping() bool {
	select {
	case <-s.options.Stopping:
		return true
	default:
		return false
	}
}
