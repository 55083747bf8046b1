package httpapi

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// MaxPromiseBody is the maximum size of what completes a promise by its token, in bytes.
const MaxPromiseBody = 1 << 20

// Media types of what completes a promise.
const (
	jsonMedia = "application/json"
	formMedia = "application/x-www-form-urlencoded"
)

//go:embed promise.html
var promiseHTML string

// registerPromiseLinks adds the routes of those who have a token and no other right.
func (s *server) registerPromiseLinks() {
	form := &huma.RequestBody{Content: map[string]*huma.MediaType{
		jsonMedia: {Schema: &huma.Schema{}}, formMedia: {Schema: &huma.Schema{Type: "object"}},
	}}
	page := map[string]any{"text/html": ""}
	template := template.Must(template.New("promise").Parse(promiseHTML))
	for _, route := range []struct {
		method, path, id, summary, text string
		body                            *huma.RequestBody
		handle                          promiseHandler
	}{
		{http.MethodGet, "", "open-promise", "What a token of a promise opens",
			"Changes nothing. Browsers get a page with buttons.", nil, s.openPromise},
		{http.MethodPost, "", "resolve-by-token", "Resolve a promise by its token",
			"The body is the value: JSON, or a form, which becomes an object of its fields; the field value alone is the " +
				"value, as JSON if it is some. Without a value it is refused. Once; the same value again is a success that " +
				"says so.", form, s.resolveBy},
		{http.MethodPost, ":reject", "reject-by-token", "Reject a promise by its token",
			`The body is {"message": "…"}, a form with the field message, or nothing.`, form, s.rejectBy},
	} {
		op := operation(route.method, promisesPath+"/{token}"+route.path, route.id, route.summary, route.text)
		op.MaxBodyBytes, op.RequestBody = MaxPromiseBody, route.body
		op.Parameters = []*huma.Param{{Name: "token", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}}}
		s.Handle(stack.Route{
			Permission: stack.Public, Operation: op, Secret: futures.PromiseTokenPrefix, Out: PromiseLink{}, OutStream: page,
			Handle: func(w http.ResponseWriter, r *http.Request) error {
				h := w.Header()
				// The token is told to this server alone. With no-referrer, browsers would send the forms of the page
				// with "Origin: null", which is refused over plain HTTP.
				h.Set("Referrer-Policy", "same-origin")
				h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "+
					"base-uri 'none'; frame-ancestors 'none'")
				link, err := route.handle(r, r.PathValue("token"))
				if errors.Is(err, futures.ErrBadPromiseToken) {
					err = stack.WrongSecret(r, err)
				}
				browser := strings.Contains(r.Header.Get("Accept"), "text/html")
				status := http.StatusOK
				if err != nil && browser {
					link, status = s.refusedLink(r, err)
				}
				switch {
				case err != nil && link == nil:
					return err
				case !browser:
					return stack.WriteJSON(w, http.StatusOK, link)
				}
				h.Set("Content-Type", "text/html; charset=utf-8")
				w.WriteHeader(status)
				_ = template.Execute(w, link) // the client may have disconnected
				return nil
			},
		})
	}
}

// promiseHandler answers a request of one who has a token.
type promiseHandler func(r *http.Request, token string) (*PromiseLink, error)

// PromiseLink is a promise as the holder of its token sees it.
type PromiseLink struct {
	ID      futures.ID `json:"id" format:"uuid"`
	State   string     `json:"state" enum:"blocked,realized,failed"`
	Label   string     `json:"label,omitempty"`
	Expires *time.Time `json:"expires_at,omitempty" doc:"When it ends if it still waits"`
	Already bool       `json:"already,omitempty" doc:"It was completed with this very value, or message, before"`

	path    string
	refusal string // why a request changed nothing; set on pages only
}

// Open reports whether the promise waits.
func (l *PromiseLink) Open() bool { return l.State == futures.Blocked.String() }

// Path is where the forms of its page are sent.
func (l *PromiseLink) Path() string { return l.path }

// Refusal is what the page says of a request that changed nothing, "" for none.
func (l *PromiseLink) Refusal() string { return l.refusal }

// refusals are what people are told of requests that changed nothing.
var refusals = map[int]string{
	http.StatusNotFound: "This link opens nothing: it is not complete, another one was sent since, or what it was for " +
		"is gone.",
	http.StatusConflict: "This was answered before, and otherwise. That answer stays.",
	http.StatusGone:     "This has ended: its time is over, or it was cancelled. No answer counts any more.",
}

// refusedLink is what the page shows after a request that changed nothing, nil for an error that has no page.
func (s *server) refusedLink(r *http.Request, err error) (*PromiseLink, int) {
	status := stack.ProblemOf(Errors(), err).Status
	said, has := refusals[status]
	if !has {
		return nil, status
	}
	link := &PromiseLink{}
	if status != http.StatusNotFound {
		if opened, err := s.openPromise(r, r.PathValue("token")); err == nil {
			link = opened
		}
	}
	link.refusal = said
	return link, status
}

