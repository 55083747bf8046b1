package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// ErrCut ends an answer that has begun and can't be completed: its reader sees
// that it is cut off.
var ErrCut = errors.New("the answer was cut off")

// Route is an operation that reads its request and writes its answer by itself.
type Route struct {
	// Permission is the permission that requests need. It is required.
	Permission Permission
	// Operation describes the route: method, path (an action follows an id by a
	// colon, as in /api/v1/batches/{id}:cancel), id, summary, parameters.
	// MaxBodyBytes bounds its body, 1 MiB by default. Its Metadata may have a Patience and Also.
	Operation huma.Operation
	// In and Out are values of the bodies' types, nil for none. InBytes are the
	// media types of other request bodies, OutStream describes other answers by
	// media type. Optional is set if the body may be omitted.
	In, Out   any
	InBytes   []string
	OutStream map[string]any
	Optional  bool
	// Secret begins the secrets that the path has, if it has one that opens something without a
	// token: no log and no problem shows what follows it in a path, of any request, or what stands in
	// its place without it. The route is Public, and Handle passes the error of a wrong secret through
	// WrongSecret. Defaults to none.
	Secret string
	// Stream is set for a long-lived answer, whose number is limited.
	Stream bool
	// Shape converts problems before they are sent. Defaults to no conversion.
	Shape func(*Problem) any
	// Handle answers a request. It returns an error before it has begun the
	// answer, or ErrCut.
	Handle func(http.ResponseWriter, *http.Request) error
}

// route is a registered route.
type route struct {
	permission Permission
	maxBody    int64
	// weight is how many bytes of memory each byte of a JSON body may take when it
	// is checked.
	weight int64
	// buffered is set if the framework reads the body.
	buffered bool
	stream   bool
	// patience is how many times Limits.StoreTime requests wait for the store; below 0 without a bound.
	patience int
	// lists are the query parameters that may be repeated, nil if the route is not described; media
	// are the media types of a body of bytes.
	lists, media []string
	// secret is set if the path has a secret.
	secret  bool
	shape   func(*Problem) any
	handler http.Handler
	// missing is the problem for a request that matches no route.
	missing error
}

// defaultBody is the maximum size of a body in bytes if a route sets none.
const defaultBody = 1 << 20

// Constants of the weight of JSON: a checked body is first held as decoded
// values.
const (
	jsonWeight    = 16
	weightedBytes = 1 << 20
)

// actionMark replaces the colon of requests in the paths of the mux: a wildcard
// of the mux is a whole segment, which an action shares with the id.
const actionMark = "/:"

// Register adds a route whose input and output the framework reads, checks and
// writes. It panics if it has no permission.
func Register[I, O any](s *Stack, p Permission, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	op.Path, op.BodyReadTimeout = splitAction(op.Path), -1 // the stack sets deadlines of its own
	op.Description = describePermission(op.Description, p)
	if p == Public {
		op.Security = []map[string][]string{{}}
	}
	rt := s.add(op.Method+" "+op.Path, &route{permission: p, maxBody: op.MaxBodyBytes, buffered: true, handler: s.mux,
		patience: patienceOf(&op, false)})
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		Yield(ctx)
		out, err := handle(ctx, in)
		if err != nil {
			requestOf(ctx).cause = err
			return nil, ProblemOf(s.options.Errors, lateProblem(ctx, err))
		}
		return out, nil
	})
	described := operationAt(s.api.OpenAPI(), op.Method, op.Path)
	rt.lists, rt.media = listsOf(described), mediaOf(described)
	described.Responses["default"] = s.problemAnswer(Problem{})
	describeAlso(described)
	if described.RequestBody != nil && described.RequestBody.Content["application/json"] != nil {
		rt.weight = jsonWeight
	}
}

// Handle adds a route. It panics if it has no permission.
func (s *Stack) Handle(rt Route) {
	op := rt.Operation
	op.MaxBodyBytes = cmp.Or(op.MaxBodyBytes, defaultBody)
	s.api.OpenAPI().AddOperation(s.operationOf(&rt))
	pattern := op.Method + " " + splitAction(op.Path)
	found := s.add(pattern, &route{
		permission: rt.Permission, maxBody: op.MaxBodyBytes, stream: rt.Stream, shape: rt.Shape, handler: s.mux,
		secret: rt.Secret != "", lists: listsOf(&op), patience: patienceOf(&op, rt.Stream),
	})
	if rt.Secret != "" {
		before, _, _ := strings.Cut(op.Path, "{")
		if one := (secretPath{before, rt.Secret}); !slices.Contains(s.secrets, one) {
			s.secrets = append(s.secrets, one)
		}
	}
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		switch err := rt.Handle(w, r); {
		case err == nil:
		case errors.Is(err, ErrCut):
			panic(http.ErrAbortHandler)
		default:
			requestOf(r.Context()).cause = err
			s.fail(w, found, lateProblem(r.Context(), err))
		}
	})
}

