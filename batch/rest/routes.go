package rest

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/futura-run/futura/batch/source"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// Paths.
const (
	batchesPath   = "/api/v1/batches"
	functionsPath = "/api/v1/functions"
	healthPath    = "/api/v1/health"
)

// operation describes a route.
func operation(method, path, tag, id, summary, text string, parameters ...*huma.Param) huma.Operation {
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, Description: text, Tags: []string{tag},
		Parameters: parameters, MaxBodyBytes: smallBody,
	}
}

// large has a route wait longer for the store: it reads or writes as many records as a batch has items.
func large(rt stack.Route) stack.Route {
	rt.Operation.Metadata = map[string]any{stack.Patience: stack.Large}
	return rt
}

// parameter describes one of the query or the header.
func parameter(in, name, kind, about string) *huma.Param {
	return &huma.Param{Name: name, In: in, Description: about, Schema: &huma.Schema{Type: kind}}
}

// legacy makes a route one of b7s, with a body of at most some bytes.
func legacy(rt stack.Route, most int64) stack.Route {
	rt.Shape, rt.Operation.MaxBodyBytes = legacyShape, most
	return rt
}

// registerLegacy adds the paths of b7s.
func (s *server) registerLegacy() {
	repeat := parameter("header", "Idempotency-Key", "string",
		"The same key with the same content is the same request; at most 1,024 bytes")
	answers := parameter("query", "answer", "string", "id answers at once; chunks, or strands as older nodes call them, "+
		"wait for the end and answer with the results. Default: the server's")
	s.Handle(legacy(large(stack.Route{
		Permission: stack.Submit, Handle: s.submitBatch, In: batchRequest{}, Out: batchMade{},
		Operation: operation(http.MethodPost, functionsPath+"/execute/batch", "b7s", "submit-batch",
			"Run a function on many lists of arguments",
			"Answers once the batch is durable, before anything runs, or with answer=chunks with its results. Up to 64 MiB "+
				"and 1,000,000 lists.", repeat, answers,
			parameter("header", traceParent, "string", "The trace that the items are part of, as W3C's Trace Context has it"),
			parameter("header", traceState, "string", "With traceparent; left out if it has more than 512 bytes"),
			parameter("query", "wait", "string", "With answer=chunks or strands: the longest wait. Default and most 1m")),
	}), MaxBody))
	s.Handle(legacy(large(stack.Route{
		Permission: stack.Read, Handle: s.batchResult, In: idBody{}, Out: chunksBody{},
		Operation: operation(http.MethodPost, functionsPath+"/execute/batch/result", "b7s", "batch-result",
			"Get the results of a batch by chunk",
			"All results so far. Items of a chunk that run the same have the keys MD5, MD5#2 and so on. "+
				"Code and message describe the state of the batch.", answers),
	}), smallBody))
	s.Handle(legacy(stack.Route{
		Permission: stack.Submit, Handle: s.execute, In: executeRequest{}, Out: executeAnswer{},
		Operation: operation(http.MethodPost, functionsPath+"/execute", "b7s", "execute", "Run a function once",
			"Answers when it is over, or with the code 202 after a minute: ask for its result then.", repeat),
	}, maxExecute))
	s.Handle(legacy(stack.Route{
		Permission: stack.Read, Handle: s.singleResult, In: idBody{}, Out: executeAnswer{},
		Operation: operation(http.MethodPost, functionsPath+"/requests/result", "b7s", "execute-result",
			"Get the result of a single run", ""),
	}, smallBody))
	s.Handle(legacy(large(stack.Route{
		Permission: stack.Admin, Handle: s.install, In: installRequest{}, Out: installed{},
		InBytes: []string{"application/wasm", "application/gzip"},
		Operation: operation(http.MethodPost, functionsPath+"/install", "b7s", "install", "Install a function",
			"JSON names a manifest, whose archive is fetched and checked. Or the body is a module (.wasm) or an "+
				"archive (.tar.gz) itself, of at most 64 MiB.",
			parameter("query", "function_id", "string", "With a module or archive: the function's id"),
			parameter("query", "method", "string", "With a module: the method's name, such as echo.wasm")),
	}), source.MaxArchive))
	s.Handle(legacy(stack.Route{
		Permission: stack.Public, Handle: s.health, Out: healthView{},
		Operation: operation(http.MethodGet, healthPath, "health", "health", "Check that the stores answer", ""),
	}, smallBody))
}