func (s *server) openPromise(r *http.Request, token string) (*PromiseLink, error) {
	o, err := s.client.OpenPromise(r.Context(), token)
	if err != nil {
		return nil, err
	}
	return &PromiseLink{
		ID: o.ID, State: o.State.String(), Label: o.Label, Expires: timeIfSet(o.Expires), path: promisesPath + "/" + token,
	}, nil
}

func (s *server) resolveBy(r *http.Request, token string) (*PromiseLink, error) {
	body, err := completion(r)
	if err != nil {
		return nil, err
	}
	if len(body.json)+len(body.form) == 0 {
		if _, err := s.openPromise(r, token); err != nil {
			return nil, err
		}
		return nil, stack.BadRequest("the request has no value, and a promise has one answer: send null as JSON for none, " +
			"or a form with a field, such as value=true")
	}
	v := futures.PromiseValue{Bytes: body.json, Codec: futures.CodecJSON}
	if body.form != nil {
		if v.Bytes, err = formValue(body.form); err != nil {
			return nil, err
		}
	}
	already, err := s.client.ResolveBy(r.Context(), token, v)
	return s.completed(r, token, already, err)
}

func (s *server) rejectBy(r *http.Request, token string) (*PromiseLink, error) {
	body, err := completion(r)
	if err != nil {
		return nil, err
	}
	rejection := struct {
		Message string `json:"message"`
	}{body.form.Get("message")}
	if !utf8.ValidString(rejection.Message) {
		return nil, errNoText()
	}
	if message := body.form["message"]; len(body.form) > 1 || len(body.form) == 1 && len(message) != 1 {
		return nil, stack.BadRequest("the fields of the form are %.80q: it has one, message, once, or none",
			strings.Join(slices.Sorted(maps.Keys(body.form)), " "))
	}
	if len(body.json) > 0 {
		known := json.NewDecoder(bytes.NewReader(body.json))
		known.DisallowUnknownFields()
		if err := cmp.Or(stack.Unmarshal(body.json, &rejection), known.Decode(&rejection)); err != nil {
			return nil, stack.BadRequest(`the body is no {"message": "…"}: %v`, err)
		}
	}
	already, err := s.client.RejectBy(r.Context(), token, rejection.Message)
	return s.completed(r, token, already, err)
}

func (s *server) completed(r *http.Request, token string, already bool, err error) (*PromiseLink, error) {
	if err != nil {
		return nil, err
	}
	link, err := s.openPromise(r, token)
	if err == nil {
		link.Already = already
	}
	return link, err
}

// promiseBody is what completes a promise: JSON, or a form. Neither has anything for an empty body.
type promiseBody struct {
	json []byte
	form url.Values
}

// completion reads the body of a request that completes a promise.
func completion(r *http.Request) (b promiseBody, err error) {
	media, _, err := mime.ParseMediaType(cmp.Or(r.Header.Get("Content-Type"), jsonMedia))
	if err != nil || media != formMedia && media != jsonMedia && !strings.HasSuffix(media, "+json") {
		return b, stack.NewProblem(http.StatusUnsupportedMediaType, "bad_media_type", nil,
			"the Content-Type %.80q is not understood: send JSON, as %s, or a form, as %s", r.Header.Get("Content-Type"),
			jsonMedia, formMedia)
	}
	from, err := stack.Body(r, MaxPromiseBody)
	if err != nil {
		return b, err
	}
	content, err := io.ReadAll(from)
	if err != nil {
		return b, err
	}
	if media == formMedia {
		if b.form, err = url.ParseQuery(string(content)); err != nil {
			return b, stack.BadRequest("the body is not a form: %v", err)
		}
		return b, nil
	}
	b.json = content
	if len(content) > 0 && (!json.Valid(content) || !utf8.Valid(content)) {
		return b, stack.BadRequest("the body is not JSON in UTF-8")
	}
	return b, halfText(content)
}

// errNoText refuses a form whose texts JSON can't have.
func errNoText() error {
	return stack.BadRequest("the form is not in UTF-8: send it in UTF-8, and other bytes as a text in base64")
}

// halfText refuses JSON in UTF-8 with half of a surrogate pair, as everywhere else.
func halfText(content []byte) error {
	if err := stack.CheckText(content); err != nil && utf8.Valid(content) {
		return stack.BadRequest("%v", err)
	}
	return nil
}

// formValue is the value that a form stands for.
func formValue(form url.Values) ([]byte, error) {
	if value := form["value"]; len(form) == 1 && len(value) == 1 && json.Valid([]byte(value[0])) {
		return []byte(value[0]), halfText([]byte(value[0]))
	}
	for name, values := range form {
		if !utf8.ValidString(name + strings.Join(values, "")) {
			return nil, errNoText()
		}
	}
	if value := form["value"]; len(form) == 1 && len(value) == 1 {
		return marshal(value[0]), nil
	}
	object := map[string]any{}
	for name, values := range form {
		if object[name] = values; len(values) == 1 {
			object[name] = values[0]
		}
	}
	return marshal(object), nil
}

// marshal encodes texts, which never fails.
func marshal(v any) []byte {
	encoded, _ := json.Marshal(v)
	return encoded
}
