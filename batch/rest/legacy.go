package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/futura-run/futura/batch"
)

// batchMade answers a request for a batch.
type batchMade struct {
	RequestID string `json:"request_id" format:"uuid" doc:"The batch's id"`
}

// submitBatch makes a batch.
func (s *server) submitBatch(w http.ResponseWriter, r *http.Request) error {
	request, err := s.readBatch(w, r)
	if err != nil {
		return err
	}
	b, _, err := s.head.Submit(r.Context(), request)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, batchMade{b.ID})
}

func (s *server) readBatch(w http.ResponseWriter, r *http.Request) (batch.Request, error) {
	content, release, err := s.body(w, r, MaxBody)
	if err != nil {
		return batch.Request{}, err
	}
	defer release()
	body, err := decodeBatch(content)
	if err != nil {
		return batch.Request{}, bodyProblem(err, MaxBody)
	}
	return body.request(r.Header.Get("Idempotency-Key"))
}

// smallBody bounds bodies that hold little.
const smallBody = 64 << 10

// idBody names a batch or a future.
type idBody struct {
	ID string `json:"id" format:"uuid"`
}

// chunksBody is the result of a batch as b7s has it.
type chunksBody struct {
	Chunks    map[string]chunkBody `json:"chunks"`
	Code      string               `json:"code"`
	Message   string               `json:"message,omitempty" doc:"Left out where all is well"`
	RequestID string               `json:"request_id" format:"uuid"`
}

type chunkBody struct {
	Peer    string                `json:"peer" doc:"The worker"`
	Results map[string]resultBody `json:"results" doc:"By the MD5 of FUNCTION/METHOD ARGUMENTS"`
}

type resultBody struct {
	Code       string     `json:"code,omitempty" doc:"500 for an item that failed"`
	Message    string     `json:"message,omitempty" doc:"Why it failed for good"`
	Result     outputBody `json:"result"`
	Invocation string     `json:"function_invocation"`
	Arguments  []string   `json:"arguments,omitempty"`
}

type outputBody struct {
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr,omitempty"`
	ExitCode int    `json:"exit_code"`
}

// batchResult returns what a batch has come to: all results that are there, by
// chunk.
func (s *server) batchResult(w http.ResponseWriter, r *http.Request) error {
	var body idBody
	if err := s.readJSON(w, r, smallBody, &body); err != nil {
		return err
	}
	if body.ID == "" {
		return badRequest("id is missing: send the request_id of the batch")
	}
	id, err := parseID(body.ID)
	if err != nil {
		return err
	}
	b, p, err := s.look(r.Context(), id)
	if err != nil {
		return err
	}
	spool := &spool{}
	defer spool.close()
	if err := s.spoolResults(r.Context(), spool, &b); err != nil {
		return err
	}
	o := outcomeOf(&b, p)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(o.status)
	paced := pace(w)
	defer paced.end()
	out := bufio.NewWriterSize(paced, 64<<10)
	if err := spool.writeChunks(out); err != nil {
		return errCut
	}
	tail, err := json.Marshal(chunksBody{Code: o.code, Message: o.message, RequestID: b.ID})
	if err != nil {
		return errCut
	}
	// The chunks have been written in the place of those of the tail.
	_, _ = out.Write(tail[len(`{"chunks":null`):])
	_ = out.Flush() // the client may have gone
	return nil
}

// look returns a batch with its counts, which are at least as new.
func (s *server) look(ctx context.Context, id string) (batch.Batch, batch.Progress, error) {
	b, err := s.head.Store().Get(ctx, id)
	if errors.Is(err, batch.ErrNotFound) {
		err = unknownBatch(id, err)
	}
	if err != nil {
		return b, nil, err
	}
	p, err := s.head.Store().Progress(ctx, id)
	return b, p, err
}

// spoolResults collects the results of a batch by their chunks.
func (s *server) spoolResults(ctx context.Context, to *spool, b *batch.Batch) error {
	return s.eachItem(ctx, b.ID, 0, b.Items, nil, func(items []batch.Item) error {
		for i := range items {
			item := &items[i]
			if item.Chunk == "" || !item.Status.Over() && item.Status != batch.Failed {
				continue
			}
			value, err := json.Marshal(resultOf(b, item))
			if err != nil {
				return err
			}
			if err := to.add(item.Chunk, item.Worker, item.ID, value); err != nil {
				return err
			}
		}
		return nil
	})
}

// resultOf is an item's result as b7s has it.
func resultOf(b *batch.Batch, item *batch.Item) resultBody {
	body := resultBody{Invocation: b.Template.Invocation(), Arguments: item.Arguments}
	if item.Status != batch.Done {
		body.Code, body.Message = strconv.Itoa(http.StatusInternalServerError), item.Reason
		body.Result.ExitCode = -1
	}
	if item.Result != nil {
		body.Result = outputBody(*item.Result)
	}
	return body
}

// Bounds of a page of items that are read at a time.
const (
	firstPage = 50
	pageBytes = 8 << 20
)

// eachItem calls fn with pages of up to limit items behind from. Pages are
// smaller where results are large.
func (s *server) eachItem(ctx context.Context, id string, from, limit int, states []batch.Status,
	fn func([]batch.Item) error,
) error {
	size := firstPage
	for limit > 0 {
		items, err := s.head.Store().Items(ctx, id, from, min(size, limit), states...)
		if err != nil || len(items) == 0 {
			return err
		}
		if err := fn(items); err != nil {
			return err
		}
		from, limit = items[len(items)-1].Index+1, limit-len(items)
		size = nextSize(size, items)
	}
	return nil
}

// nextSize is how many items the next page has.
func nextSize(size int, items []batch.Item) int {
	bytes := 0
	for i := range items {
		if r := items[i].Result; r != nil {
			bytes += len(r.Stdout) + len(r.Stderr)
		}
	}
	switch {
	case bytes > pageBytes:
		return max(1, size/2)
	case bytes < pageBytes/4:
		return min(MaxPage, size*2)
	default:
		return size
	}
}
