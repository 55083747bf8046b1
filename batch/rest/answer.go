package rest

import (
	"cmp"
	"net/http"
	"time"

	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// Answer is how a request for a batch is answered.
type Answer string

// The dialects of b7s.
const (
	// AnswerID answers at once with the batch's id.
	AnswerID Answer = "id"
	// AnswerChunks waits for the batch's end and answers with its results, in chunks.
	AnswerChunks Answer = "chunks"
	// AnswerStrands is AnswerChunks for clients that call chunks strands.
	AnswerStrands Answer = "strands"
)

// ParseAnswer reads an Answer, which may be empty for AnswerID.
func ParseAnswer(text string) (Answer, error) {
	switch a := cmp.Or(Answer(text), AnswerID); a {
	case AnswerID, AnswerChunks, AnswerStrands:
		return a, nil
	}
	return "", stack.BadRequest("answer=%.40q: use %s, %s or %s", text, AnswerID, AnswerChunks, AnswerStrands)
}

// strands is whether chunks are called that.
func (a Answer) strands() bool { return a == AnswerStrands }

// answerOf is how a request wants to be answered, and for how long it may wait.
func (s *server) answerOf(r *http.Request) (Answer, time.Duration, error) {
	query := r.URL.Query()
	answer, err := ParseAnswer(cmp.Or(query.Get("answer"), string(s.options.BatchAnswer)))
	if err != nil {
		return "", 0, err
	}
	wait, err := httpapi.ParseWait(query.Get("wait"))
	if err == nil && query.Has("wait") && answer == AnswerID {
		err = stack.BadRequest("wait=%.40q: it goes with answer=%s or answer=%s", query.Get("wait"), AnswerChunks,
			AnswerStrands)
	}
	if !query.Has("wait") {
		wait = MaxWait
	}
	return answer, wait, err
}

// answerWithResults waits for the end of a batch, and answers with the results that
// are there then.
func (s *server) answerWithResults(w http.ResponseWriter, r *http.Request, id string, answer Answer,
	wait time.Duration,
) error {
	if err := stack.Reserve(r.Context(), 2*batchBytes); err != nil {
		return err
	}
	v, err := s.view(r.Context(), id)
	if err != nil {
		return err
	}
	if !v.Status.Over() && wait > 0 {
		ctx, cancel := s.Waiting(r.Context(), wait)
		defer cancel()
		if _, err = s.follow(ctx, v, func(*BatchView) error { return nil }); err != nil {
			return err
		}
	}
	stack.Return(r.Context(), 2*batchBytes)
	return s.writeResults(w, r, id, answer)
}
