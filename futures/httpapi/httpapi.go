// Package httpapi serves a futures cluster over HTTP: futures, functions,
// workers, health and metrics. A program mounts it beside its own handlers.
//
// Requests and answers are JSON; /openapi.json describes them. Durations are
// milliseconds in fields that end with _ms, times are RFC 3339. Bytes are
// strings: "encoding" says whether a string is the text itself ("text") or
// base64 ("base64").
//
// An error is an RFC 9457 problem, application/problem+json, with a "code" that
// does not change between releases; see Problem.
package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// Limits of requests.
const (
	// MaxWait is the longest time that a request waits for a future to end. A
	// longer wait is shortened to it: the answer has the future's present state,
	// and the caller asks again.
	MaxWait = time.Minute
	// MaxSubmitMany is the maximum number of futures in one request.
	MaxSubmitMany = 1000
	// MaxBody is the maximum size of a request body in bytes, except for modules and
	// values that are put: room for the largest arguments in base64.
	MaxBody = 16 << 20
	// MaxUpload is the maximum size of a value that is put, in bytes.
	MaxUpload = 64 << 30
)

// Problem is an RFC 9457 problem with a code for programs.
type Problem = stack.Problem

// Options of a handler. The zero value serves every client that can reach it:
// set a Token, unless a proxy in front of the handler controls access.
type Options struct {
	// Token is the token that requests must send ("Authorization: Bearer TOKEN"),
	// except for health and the API's description. Defaults to none.
	Token string
	// Stack says how requests are served. Title, Description and Errors are this
	// API's own, and Tokens those of Token if that is set. The cluster's metrics are
	// served beside its Collectors.
	Stack stack.Options
	// CheckModule checks that a module can run before it is stored. Defaults to
	// none: an invalid module fails when it runs.
	CheckModule func(ctx context.Context, cid string, module []byte) error
}

// server is the state that the routes share.
type server struct {
	*stack.Stack
	client      *futures.Client
	counts      *shared[counts]
	members     *shared[[]Worker]
	activity    activityViews
	overview    *shared[*Overview]
	producers   producers
	checkModule func(ctx context.Context, cid string, module []byte) error
}

// Handler returns a handler for a client's cluster. It serves the paths below
// /api/v1, /metrics, /openapi.json and /docs. The client remains the caller's
// and must outlive the handler.
func Handler(client *futures.Client, o Options) http.Handler { return New(client, o).Handler() }

// New returns the stack of Handler, to which more routes can be added.
func New(client *futures.Client, o Options) *stack.Stack {
	so := o.Stack
	so.Title, so.Description, so.Errors = "Futura", "Durable futures: submit work, await results.", Errors()
	if o.Token != "" {
		so.Tokens = stack.NewTokens("token", o.Token)
	}
	s := stack.New(so)
	Register(s, client, o.CheckModule)
	registerHealth(s, client)
	return s
}

// Register adds the routes of a client's cluster and its metrics to a stack,
// without the health route, which may cover more than the cluster. checkModule
// is as in Options.
func Register(s *stack.Stack, client *futures.Client,
	checkModule func(ctx context.Context, cid string, module []byte) error,
) {
	counts, reader := newCounts(client), NewOverviewReader(client)
	server := &server{
		Stack: s, client: client, counts: counts, members: newMembers(client), checkModule: checkModule,
		overview: &shared[*Overview]{from: reader.Read},
	}
	server.registerFutures()
	server.registerPut()
	server.registerActions()
	server.registerPromises()
	server.registerArguments()
	server.registerBulk()
	server.registerUnique()
	server.registerLimits()
	server.registerUsage()
	server.registerActivity()
	server.registerOverview()
	server.registerCopies()
	server.registerSteps()
	server.registerForks()
	server.registerFunctions()
	server.registerSchedules()
	server.registerLanes()
	server.registerActors()
	server.registerTasks()
	server.registerPauses()
	server.registerJobs()
	server.registerCluster()
	s.Collect(newClusterCollector(client, counts, reader.oldest))
	s.Collect(newJobCollector(client))
}

