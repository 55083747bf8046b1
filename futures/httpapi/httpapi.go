// Package httpapi serves a futures cluster over HTTP: futures, functions,
// workers, health and metrics. A program mounts it beside its own handlers.
//
// Requests and answers are JSON; /openapi.json describes them. Durations are
// milliseconds in fields that end with _ms, times are RFC 3339. Bytes are
// strings: "encoding" says whether they are the text itself ("text") or its
// base64 form ("base64").
//
// An error is an RFC 9457 problem, application/problem+json, with a "code" that
// does not change between releases; see Problem.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// Limits of requests.
const (
	// MaxWait is the longest that a request waits for a future to end. A longer
	// wait is cut to it: the answer says how the future is, and the caller asks
	// again.
	MaxWait = time.Minute
	// MaxSubmitMany is the most futures of one request.
	MaxSubmitMany = 1000
	// MaxBody is the most bytes of a request, but for modules: room for the
	// largest arguments in base64.
	MaxBody = 16 << 20
	// maxUploads is how many modules are received at a time, since each is held
	// in memory.
	maxUploads = 2
	// bodyTime is how long a request's body may take.
	bodyTime = time.Minute
)

// Options of a handler. The zero value serves everybody who can reach it: give
// a Token, unless what stands in front of the handler decides about access.
type Options struct {
	// Token is what requests must bear ("Authorization: Bearer TOKEN"), but for
	// health. Defaults to none.
	Token string
	// Hosts are the names, without port, that the Host header may have; others
	// are refused, so that a web page can't reach a loopback address under a
	// name of its own. Defaults to any.
	Hosts []string
	// CheckModule tells whether a module can run before it is stored. Defaults
	// to none: what is wrong shows when it runs.
	CheckModule func(ctx context.Context, cid string, module []byte) error
	// Collectors are served at /metrics beside the cluster's own. Defaults to
	// none.
	Collectors []prometheus.Collector
	// Stopping ends the waiting of requests when it is closed: they answer with
	// what is known. Defaults to never.
	Stopping <-chan struct{}
	// Version is shown by health and the API's description. Defaults to "dev".
	Version string
	// Logger gets a line for each request (at debug level, failures of the
	// server at error level). Defaults to none.
	Logger *slog.Logger
}

// server is what the routes share.
type server struct {
	client  *futures.Client
	options Options
	uploads chan struct{}
}

// Handler returns a handler for a client's cluster. It serves the paths below
// /api/v1, /metrics and /openapi.json. The client stays the caller's and must
// outlive the handler.
func Handler(client *futures.Client, o Options) http.Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	s := &server{client: client, options: o, uploads: make(chan struct{}, maxUploads)}
	mux := http.NewServeMux()
	s.register(mux)
	m := newMetrics(s)
	mux.Handle("GET /metrics", m.handler())
	return Guard(m.count(mux), GuardOptions{Hosts: o.Hosts, Admit: admitToken(o.Token), Logger: o.Logger})
}

// Describe returns the description of what Handler serves with these options,
// for a handler that serves more beside it. It is the caller's to change.
func Describe(o Options) *huma.OpenAPI {
	s := &server{options: o}
	return s.register(http.NewServeMux())
}

// register adds the routes to mux and returns their description.
func (s *server) register(mux *http.ServeMux) *huma.OpenAPI {
	api := humago.New(mux, s.config())
	s.registerFutures(api)
	s.registerActions(api)
	s.registerFunctions(api)
	s.registerCluster(api)
	nameActions(api.OpenAPI())
	return api.OpenAPI()
}

// config describes the API. Nothing in what it serves loads from elsewhere.
func (s *server) config() huma.Config {
	c := huma.DefaultConfig("Futura", s.options.Version)
	c.CreateHooks = nil // they would add $schema to every answer
	c.DocsPath = ""
	c.SchemasPath = ""
	c.Info.Description = "Durable futures: submit work, await results."
	c.AllowAdditionalPropertiesByDefault = true
	c.Transformers = []huma.Transformer{asProblem}
	if s.options.Token != "" {
		c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
			"token": {Type: "http", Scheme: "bearer"},
		}
		c.Security = []map[string][]string{{"token": {}}}
	}
	return c
}

// wait runs fn with a context that ends after d, at MaxWait, or when the server
// stops.
func (s *server) wait(ctx context.Context, d time.Duration, fn func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, min(d, MaxWait))
	defer cancel()
	if s.options.Stopping != nil {
		done := make(chan struct{})
		defer close(done)
		go func() {
			select {
			case <-s.options.Stopping:
				cancel()
			case <-done:
			}
		}()
	}
	fn(ctx)
}

// parseWait reads a wait parameter.
func parseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, badRequest("wait=%.40q: use a duration such as 30s; at most %v are waited", text, MaxWait)
	}
	return d, nil
}

// parseID reads an id in a path.
func parseID(text string) (futures.ID, error) {
	id, err := layout.ParseID(text)
	return id, problemOf(err)
}
