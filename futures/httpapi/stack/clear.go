package stack

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// idempotencyKey is the header by which a request can be repeated.
const idempotencyKey = "Idempotency-Key"

// listsOf names the query parameters of an operation that may be repeated.
func listsOf(op *huma.Operation) []string {
	lists := []string{}
	for _, p := range op.Parameters {
		if p.In == "query" && p.Explode != nil && *p.Explode && p.Schema.Type == huma.TypeArray {
			lists = append(lists, p.Name)
		}
	}
	return lists
}

// mediaOf names the media types of an operation's body that is bytes, none if it has none.
func mediaOf(op *huma.Operation) (media []string) {
	if op.RequestBody == nil || op.RequestBody.Content["application/json"] != nil {
		return nil
	}
	for one := range op.RequestBody.Content {
		media = append(media, one)
	}
	return media
}

// checkClear returns a problem for a request of which a part would be passed over: a query that
// can't be read or that has a parameter twice, an Idempotency-Key that is empty or repeated, and, where
// the framework reads the body, an encoding, or another media type than the body's.
func (rt *route) checkClear(r *http.Request) error {
	if rt.lists == nil {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return BadRequest("the query can't be read: %v: write other characters as %%XX", err)
	}
	for name, values := range query {
		if len(values) > 1 && !slices.Contains(rt.lists, name) {
			return BadRequest("the parameter %.40q is there %d times and takes one value: send a request for each", name,
				len(values))
		}
	}
	switch keys := r.Header.Values(idempotencyKey); {
	case len(keys) > 1:
		return BadRequest("there are %d headers %s: send one", len(keys), idempotencyKey)
	case len(keys) == 1 && keys[0] == "":
		return BadRequest("the header %s is empty: leave it out, or name a key", idempotencyKey)
	}
	if !rt.buffered {
		return nil
	}
	if err := checkPlain(r); err != nil {
		return err
	}
	sent := r.Header.Get("Content-Type")
	if len(rt.media) == 0 || sent == "" {
		return nil
	}
	if media, _, err := mime.ParseMediaType(sent); err != nil || !slices.Contains(rt.media, media) {
		return NewProblem(http.StatusUnsupportedMediaType, "bad_media_type", nil,
			"the Content-Type %.80q is not understood: send %s", sent, strings.Join(rt.media, " or "))
	}
	return nil
}

// checkPlain returns a problem for a body that is encoded.
func checkPlain(r *http.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return NewProblem(http.StatusUnsupportedMediaType, "bad_media_type", nil,
			"Content-Encoding %.40q: use none", encoding)
	}
	return nil
}
