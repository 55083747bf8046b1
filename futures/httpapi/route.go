package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// futuresPath is where futures are.
const futuresPath = "/api/v1/futures"

// actionMark stands in the paths of the router where requests have a colon: a
// router's wildcard is a whole segment, and an action shares it with the id.
const actionMark = "/:"

// splitAction turns .../{id}:cancel into .../{id}/:cancel.
func splitAction(path string) string {
	rest, below := strings.CutPrefix(path, futuresPath+"/")
	id, action, found := strings.Cut(rest, ":")
	if !below || !found || id == "" || strings.Contains(id, "/") {
		return path
	}
	return futuresPath + "/" + id + actionMark + action
}

// nameActions describes actions as requests name them.
func nameActions(api *huma.OpenAPI) {
	for _, path := range slices.Collect(maps.Keys(api.Paths)) {
		if strings.Contains(path, "{id}"+actionMark) {
			api.Paths[strings.Replace(path, actionMark, ":", 1)] = api.Paths[path]
			delete(api.Paths, path)
		}
	}
}

// route finds a request's handler and the pattern that it matched. What no
// pattern matches is a problem.
func route(mux *http.ServeMux, r *http.Request) (pattern string, handler http.Handler) {
	if path := splitAction(r.URL.Path); path != r.URL.Path {
		r.URL.Path, r.URL.RawPath = path, ""
	}
	if _, pattern = mux.Handler(r); pattern != "" {
		return pattern, mux
	}
	var allowed []string
	probe := *r
	for _, probe.Method = range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete,
	} {
		if _, pattern := mux.Handler(&probe); pattern != "" {
			allowed = append(allowed, probe.Method)
		}
	}
	return "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(allowed) == 0 {
			WriteProblem(w, NewProblem(http.StatusNotFound, "no_such_path", nil,
				"nothing is at %.200q: /openapi.json describes the API", r.URL.Path))
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		WriteProblem(w, NewProblem(http.StatusMethodNotAllowed, "method_not_allowed", nil,
			"%.20s is not possible here: use %s", r.Method, strings.Join(allowed, " or ")))
	})
}
