package stack

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// tokenScheme is the name of the security scheme of bearer tokens.
const tokenScheme = "token"

// describe describes the API. The served pages load nothing from elsewhere.
func (s *Stack) describe() huma.Config {
	c := huma.DefaultConfig(s.options.Title, s.options.Version)
	c.CreateHooks = nil // they would add $schema to every answer
	c.DocsPath, c.SchemasPath, c.OpenAPIPath = "", "", ""
	c.Info.Description = s.options.Description
	c.AllowAdditionalPropertiesByDefault = true
	c.Transformers = []huma.Transformer{asProblem}
	inJSON := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: Unmarshal}
	c.Formats = map[string]huma.Format{"application/json": inJSON, "json": inJSON}
	if s.options.Tokens != nil {
		c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{tokenScheme: {Type: "http", Scheme: "bearer"}}
		c.Security = []map[string][]string{{tokenScheme: {}}}
	}
	return c
}

// describePermission adds the permission of a route to its description.
func describePermission(text string, p Permission) string {
	if p == Public {
		return strings.TrimSpace(text + " Needs no token.")
	}
	return strings.TrimSpace(text + " Needs the role " + p.String() + ".")
}

// operationOf describes a route.
func (s *Stack) operationOf(rt *Route) *huma.Operation {
	op := rt.Operation
	op.Description = describePermission(op.Description, rt.Permission)
	if rt.Permission == Public {
		op.Security = []map[string][]string{{}}
	}
	if strings.Contains(op.Path, "{id}") {
		op.Parameters = append([]*huma.Param{{
			Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: "string", Format: "uuid"},
		}}, op.Parameters...)
	}
	if rt.In != nil {
		op.RequestBody = &huma.RequestBody{Required: !rt.Optional, Content: map[string]*huma.MediaType{
			"application/json": {Schema: s.schemaOf(rt.In)},
		}}
		for _, media := range rt.InBytes {
			op.RequestBody.Content[media] = &huma.MediaType{Schema: &huma.Schema{Type: "string", Format: "binary"}}
		}
	}
	status := cmp.Or(op.DefaultStatus, http.StatusOK)
	answer := &huma.Response{Description: http.StatusText(status)}
	if rt.Out != nil || rt.OutStream != nil {
		answer.Content = map[string]*huma.MediaType{}
	}
	if rt.Out != nil {
		answer.Content["application/json"] = &huma.MediaType{Schema: s.schemaOf(rt.Out)}
	}
	for media, v := range rt.OutStream {
		answer.Content[media] = &huma.MediaType{Schema: s.schemaOf(v)}
	}
	var problem any = Problem{}
	if rt.Shape != nil {
		problem = rt.Shape(&Problem{})
	}
	op.Responses = map[string]*huma.Response{strconv.Itoa(status): answer, "default": s.problemAnswer(problem)}
	describeAlso(&op)
	return &op
}

// Also is the key in the Metadata of an operation of the statuses, an []int, that its successes have beside its
// DefaultStatus: their bodies are of the same type.
const Also = "also"

// describeAlso adds the answers of Also to a described operation.
func describeAlso(op *huma.Operation) {
	also, _ := op.Metadata[Also].([]int)
	for _, status := range also {
		answer := *op.Responses[strconv.Itoa(cmp.Or(op.DefaultStatus, http.StatusOK))]
		answer.Description = http.StatusText(status)
		op.Responses[strconv.Itoa(status)] = &answer
	}
}

// schemaOf describes a value's type.
func (s *Stack) schemaOf(v any) *huma.Schema {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return s.api.OpenAPI().Components.Schemas.Schema(t, true, t.Name())
}

func (s *Stack) problemAnswer(p any) *huma.Response {
	return &huma.Response{Description: "An error", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: s.schemaOf(p)},
	}}
}

// operationAt is an operation in the description.
func operationAt(api *huma.OpenAPI, method, path string) *huma.Operation {
	item := api.Paths[path]
	switch method {
	case http.MethodGet:
		return item.Get
	case http.MethodPost:
		return item.Post
	case http.MethodDelete:
		return item.Delete
	default:
		return item.Put
	}
}

// registerDocuments adds the documents that describe the API. They need no
// token since they contain no user data. Whether they can be built depends on
// the routes alone.
func (s *Stack) registerDocuments() {
	api := s.api.OpenAPI()
	for path, item := range api.Paths {
		if named := strings.Replace(path, actionMark, ":", 1); named != path {
			delete(api.Paths, path)
			api.Paths[named] = item
		}
	}
	described, _ := json.Marshal(api)
	older, _ := api.Downgrade()
	s.raw("GET /openapi.json", Public, serveDocument("application/openapi+json", described))
	s.raw("GET /openapi-3.0.json", Public, serveDocument("application/openapi+json", older))
	s.raw("GET /openapi.yaml", Public, http.RedirectHandler("/openapi.json", http.StatusFound))
	s.raw("GET /docs", Public, serveDocument("text/html; charset=utf-8", pageOf(api)))
}

// document is open to all. It is compressed once, for the first client that
// accepts that.
type document struct {
	media, tag, policy string
	content            []byte
	packed             func() []byte
}

// documentPolicy lets a document load nothing.
const documentPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// serveDocument answers with a document, or that it has not changed.
func serveDocument(media string, content []byte) *document {
	return &document{
		media: media, content: content, policy: documentPolicy, tag: fmt.Sprintf("%.16x", sha256.Sum256(content)),
		packed: sync.OnceValue(func() []byte {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = w.Write(content) // a buffer takes everything
			_ = w.Close()
			return b.Bytes()
		}),
	}
}

// ServeHTTP implements http.Handler.
func (d *document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	content, tag := d.content, `"`+d.tag+`"`
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		content, tag = d.packed(), `"`+d.tag+`-gzip"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", d.media)
	h.Set("Content-Security-Policy", d.policy)
	h.Set("Cache-Control", "no-cache") // a copy is kept, and asked for by its tag
	h.Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // the client may have disconnected
}

// index answers /: links for a browser, the same as JSON for others.
func (s *Stack) index(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		if s.site != "" {
			http.Redirect(w, r, s.site, http.StatusFound)
			return
		}
		serveDocument("text/html; charset=utf-8", []byte(`<!doctype html><html lang="en"><title>Futura</title>`+
			`<h1>Futura</h1><p>This is the HTTP API of a Futura cluster. <a href="/docs">Its documentation</a>, `+
			`<a href="/openapi.json">its description</a>, <a href="/api/v1/health">its health</a>.</p></html>`)).
			ServeHTTP(w, r)
		return
	}
	_ = WriteJSON(w, http.StatusOK, map[string]string{ // the client may have disconnected
		"name": s.options.Title, "version": s.options.Version, "docs": "/docs", "description": "/openapi.json",
		"health": "/api/v1/health",
	})
}
