package rest

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/futures/httpapi"
)

// description is how a route is described.
type description struct {
	id, summary, text string
	parameters        []parameter
	// in and out are values of the bodies' types, nil for none.
	in, out any
	// inBytes are the media types of other bodies.
	inBytes []string
	// optional is set if the body may be left out.
	optional bool
	// outStream are other answers, by their media types.
	outStream map[string]any
}

// parameter is one of the query or the header.
type parameter struct{ in, name, kind, about string }

// tokenScheme is the name of bearer tokens.
const tokenScheme = "token"

// describe returns the description of everything that is served.
func describe(o Options, routes []route) *huma.OpenAPI {
	api := httpapi.Describe(httpapi.Options{Version: o.Version})
	api.Info.Description = "Batches of one function on many lists of arguments, as the head of b7s has them, " +
		"and durable futures."
	if o.Client == nil {
		api.Paths = nil
	}
	// This package's own answer holds that of the futures API.
	delete(api.Paths, healthPath)
	if o.Tokens != nil {
		if api.Components.SecuritySchemes == nil {
			api.Components.SecuritySchemes = map[string]*huma.SecurityScheme{}
		}
		api.Components.SecuritySchemes[tokenScheme] = &huma.SecurityScheme{Type: "http", Scheme: "bearer"}
		api.Security = []map[string][]string{{tokenScheme: {}}}
	}
	for i := range routes {
		api.AddOperation(operationOf(api.Components.Schemas, &routes[i]))
	}
	return api
}

func operationOf(registry huma.Registry, rt *route) *huma.Operation {
	about := &rt.about
	op := &huma.Operation{
		Method: rt.method, Path: rt.pattern(), OperationID: about.id, Summary: about.summary,
		Description: strings.TrimSpace(about.text), Tags: []string{tagOf(rt)},
		Responses: map[string]*huma.Response{},
	}
	if rt.role == Nobody {
		op.Security = []map[string][]string{{}}
	} else {
		op.Description = strings.TrimSpace(op.Description + " Needs the role " + rt.role.String() + ".")
	}
	if strings.Contains(rt.path, "{id}") {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: "string", Format: "uuid"},
		})
	}
	for _, p := range about.parameters {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: p.name, In: p.in, Description: p.about, Schema: &huma.Schema{Type: p.kind},
		})
	}
	if about.in != nil {
		op.RequestBody = &huma.RequestBody{Required: !about.optional, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemaOf(registry, about.in)},
		}}
		for _, media := range about.inBytes {
			op.RequestBody.Content[media] = &huma.MediaType{Schema: &huma.Schema{Type: "string", Format: "binary"}}
		}
	}
	op.Responses[strconv.Itoa(rt.status)] = answerOf(registry, rt)
	op.Responses["default"] = problemAnswer(registry, rt.legacy)
	return op
}

func tagOf(rt *route) string {
	switch {
	case rt.path == healthPath:
		return "health"
	case rt.legacy:
		return "b7s"
	default:
		return "batches"
	}
}

func schemaOf(registry huma.Registry, v any) *huma.Schema {
	t := reflect.TypeOf(v)
	return registry.Schema(t, true, t.Name())
}

func answerOf(registry huma.Registry, rt *route) *huma.Response {
	answer := &huma.Response{Description: http.StatusText(rt.status)}
	if rt.about.out == nil && rt.about.outStream == nil {
		return answer
	}
	answer.Content = map[string]*huma.MediaType{}
	if rt.about.out != nil {
		answer.Content["application/json"] = &huma.MediaType{Schema: schemaOf(registry, rt.about.out)}
	}
	for media, v := range rt.about.outStream {
		answer.Content[media] = &huma.MediaType{Schema: schemaOf(registry, v)}
	}
	return answer
}

func problemAnswer(registry huma.Registry, legacy bool) *huma.Response {
	var p any = httpapi.Problem{}
	if legacy {
		p = legacyProblem{}
	}
	return &huma.Response{Description: "An error", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: schemaOf(registry, p)},
	}}
}

// documents are what describes the API.
type documents struct {
	openapi, older, page []byte
}

// newDocuments returns the documents. That they can be made depends on nothing
// but this package.
func newDocuments(o Options, routes []route) documents {
	api := describe(o, routes)
	var d documents
	d.openapi, _ = json.Marshal(api)
	d.older, _ = api.Downgrade()
	d.page = pageOf(api)
	return d
}

// document is one of them where it is served.
type document struct {
	path   string
	handle http.HandlerFunc
}

func (d *documents) routes() []document {
	return []document{
		{"/openapi.json", serveDocument("application/openapi+json", d.openapi)},
		{"/openapi-3.0.json", serveDocument("application/openapi+json", d.older)},
		{"/openapi.yaml", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/openapi.json", http.StatusFound)
		}},
		{"/docs", serveDocument("text/html; charset=utf-8", d.page)},
	}
}

// serveDocument serves what needs no token, since it holds nothing of anybody.
func serveDocument(media string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", media)
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		_, _ = w.Write(content) // the client may have gone
	}
}
