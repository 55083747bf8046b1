package rest

import (
	"compress/gzip"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

// Limits of requests.
const (
	// MaxBody is the most bytes of a request's body, before and after it is
	// decompressed.
	MaxBody = 64 << 20
	// MaxTemplate is the most bytes of a batch's template as JSON.
	MaxTemplate = 1 << 20
	// MaxPage is the most items or batches of one page.
	MaxPage = 500
	// MaxWait is the longest that a request waits for an end.
	MaxWait = time.Minute
	// largeBody is the size from which bodies are read a few at a time.
	largeBody = 1 << 20
	// maxLarge is how many large bodies are read at a time.
	maxLarge = 2
	// maxInstalls is how many functions are installed at a time.
	maxInstalls = 2
	// bodyTime is how long a body may take to arrive, and a page to leave.
	bodyTime = time.Minute
)

// Head makes batches and runs them.
type Head interface {
	// Submit makes a batch durably and returns it. With a Key, the same request
	// again returns the same batch, which existed then; batch.ErrExists is
	// returned for another request with that key, and batch.ErrBadBatch for one
	// that can't be.
	Submit(ctx context.Context, r batch.Request) (b batch.Batch, existed bool, err error)
	// Cancel ends a batch. See batch.Store.
	Cancel(ctx context.Context, id, reason string) error
	// Retry lets items that have failed for good run again, and returns how many.
	Retry(ctx context.Context, id string) (int, error)
	// Delete removes a batch that is over.
	Delete(ctx context.Context, id string) error
	// Store is where the batches are.
	Store() batch.Store
}

// Options of a handler. The zero value serves everybody who can reach it: give
// Tokens, unless what stands in front of the handler decides about access.
type Options struct {
	// Tokens are what requests must bear, with what each may do. Defaults to
	// none: everybody may do everything.
	Tokens *Tokens
	// Hosts are the names, without port, that the Host header may have. Defaults
	// to any.
	Hosts []string
	// Client is the cluster of single executions and installed functions, and of
	// the futures API. Defaults to none: those paths answer 501.
	Client *futures.Client
	// CheckModule tells whether a module can run before it is stored. Defaults
	// to none: what is wrong shows when it runs.
	CheckModule func(ctx context.Context, cid string, module []byte) error
	// PrivateSources allows to install functions from private, loopback and
	// link-local addresses. Defaults to false: who may install could otherwise
	// make this server read what only it can reach.
	PrivateSources bool
	// Collectors are served at /metrics. Defaults to none.
	Collectors []prometheus.Collector
	// Stopping ends the waiting of requests, events and streams when it is
	// closed. Defaults to never.
	Stopping <-chan struct{}
	// Version is shown by health and the API's description. Defaults to "dev".
	Version string
	// Logger gets a line for each request (at debug level, failures of the
	// server at error level). Defaults to none.
	Logger *slog.Logger
	// AccessLog has the lines at info level. Defaults to false.
	AccessLog bool
}

// server is what the routes share.
type server struct {
	head    Head
	options Options
	// large and installs bound what is held in memory at a time.
	large    chan struct{}
	installs chan struct{}
	zippers  sync.Pool
	metrics  *metrics
	sources  *http.Client
	pages    documents
}

// Handler returns a handler for a head's batches. It serves the paths below
// /api/v1, /metrics, /openapi.json and /docs. Head and client stay the caller's
// and must outlive the handler.
func Handler(head Head, o Options) http.Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	s := &server{
		head: head, options: o, large: make(chan struct{}, maxLarge),
		installs: make(chan struct{}, maxInstalls), metrics: newMetrics(),
		sources: sourceClient(o.PrivateSources),
		zippers: sync.Pool{New: func() any { return gzip.NewWriter(nil) }},
	}
	routes := s.routes()
	s.pages = newDocuments(o, routes)
	return httpapi.Guard(s.router(routes), httpapi.GuardOptions{
		Hosts: o.Hosts, Logger: o.Logger, AccessLog: o.AccessLog,
	})
}

// inner serves what is not about batches: the futures API, or only metrics.
func (s *server) inner() http.Handler {
	collectors := append([]prometheus.Collector{s.metrics}, s.options.Collectors...)
	if s.options.Client != nil {
		return httpapi.Handler(s.options.Client, httpapi.Options{
			CheckModule: s.options.CheckModule, Collectors: collectors, Stopping: s.options.Stopping,
			Version: s.options.Version,
		})
	}
	return metricsOnly(collectors)
}

// waiting returns a context that ends with ctx, when the server stops, or after
// d.
func (s *server) waiting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	if s.options.Stopping == nil {
		return ctx, cancel
	}
	stop := make(chan struct{})
	go func() {
		select {
		case <-s.options.Stopping:
			cancel()
		case <-stop:
		}
	}()
	return ctx, sync.OnceFunc(func() {
		close(stop)
		cancel()
	})
}
