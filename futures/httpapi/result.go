package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// octets is the media type of plain bytes.
const octets = "application/octet-stream"

// binaryBody describes a body of bytes.
type binaryBody []byte

// registerResultOf adds the route of results below a path.
func (s *server) registerResultOf(path, name, summary string, handle func(http.ResponseWriter, *http.Request) error) {
	op := operation(http.MethodGet, path+"/{id}/result", name, summary,
		"Of any size, in parts with Range; 416 for one that it does not have. 409 if it is not over after wait, or "+
			"has failed. An answer that can't be completed is cut off: go on with Range and If-Range.")
	op.Metadata = also(http.StatusPartialContent)
	op.Parameters = []*huma.Param{
		{Name: "wait", In: "query", Description: "How long to wait for the end, such as 30s; at most 1m",
			Schema: &huma.Schema{Type: "string"}},
		{Name: "Range", In: "header", Description: "Which bytes, such as bytes=1048576-",
			Schema: &huma.Schema{Type: "string"}},
	}
	s.Handle(stack.Route{
		Permission: stack.Read, Handle: handle, Operation: op,
		OutStream: map[string]any{octets: binaryBody{}, "application/json": binaryBody{}},
	})
}

// result streams a result.
func (s *server) result(w http.ResponseWriter, r *http.Request) error {
	in := getInput{ID: r.PathValue("id"), Wait: r.URL.Query().Get("wait")}
	id, wait, err := in.parse()
	if err != nil {
		return err
	}
	for name := range r.URL.Query() {
		if name != "wait" {
			return stack.BadRequest("there is no parameter %.40q: use wait", name)
		}
	}
	row, err := s.await(r.Context(), id, wait)
	if err != nil {
		return err
	}
	e := row.Ending()
	switch {
	case !e.Over():
		return stack.NewProblem(http.StatusConflict, "not_over", nil, "%s is %s: wait for its end with ?wait=1m",
			id, e.State)
	case e.Failure != nil:
		return stack.NewProblem(http.StatusConflict, "future_failed", nil, "%s failed (%s): %s",
			id, e.Failure.Kind, e.Failure.Message)
	}
	if err := stack.Reserve(r.Context(), min(2*e.Result.Size, futures.StreamMemory)); err != nil {
		return err
	}
	defer stack.Aside(r.Context())() // it may come from a worker
	if err := s.canRead(r.Context(), id, e.Result); err != nil {
		return err
	}
	stream, err := s.client.Future(id).Open(r.Context())
	if err != nil {
		return err
	}
	defer stream.Close()
	h := w.Header()
	h.Set("Content-Type", octets)
	if stream.Codec() == layout.CodecJSON {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Futura-Codec", stream.Codec())
	h.Set("Futura-Exit-Code", strconv.Itoa(stream.ExitCode()))
	h.Set("ETag", `"`+stream.Tag()+`"`)
	stack.Yield(r.Context())
	return serveRanges(w, r, "the result has", stream, stream.Size())
}

// canRead reads the beginning of a result, because an error after the answer has
// begun could only cut it off.
func (s *server) canRead(ctx context.Context, id futures.ID, r *layout.Result) error {
	reader := results.Of(s.client.Cluster()).Open(id, r)
	defer reader.Close()
	return reader.ReadAt(ctx, make([]byte, min(reader.Unit(), reader.Size())), 0)
}
