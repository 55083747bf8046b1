package rest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// batchMade answers a request for a batch.
type batchMade struct {
	RequestID string `json:"request_id" format:"uuid" doc:"The batch's id"`

	Chunks  map[string]chunkBody `json:"chunks,omitempty" doc:"With answer=chunks"`
	Strands map[string]chunkBody `json:"strands,omitempty" doc:"With answer=strands"`
	Code    string               `json:"code,omitempty" doc:"With either: the state of the batch, 202 if it is not over"`
	Message string               `json:"message,omitempty" doc:"With either"`
}

// submitBatch makes a batch.
func (s *server) submitBatch(w http.ResponseWriter, r *http.Request) error {
	answer, wait, err := s.answerOf(r)
	if err != nil {
		return err
	}
	request, err := readBatch(r)
	if err != nil {
		return err
	}
	stack.Yield(r.Context())
	b, _, err := s.head.Submit(withTrace(r), request)
	if err != nil {
		return err
	}
	if answer != AnswerID {
		request.Arguments = nil
		err := s.answerWithResults(w, r, b.ID, answer, wait)
		if err != nil && !errors.Is(err, stack.ErrCut) {
			err = stack.Prefix(err, "batch %s was made, whose results %s/execute/batch/result has, and then", b.ID,
				functionsPath)
		}
		return err
	}
	return stack.WriteJSON(w, http.StatusOK, batchMade{RequestID: b.ID})
}

func readBatch(r *http.Request) (batch.Request, error) {
	content, err := stack.Body(r, MaxBody)
	if err != nil {
		return batch.Request{}, err
	}
	body, err := decodeBatch(r.Context(), content)
	if err != nil {
		return batch.Request{}, bodyProblem(err)
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
	Message   string               `json:"message,omitempty" doc:"Left out if all items are done"`
	RequestID string               `json:"request_id" format:"uuid"`
}

type chunkBody struct {
	Peer    string                `json:"peer" doc:"The worker's libp2p peer id, or else its own"`
	Results map[string]resultBody `json:"results" doc:"By the MD5 of FUNCTION/METHOD ARGUMENTS"`
}

type resultBody struct {
	Code       string     `json:"code" doc:"200, or 500 for an item that failed"`
	Message    string     `json:"message,omitempty" doc:"Why it failed for good"`
	Result     outputBody `json:"result"`
	Usage      usageBody  `json:"usage" doc:"As far as the worker knows it"`
	Invocation string     `json:"function_invocation"`
	Arguments  []string   `json:"arguments,omitempty"`
}

// batchResult returns the available results of a batch, by chunk.
func (s *server) batchResult(w http.ResponseWriter, r *http.Request) error {
	var body idBody
	if err := readJSON(r, smallBody, &body); err != nil {
		return err
	}
	if body.ID == "" {
		return stack.BadRequest("id is missing: send the request_id of the batch")
	}
	id, err := parseID(body.ID)
	if err != nil {
		return err
	}
	answer, _, err := s.answerOf(r)
	if err != nil {
		return err
	}
	return s.writeResults(w, r, id, answer)
}

// writeResults answers with the available results of a batch.
func (s *server) writeResults(w http.ResponseWriter, r *http.Request, id string, answer Answer) error {
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
	out := bufio.NewWriterSize(w, 64<<10)
	if err := spool.writeChunks(out, answer.strands()); err != nil {
		return stack.ErrCut
	}
	tail, err := json.Marshal(chunksBody{Code: o.code, Message: o.message, RequestID: b.ID})
	if err != nil {
		return stack.ErrCut
	}
	// The chunks have been written in the place of those of the tail.
	_, _ = out.Write(tail[len(`{"chunks":null`):])
	_ = out.Flush() // the client may have disconnected
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
	if err == nil && !b.Status.Over() {
		err = s.explain(ctx, &b)
	}
	return b, p, err
}

// spoolResults collects the results of a batch by their chunks.
func (s *server) spoolResults(ctx context.Context, to *spool, b *batch.Batch) error {
	if err := stack.Reserve(ctx, spoolMemory); err != nil {
		return err
	}
	peers, err := s.peers(ctx, b.ID)
	if err != nil {
		return err
	}
	return s.eachItem(ctx, b.ID, 0, b.Items, nil, func(item *batch.Item) error {
		if item.Chunk == "" || !item.Status.Over() && item.Status != batch.Failed {
			return nil
		}
		if err := stack.Reserve(ctx, spooledBytes); err != nil {
			return err
		}
		body, splices := resultOf(b, item)
		return to.add(item.Chunk, cmp.Or(peers[item.Chunk], item.Worker), item.ID, func(w io.Writer) error {
			return writeSpliced(w, &body, splices...)
		})
	})
}

// resultOf is an item's result as b7s has it, with placeholders for its output.
func resultOf(b *batch.Batch, item *batch.Item) (resultBody, []splice) {
	body := resultBody{
		Code: strconv.Itoa(http.StatusOK), Invocation: b.Template.Invocation(), Arguments: item.Arguments,
	}
	left := batch.Result{}
	if item.Status != batch.Done {
		body.Code, body.Message = strconv.Itoa(http.StatusInternalServerError), item.Reason
		left.ExitCode = batch.NoExitCode
	}
	if item.Result != nil {
		left = *item.Result
	}
	var splices []splice
	body.Result, splices = outputOf(&left)
	body.Usage = usageOf(&left.Usage)
	return body, splices
}

// firstPage is how many items are read first.
const firstPage = 50

// eachItem calls fn with up to limit items behind from, with their results. No
// more is read than a page of results, or one result that is larger.
func (s *server) eachItem(ctx context.Context, id string, from, limit int, states []batch.Status,
	fn func(*batch.Item) error,
) error {
	if err := stack.Reserve(ctx, batch.PageBytes); err != nil {
		return err
	}
	defer stack.Return(ctx, batch.PageBytes)
	for size := firstPage; limit > 0; size = min(MaxPage, 2*size) {
		items, err := s.head.Store().Items(ctx, id, from, min(size, limit), states...)
		if err != nil || len(items) == 0 {
			return err
		}
		for i := range items {
			item := &items[i]
			large := item.LeftOut > 0
			if err := s.withResult(ctx, id, item, fn); err != nil {
				return err
			}
			if from, limit = item.Index+1, limit-1; large {
				size = i + 1 // what was read behind it is read again
				break        // those behind it have room in a page of their own
			}
		}
	}
	return nil
}

// withResult calls fn with an item, whose result is held only meanwhile if the
// page had no room for it.
func (s *server) withResult(ctx context.Context, id string, item *batch.Item, fn func(*batch.Item) error) error {
	if item.LeftOut == 0 {
		return fn(item)
	}
	held := 2 * item.LeftOut // its bytes, and the text that they become
	item.LeftOut = 0
	if err := stack.Reserve(ctx, held); err != nil {
		return err
	}
	defer stack.Return(ctx, held)
	var err error
	if item.Result, err = s.head.Store().Result(ctx, id, item.Index); err != nil {
		return err
	}
	defer func() { item.Result = nil }()
	return fn(item)
}
