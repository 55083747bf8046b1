package httpapi

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// putMemory is what a put takes of the budget, in bytes: what is stored with the
// cluster is read into memory. putStored is how much of a value that is.
const (
	putMemory = 32 << 20
	putStored = 8 << 20
)

func (s *server) registerPut() {
	text := &huma.Schema{Type: "string"}
	op := makes(operation(http.MethodPost, futuresPath+":put", "put", "Put a value as the result of a new future",
		"The body is the value, up to 64 GiB. Up to 1 MiB, or with stored up to 8 MiB, are stored with the cluster; more is "+
			"held by a worker. With a key it can be repeated."))
	op.MaxBodyBytes, op.Metadata[stack.Patience] = MaxUpload, stack.Endless // where it is held may be slow
	op.Parameters = []*huma.Param{
		{Name: "codec", In: "query", Description: "raw, json or msgpack; default raw", Schema: text},
		{Name: "key", In: "query", Description: "Idempotency key, at most 1,024 bytes", Schema: text},
		{Name: "Idempotency-Key", In: "header", Description: "The same as key", Schema: text},
		{Name: "label", In: "query", Description: "For people, at most 64 bytes of printable characters", Schema: text},
		{Name: "queue", In: "query", Description: "What it is counted in", Schema: text},
		{Name: "tag", In: "query", Description: "What lists find it by; up to 8 times", Explode: new(true),
			Schema: &huma.Schema{Type: "array", Items: text}},
		{Name: "as_object", In: "query", Description: "A worker holds it whatever its size",
			Schema: &huma.Schema{Type: "boolean"}},
		{Name: "stored", In: "query", Description: "The cluster stores it", Schema: &huma.Schema{Type: "boolean"}},
	}
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		octets: {Schema: &huma.Schema{Type: "string", Format: "binary"}},
	}}
	s.Handle(stack.Route{Permission: stack.Submit, Handle: s.put, Operation: op, Out: Submitted{}})
}

// putOptions reads the parameters of a put.
func putOptions(query url.Values) (o futures.PutOptions, err error) {
	for name, values := range query {
		switch value := values[0]; name {
		case "codec":
			o.Codec = value
		case "key":
			if o.Key = value; value == "" {
				return o, stack.BadRequest("key is empty: leave it out, or name one")
			}
		case "label":
			o.Label = value
		case "tag":
			o.Tags = values
		case "queue":
			o.Queue = value
		case "as_object", "stored":
			is, err := strconv.ParseBool(value)
			if err != nil {
				return o, stack.BadRequest("%s=%.40q: use true or false", name, value)
			}
			if name == "stored" {
				o.Stored = is
			} else {
				o.AsObject = is
			}
		default:
			return o, stack.BadRequest("there is no parameter %.40q", name)
		}
	}
	return o, nil
}

// put streams a value to where it is held.
func (s *server) put(w http.ResponseWriter, r *http.Request) error {
	o, err := putOptions(r.URL.Query())
	if err != nil {
		return err
	}
	if o.Key, err = oneKey(r.Header.Get("Idempotency-Key"), o.Key); err != nil {
		return err
	}
	most := int64(MaxUpload)
	if o.Memory = putStored; o.Stored {
		most = o.Memory
	}
	body, err := stack.BodyStream(r, most)
	if err != nil {
		return err
	}
	if err := stack.Reserve(r.Context(), putMemory); err != nil {
		return err
	}
	o.Size = max(0, r.ContentLength)
	f, err := s.client.Put(r.Context(), body, o)
	if err != nil {
		return err
	}
	w.Header().Set("Location", futuresPath+"/"+f.ID().String())
	return stack.WriteJSON(w, statusOf(f.Existed()), submittedOf(f))
}