// Errors maps errors of a cluster and its store to problems. An unknown result
// comes first, since the reason for it is joined to it.
func Errors() []stack.ErrorCode {
	return []stack.ErrorCode{
		{Err: kv.ErrUnknownResult, Status: http.StatusServiceUnavailable, Code: "unknown_result"},
		{Err: layout.ErrBadID, Status: http.StatusBadRequest, Code: "bad_id"},
		{Err: layout.ErrBadName, Status: http.StatusBadRequest, Code: "bad_name"},
		{Err: layout.ErrBadSpec, Status: http.StatusBadRequest, Code: "bad_future"},
		{Err: layout.ErrBadConfig, Status: http.StatusBadRequest, Code: "bad_settings"},
		{Err: layout.ErrBadCursor, Status: http.StatusBadRequest, Code: "bad_cursor"},
		{Err: layout.ErrUnfit, Status: http.StatusConflict, Code: "unfit_worker"},
		{Err: futures.ErrHolderGone, Status: http.StatusServiceUnavailable, Code: "holder_gone"},
		{Err: futures.ErrNoHolder, Status: http.StatusInsufficientStorage, Code: "no_holder"},
		{Err: futures.ErrUnknownWorker, Status: http.StatusConflict, Code: "unfit_worker"},
		{Err: fdbmodel.ErrTooLarge, Status: http.StatusRequestEntityTooLarge, Code: "too_large"},
		{Err: fdbmodel.ErrNotFound, Status: http.StatusNotFound, Code: "not_found"},
		{Err: joblog.ErrRemoved, Status: http.StatusGone, Code: "jobs_removed"},
		{Err: fdbmodel.ErrIDInUse, Status: http.StatusConflict, Code: "id_in_use"},
		{Err: fdbmodel.ErrInUse, Status: http.StatusConflict, Code: "in_use"},
		{Err: fdbmodel.ErrTooManyKinds, Status: http.StatusConflict, Code: "too_many_kinds"},
		{Err: fdbmodel.ErrExists, Status: http.StatusConflict, Code: "exists"},
		{Err: fdbmodel.ErrNotUnique, Status: http.StatusConflict, Code: "not_unique", Describe: describeNotUnique},
		{Err: quota.ErrLimit, Status: http.StatusTooManyRequests, Code: "limit", Describe: describeLimit},
		{Err: futures.ErrLaneFull, Status: http.StatusTooManyRequests, Code: "lane_full"},
		{Err: futures.ErrBadPromiseToken, Status: http.StatusNotFound, Code: "bad_promise_token"},
		{Err: futures.ErrPromiseConflict, Status: http.StatusConflict, Code: "promise_conflict"},
		{Err: futures.ErrPromiseExpired, Status: http.StatusGone, Code: "promise_expired"},
		{Err: futures.ErrPromiseCancelled, Status: http.StatusGone, Code: "promise_cancelled"},
		{Err: futures.ErrNoPromise, Status: http.StatusConflict, Code: "no_promise"},
		{Err: futures.ErrUnforkable, Status: http.StatusConflict, Code: "unforkable"},
		{Err: futures.ErrNoStep, Status: http.StatusConflict, Code: "no_step"},
		{Err: futures.ErrNothingFailed, Status: http.StatusConflict, Code: "nothing_failed"},
		{Err: futures.ErrAmbiguousStep, Status: http.StatusConflict, Code: "ambiguous_step"},
		{Err: futures.ErrForked, Status: http.StatusConflict, Code: "forked_otherwise"},
		{Err: fdbmodel.ErrTransition, Status: http.StatusConflict, Code: "wrong_state"},
		{Err: layout.ErrNewerRecord, Status: http.StatusInternalServerError, Code: "newer_record"},
		{Err: layout.ErrBadRecord, Status: http.StatusInternalServerError, Code: "bad_record"},
		{Err: futures.ErrClosed, Status: http.StatusServiceUnavailable, Code: "stopping"},
		{Err: kv.ErrClosed, Status: http.StatusServiceUnavailable, Code: "stopping"},
		{Err: kv.ErrStoreFailed, Status: http.StatusServiceUnavailable, Code: "store_failed"},
		{Err: kv.ErrReadOnly, Status: http.StatusServiceUnavailable, Code: "store_read_only"},
		{Err: results.ErrLost, Status: http.StatusServiceUnavailable, Code: "result_lost"},
		{Err: fdbmodel.ErrUnreachable, Status: http.StatusServiceUnavailable, Code: "worker_unreachable"},
		{Err: kv.ErrUnavailable, Status: http.StatusServiceUnavailable, Code: "store_unavailable"},
	}
}

// futuresPath is the path of futures.
const futuresPath = "/api/v1/futures"

// operation describes a route.
func operation(method, path, id, summary, description string) huma.Operation {
	tag, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/"), "/")
	tag, _, _ = strings.Cut(tag, ":")
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, Description: description, Tags: []string{tag},
		MaxBodyBytes: MaxBody, RejectUnknownQueryParameters: true,
	}
}

// makes is an operation that answers 201 with what it has made, and 200 if that was there.
func makes(op huma.Operation) huma.Operation {
	op.DefaultStatus, op.Metadata = http.StatusCreated, also(http.StatusOK)
	return op
}

// also is the metadata of an operation that answers with another status beside its own.
func also(status int) map[string]any { return map[string]any{stack.Also: []int{status}} }

// body is an answer that is one value. The type of a value that has no view of its own is called
// NAMEOutputBody: that is its name in the description.
type body[T any] struct{ Body T }

// answerWith answers with a value, unless there is an error.
func answerWith[T any](value T, err error) (*body[T], error) { return &body[T]{value}, err }

// viewed returns what answers with the view of a thing that was found, unless there is an error.
func viewed[T, V any](view func(*T) V) func(T, error) (*body[V], error) {
	return func(found T, err error) (*body[V], error) {
		if err != nil {
			return nil, err
		}
		return &body[V]{view(&found)}, nil
	}
}

// OneFuture is the input of a route whose path has the id of a future.
type OneFuture struct {
	ID string `path:"id"`
}

func (in *OneFuture) id() string { return in.ID }

// ofFuture reads the id in the path of a route before it is handled.
func ofFuture[I, O any, P interface {
	*I
	id() string
}](handle func(context.Context, futures.ID, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		id, err := layout.ParseID(P(in).id())
		if err != nil {
			return nil, err
		}
		return handle(ctx, id, in)
	}
}

// given is what a body that may be left out says, the zero value without one.
func given[T any](body *T) (value T) {
	if body != nil {
		value = *body
	}
	return value
}

// statusOf is the status of an answer with a future that was submitted.
func statusOf(existed bool) int {
	if existed {
		return http.StatusOK
	}
	return http.StatusCreated
}

// viewsOf are the views of a list.
func viewsOf[T, V any](list []T, view func(*T) V) []V {
	views := make([]V, len(list))
	for i := range list {
		views[i] = view(&list[i])
	}
	return views
}

// ParseWait parses a wait parameter.
func ParseWait(text string) (time.Duration, error) { return parseWait("wait", text) }

func parseWait(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, stack.BadRequest("%s=%.40q: use a duration such as 30s, at most 1m", name, text)
	}
	return min(d, MaxWait), nil
}
