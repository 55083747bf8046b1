package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/source"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// Limits of requests.
const (
	// MaxBody is the most bytes of a request's body, before and after it is
	// decompressed.
	MaxBody = 64 << 20
	// MaxTemplate is the most bytes that are read of a template, escapes included. What is kept of
	// it has batch.MaxTemplate.
	MaxTemplate = 1 << 20
	// MaxPage is the most items or batches of one page.
	MaxPage = 500
	// MaxWait is the longest that a request waits for an end.
	MaxWait = httpapi.MaxWait
)

// Head makes batches and runs them.
type Head interface {
	// Submit makes a batch durably and returns it. With a Key, the same request
	// again returns the same batch, which existed then; batch.ErrExists is
	// returned for another request with that key, batch.ErrBusy while the batch is
	// still being created, and batch.ErrBadBatch for an invalid request.
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

// Options of a handler. The zero value serves every client that can reach it:
// set Stack.Tokens, unless a proxy in front of the handler controls access.
type Options struct {
	// Stack says how requests are served and who may send them. Title, Description
	// and Errors are this API's own.
	Stack stack.Options
	// Client is the cluster of single executions and installed functions, and of
	// the futures API. Defaults to none: those paths answer 501.
	Client *futures.Client
	// CheckModule reports whether a module can run, before it is stored. Defaults to
	// none: an invalid module fails when it runs.
	CheckModule func(ctx context.Context, cid string, module []byte) error
	// PrivateSources allows to install functions from private, loopback and
	// link-local addresses. Defaults to false: a client that may install could
	// otherwise make this server read addresses that only the server can reach.
	PrivateSources bool
	// BatchAnswer is how requests for batches are answered that don't say it.
	// Defaults to AnswerID.
	BatchAnswer Answer
	// RollCallWait is how long a single execution waits for as many workers as it asks
	// for. Defaults to the constant of this name.
	RollCallWait time.Duration
	// Choose picks the n workers of a single execution out of those that a roll call found, by an id of the
	// execution, and notes that they have it until release is called: Choose of a head.Head. Defaults to the least
	// busy ones by their last heartbeats.
	Choose func(found []head.Candidate, n int, id string) (chosen []head.Candidate, release func())
	// OnAttributes is told of single executions that ask for attributes: the function's full
	// name, and the labels that they are. It doesn't wait. Defaults to none.
	OnAttributes func(function string, labels map[string]string)
	// Peers returns the libp2p peers of this process, in any order, in a slice of the
	// caller's own. Defaults to none: the head takes no peers.
	Peers func() []Peer
}

// server is the state that the routes share.
type server struct {
	*stack.Stack
	head    Head
	options Options
	sources *source.Client
}

// Handler returns a handler for a head's batches. It serves the paths below
// /api/v1, /metrics, /openapi.json and /docs. The head and the client remain the
// caller's and must outlive the handler.
func Handler(h Head, o Options) http.Handler { return New(h, o).Handler() }

// New returns the stack with all routes of a head and of its client.
func New(h Head, o Options) *stack.Stack {
	o.Stack.Title, o.Stack.Errors = "Futura", errorCodes()
	o.Stack.Description = "Batches of one function on many lists of arguments, as the head of b7s runs them, " +
		"and durable futures."
	if o.Choose == nil {
		o.Choose = func(found []head.Candidate, n int, _ string) ([]head.Candidate, func()) { return found[:n], func() {} }
	}
	sources := source.NewClient(source.Options{Private: o.PrivateSources, Meter: meter{}})
	s := &server{head: h, options: o, sources: sources, Stack: stack.New(o.Stack)}
	s.registerLegacy()
	s.registerBatches()
	s.registerPeers()
	if o.Client != nil {
		httpapi.Register(s.Stack, o.Client, o.CheckModule)
	}
	return s.Stack
}
