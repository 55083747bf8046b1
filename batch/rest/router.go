package rest

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/futura-run/futura/futures/httpapi"
)

// Paths.
const (
	batchesPath   = "/api/v1/batches"
	functionsPath = "/api/v1/functions"
	healthPath    = "/api/v1/health"
)

// route is one operation: how it is found, described, and answered.
type route struct {
	method, path string
	// action is what follows the id and a colon in the path's last part.
	action string
	// role is what the request's token must have.
	role Role
	// legacy is set for the paths of b7s.
	legacy bool
	// status is that of an answer that went well.
	status int
	handle func(http.ResponseWriter, *http.Request) error
	about  description
}

// pattern is how the route is shown.
func (rt *route) pattern() string {
	if rt.action == "" {
		return rt.path
	}
	return rt.path + ":" + rt.action
}

// router finds the route of a request, or hands it to what is inside.
func (s *server) router(routes []route) http.Handler {
	mux := http.NewServeMux()
	actions := map[string]http.HandlerFunc{}
	for i := range routes {
		rt := &routes[i]
		handler := s.serve(rt)
		if rt.action == "" {
			mux.HandleFunc(rt.method+" "+rt.path, handler)
			continue
		}
		actions[rt.action] = handler
	}
	mux.HandleFunc("POST "+batchesPath+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, action, _ := strings.Cut(r.PathValue("id"), ":")
		if handler, ok := actions[action]; ok {
			r.SetPathValue("id", id)
			handler(w, r)
			return
		}
		httpapi.WriteProblem(w, httpapi.NewProblem(http.StatusNotFound, "no_such_path", nil,
			"there is no action %.20q: use :cancel or :retry", action))
	})
	for _, page := range s.pages.routes() {
		mux.HandleFunc("GET "+page.path, page.handle)
	}
	mux.Handle("/", s.others(mux))
	return mux
}

// serve answers the requests of a route.
func (s *server) serve(rt *route) http.HandlerFunc {
	return s.metrics.count(rt.method+" "+rt.pattern(), func(w http.ResponseWriter, r *http.Request) {
		if err := s.admit(r, rt.role); err != nil {
			if problemOf(err).Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="futura"`)
			}
			fail(w, rt.legacy, err)
			return
		}
		zipped, end := s.compress(w, r)
		defer end()
		switch err := rt.handle(zipped, r); {
		case err == nil:
		case errors.Is(err, errCut):
			panic(http.ErrAbortHandler)
		default:
			fail(zipped, rt.legacy, err)
		}
	})
}

// others serves what no route has: the futures API, with roles.
func (s *server) others(mux *http.ServeMux) http.Handler {
	inner := s.inner()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		needs := Read
		switch {
		case r.Method == http.MethodDelete, r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, functionsPath):
			needs = Admin
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			needs = Submit
		}
		if err := s.admit(r, needs); err != nil {
			if problemOf(err).Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="futura"`)
			}
			fail(w, false, err)
			return
		}
		if methods := otherMethods(mux, r); len(methods) > 0 {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			fail(w, strings.HasPrefix(r.URL.Path, functionsPath), httpapi.NewProblem(http.StatusMethodNotAllowed,
				"method_not_allowed", nil, "%.20s is not possible here: use %s", r.Method, strings.Join(methods, " or ")))
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// otherMethods are those that the routes of a request's path have.
func otherMethods(mux *http.ServeMux, r *http.Request) (methods []string) {
	probe := *r
	for _, probe.Method = range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		_, pattern := mux.Handler(&probe)
		if pattern != "/" && pattern != "" && !(probe.Method == http.MethodGet && r.Method == http.MethodHead) {
			methods = append(methods, probe.Method)
		}
	}
	if strings.HasPrefix(r.URL.Path, batchesPath+"/") && !strings.Contains(r.URL.Path, ":") {
		methods = slices.DeleteFunc(methods, func(m string) bool { return m == http.MethodPost })
	}
	return methods
}

// batchID returns the id in a request's path.
func batchID(r *http.Request) (string, error) { return parseID(r.PathValue("id")) }

func parseID(text string) (string, error) {
	if id, err := uuid.Parse(text); err == nil && id.String() == strings.ToLower(text) {
		return id.String(), nil
	}
	return "", httpapi.NewProblem(http.StatusNotFound, "not_found", nil, "there is no batch %.60q: ids are UUIDs", text)
}
