package httpapi

import (
	"bytes"
	"net/http"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

func (s *server) registerArguments() {
	op := operation(http.MethodGet, futuresPath+"/{id}/arguments", "get-arguments", "Get a future's arguments",
		"The bytes, up to 8 MiB; Futura-Codec names their codec. Results of others in them are as they were submitted.")
	op.Metadata = also(http.StatusPartialContent)
	s.Handle(stack.Route{
		Permission: stack.Read, Handle: s.arguments, Operation: op,
		OutStream: map[string]any{octets: binaryBody{}, "application/json": binaryBody{}},
	})
}

// futureAt reads the id in the path of a request without parameters.
func futureAt(r *http.Request) (futures.ID, error) {
	for name := range r.URL.Query() {
		return futures.ID{}, stack.BadRequest("there is no parameter %.40q", name)
	}
	return layout.ParseID(r.PathValue("id"))
}

// arguments answers with the bytes of a future's arguments.
func (s *server) arguments(w http.ResponseWriter, r *http.Request) error {
	id, err := futureAt(r)
	if err != nil {
		return err
	}
	row, err := s.client.Cluster().Get(r.Context(), id)
	if err != nil {
		return err
	}
	if err := stack.Reserve(r.Context(), row.Spec.ArgsSize); err != nil {
		return err
	}
	args, err := s.client.Cluster().Args(r.Context(), id, row.Spec)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", octets)
	if row.Spec.Codec == layout.CodecJSON {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Futura-Codec", row.Spec.Codec)
	return serveRanges(w, r, "the arguments have", bytes.NewReader(args), int64(len(args)))
}