// registerBatches adds the paths that b7s does not have.
func (s *server) registerBatches() {
	const tag, one = "batches", batchesPath + "/{id}"
	s.Handle(stack.Route{
		Permission: stack.Read, Handle: s.listBatches, Out: BatchList{},
		Operation: operation(http.MethodGet, batchesPath, tag, "list-batches", "List batches",
			"In the order of their creation.",
			parameter("query", "active", "boolean", "Only those that are not over"),
			parameter("query", "limit", "integer", "1 to 500. Default 100"),
			parameter("query", "after", "string", "The next of the previous page")),
	})
	s.Handle(stack.Route{
		Permission: stack.Read, Handle: ofBatch(s.getBatch), Out: BatchView{},
		Operation: operation(http.MethodGet, one, tag, "get-batch", "Get a batch",
			"With counts by state, rate, and an estimate of the time left.",
			parameter("query", "wait", "string", "How long to wait for its end, such as 30s; at most 1m")),
	})
	s.Handle(large(stack.Route{
		Permission: stack.Read, Handle: ofBatch(s.results), Out: itemList{}, OutStream: map[string]any{ndjson: ItemView{}},
		Operation: operation(http.MethodGet, one+"/results", tag, "batch-results",
			"Get the items of a batch with their results",
			"A page, or with Accept: application/x-ndjson a line for each item. If the stream is cut "+
				"off, continue with from after the last index.",
			parameter("query", "from", "integer", "The first index. Default 0"),
			parameter("query", "limit", "integer", "Of a page 1 to 500, default 100; of a stream all"),
			parameter("query", "output", "integer", "The most bytes of each stream of a result, 0 to 8,192; with 0 there are "+
				"no results. Default: all"),
			parameter("query", "state", "string", "States, separated by commas: created, in_progress, done, failed, "+
				"permanently_failed, or their numbers")),
	}))
	s.Handle(stack.Route{
		Permission: stack.Read, Handle: ofBatch(s.listChunks), Out: ChunkList{},
		Operation: operation(http.MethodGet, one+"/chunks", tag, "batch-chunks", "List the chunks of a batch",
			"What each worker was given of it, in the order of their creation.",
			parameter("query", "limit", "integer", "1 to 500. Default 100"),
			parameter("query", "after", "string", "The next of the previous page")),
	})
	s.Handle(stack.Route{
		Permission: stack.Read, Handle: ofBatch(s.events), Stream: true,
		OutStream: map[string]any{"text/event-stream": BatchView{}},
		Operation: operation(http.MethodGet, one+"/events", tag, "batch-events", "Follow a batch by server-sent events",
			`"progress" events when it has changed, and "over" at its end, each with the batch as data.`),
	})
	s.Handle(large(stack.Route{
		Permission: stack.Submit, Handle: ofBatch(s.cancelBatch), In: reasonBody{}, Optional: true, Out: BatchView{},
		Operation: operation(http.MethodPost, one+":cancel", tag, "cancel-batch", "Cancel a batch",
			"Waiting items fail for good, running ones too unless they succeed."),
	}))
	s.Handle(large(stack.Route{
		Permission: stack.Submit, Handle: ofBatch(s.retryBatch), Out: retried{},
		Operation: operation(http.MethodPost, one+":retry", tag, "retry-batch",
			"Run the items that failed for good again", ""),
	}))
	remove := operation(http.MethodDelete, one, tag, "delete-batch", "Remove a batch that is over, with its results", "")
	remove.DefaultStatus = http.StatusNoContent
	s.Handle(large(stack.Route{Permission: stack.Admin, Handle: ofBatch(s.deleteBatch), Operation: remove}))
}

// ofBatch answers requests that have the id of a batch in their path.
func ofBatch(handle func(w http.ResponseWriter, r *http.Request, id string) error,
) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := parseID(r.PathValue("id"))
		if err == nil {
			err = stack.Reserve(r.Context(), 2*batchBytes) // as it was, and as it is
		}
		if err != nil {
			return err
		}
		return handle(w, r, id)
	}
}

func parseID(text string) (string, error) {
	if id, err := uuid.Parse(text); err == nil && id.String() == strings.ToLower(text) {
		return id.String(), nil
	}
	return "", stack.NewProblem(http.StatusNotFound, "not_found", nil, "there is no batch %.60q: ids are UUIDs", text)
}