// raw adds a route that is not in the description, and that waits for no store.
func (s *Stack) raw(pattern string, p Permission, h http.Handler) {
	s.add(pattern, &route{permission: p, maxBody: defaultBody, handler: s.mux, patience: Endless})
	s.mux.Handle(pattern, h)
}

// add adds a route to the index of patterns.
func (s *Stack) add(pattern string, rt *route) *route {
	if rt.permission < Public || rt.permission > Admin {
		panic(fmt.Sprintf("stack: %s declares no permission", pattern))
	}
	s.routes[pattern] = rt
	return rt
}

// RouteInfo describes a registered route.
type RouteInfo struct {
	Method, Path string
	Permission   Permission
	// StoreTime is how long its requests wait for the store, 0 for one with bounds of its own.
	StoreTime time.Duration
}

// Routes returns all routes, with the paths of requests, in a fixed order.
func (s *Stack) Routes() []RouteInfo {
	s.Handler()
	all := make([]RouteInfo, 0, len(s.routes))
	for _, pattern := range slices.Sorted(maps.Keys(s.routes)) {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.TrimSuffix(path, "{$}")
		rt := s.routes[pattern]
		all = append(all, RouteInfo{
			Method: method, Path: strings.Replace(path, actionMark, ":", 1), Permission: rt.permission,
			StoreTime: max(0, time.Duration(rt.patience)*s.options.Limits.StoreTime),
		})
	}
	return all
}

// checkLength returns a problem for a body whose declared length is too large.
func (rt *route) checkLength(length int64) error {
	if rt.maxBody > 0 && length > rt.maxBody {
		return TooLarge(rt.maxBody)
	}
	return nil
}

// weigh returns how many bytes of memory a JSON body of a length, -1 if
// unknown, may take when it is checked.
func (rt *route) weigh(length int64) int64 {
	if length < 0 {
		length = weightedBytes
	}
	return rt.weight * min(length, weightedBytes)
}

// splitAction turns /api/v1/THINGS/ID:ACTION into /api/v1/THINGS/ID/:ACTION.
func splitAction(path string) string {
	rest, below := strings.CutPrefix(path, "/api/v1/")
	things, one, found := strings.Cut(rest, "/")
	id, action, acts := strings.Cut(one, ":")
	if !below || !found || !acts || things == "" || id == "" || strings.Contains(id, "/") {
		return path
	}
	return "/api/v1/" + things + "/" + id + actionMark + action
}

// find returns the route of a request, or one that answers what is possible
// instead. It rewrites the path of an action to that of the mux.
func (s *Stack) find(r *http.Request) *route {
	q := requestOf(r.Context())
	q.path = s.shownPath(r.URL.Path)
	if path := splitAction(r.URL.Path); path != r.URL.Path {
		u := *r.URL
		u.Path, u.RawPath = path, ""
		r.URL = &u
	}
	if _, pattern := s.mux.Handler(r); pattern != "" {
		q.route = strings.Replace(pattern, actionMark, ":", 1)
		return s.routes[pattern]
	}
	none := &route{permission: Read}
	var allowed []string
	probe := *r
	for _, probe.Method = range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if _, pattern := s.mux.Handler(&probe); pattern != "" {
			allowed = append(allowed, probe.Method)
			none.shape = s.routes[pattern].shape
		}
	}
	if len(allowed) > 0 {
		p := NewProblem(http.StatusMethodNotAllowed, "method_not_allowed", nil,
			"%.20s is not possible here: use %s", r.Method, strings.Join(allowed, " or "))
		p.header = map[string]string{"Allow": strings.Join(allowed, ", ")}
		none.missing = p
		return none
	}
	none.missing = NewProblem(http.StatusNotFound, "no_such_path", nil,
		"there is nothing at %.200q%s: /openapi.json describes the API", q.path, s.actionsBeside(r.URL.Path))
	return none
}

// actionsBeside names the actions of a path, for a request with an unknown
// action.
func (s *Stack) actionsBeside(path string) string {
	before, _, found := strings.Cut(path, actionMark)
	if !found {
		return ""
	}
	var actions []string
	for _, rt := range s.Routes() {
		things, action, acts := strings.Cut(rt.Path, "/{id}:")
		if acts && strings.HasPrefix(before, things+"/") {
			actions = append(actions, ":"+action)
		}
	}
	if len(actions) == 0 {
		return ""
	}
	return ", use " + strings.Join(actions, " or ")
}
