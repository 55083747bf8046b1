package rest

import "net/http"

// routes is the one table of what this package serves.
func (s *server) routes() []route {
	return append(s.legacyRoutes(), s.batchRoutes()...)
}

// legacyRoutes are the paths of b7s.
func (s *server) legacyRoutes() []route {
	repeat := []parameter{{in: "header", name: "Idempotency-Key", kind: "string",
		about: "The same key with the same content is the same request; at most 1,024 bytes"}}
	return []route{
		{http.MethodPost, functionsPath + "/execute/batch", "", Submit, true, http.StatusOK, s.submitBatch, description{
			id: "submit-batch", summary: "Run a function on many lists of arguments", parameters: repeat,
			text: "Answers once the batch is durable, before anything runs. Up to 64 MiB and 1,000,000 lists.",
			in:   batchRequest{}, out: batchMade{},
		}},
		{http.MethodPost, functionsPath + "/execute/batch/result", "", Read, true, http.StatusOK, s.batchResult, description{
			id: "batch-result", summary: "Get the results of a batch by chunk",
			text: "All results that are there. Items of a chunk that run the same have the keys MD5, MD5#2 and so on. " +
				"Code and message say how the batch stands.",
			in: idBody{}, out: chunksBody{},
		}},
		{http.MethodPost, functionsPath + "/execute", "", Submit, true, http.StatusOK, s.execute, description{
			id: "execute", summary: "Run a function once", parameters: repeat,
			text: "Answers when it is over, or with the code 202 after a minute: ask for its result then.",
			in:   executeRequest{}, out: executeAnswer{},
		}},
		{http.MethodPost, functionsPath + "/requests/result", "", Read, true, http.StatusOK, s.singleResult, description{
			id: "execute-result", summary: "Get the result of a single run", in: idBody{}, out: executeAnswer{},
		}},
		{http.MethodPost, functionsPath + "/install", "", Admin, true, http.StatusOK, s.install, description{
			id: "install", summary: "Install a function",
			text: "JSON names a manifest, whose archive is fetched and checked. Or the body is a module (.wasm) or an " +
				"archive (.tar.gz) itself, of at most 64 MiB.",
			in: installRequest{}, inBytes: []string{"application/wasm", "application/gzip"}, out: installed{},
			parameters: []parameter{
				{in: "query", name: "function_id", kind: "string", about: "With a module or archive: the function's id"},
				{in: "query", name: "method", kind: "string", about: "With a module: the method's name, such as echo.wasm"},
			},
		}},
		{http.MethodGet, healthPath, "", Nobody, true, http.StatusOK, s.health, description{
			id: "health", summary: "Tell whether the stores answer", text: "Needs no token.", out: healthView{},
		}},
	}
}

// batchRoutes are the paths that b7s does not have.
func (s *server) batchRoutes() []route {
	one := batchesPath + "/{id}"
	return []route{
		{http.MethodGet, batchesPath, "", Read, false, http.StatusOK, s.listBatches, description{
			id: "list-batches", summary: "List batches", text: "In the order of their creation.", out: batchList{},
			parameters: []parameter{
				{in: "query", name: "active", kind: "boolean", about: "Only those that are not over"},
				{in: "query", name: "limit", kind: "integer", about: "1 to 500. Default 100"},
				{in: "query", name: "after", kind: "string", about: "The next of the page before"},
			},
		}},
		{http.MethodGet, one, "", Read, false, http.StatusOK, s.getBatch, description{
			id: "get-batch", summary: "Get a batch", text: "With counts by state, rate, and an estimate of the time left.",
			out: batchView{}, parameters: []parameter{
				{in: "query", name: "wait", kind: "string", about: "How long to wait for its end, such as 30s; at most 1m"},
			},
		}},
		{http.MethodGet, one + "/results", "", Read, false, http.StatusOK, s.results, description{
			id: "batch-results", summary: "Get the items of a batch with their results", out: itemList{},
			outStream: map[string]any{ndjson: itemView{}},
			text: "A page, or with Accept: application/x-ndjson a line for each item. A stream that is cut off was not " +
				"completed: go on behind the last index.",
			parameters: []parameter{
				{in: "query", name: "from", kind: "integer", about: "The first index. Default 0"},
				{in: "query", name: "limit", kind: "integer", about: "Of a page 1 to 500, default 100; of a stream all"},
				{in: "query", name: "state", kind: "string", about: "States, with commas: created, in_progress, done, failed, " +
					"permanently_failed, or their numbers"},
			},
		}},
		{http.MethodGet, one + "/events", "", Read, false, http.StatusOK, s.events, description{
			id: "batch-events", summary: "Follow a batch by server-sent events",
			text:      `"progress" events when it has changed, and "over" at its end, each with the batch as data.`,
			outStream: map[string]any{"text/event-stream": batchView{}},
		}},
		{http.MethodPost, one, "cancel", Submit, false, http.StatusOK, s.cancelBatch, description{
			id: "cancel-batch", summary: "Cancel a batch", in: reasonBody{}, optional: true, out: batchView{},
			text: "Items that wait have failed for good, those that run have unless they succeed.",
		}},
		{http.MethodPost, one, "retry", Submit, false, http.StatusOK, s.retryBatch, description{
			id: "retry-batch", summary: "Run items that have failed for good again", out: retried{},
		}},
		{http.MethodDelete, one, "", Admin, false, http.StatusNoContent, s.deleteBatch, description{
			id: "delete-batch", summary: "Remove a batch that is over, with its results",
		}},
	}
}
