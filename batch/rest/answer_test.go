package rest_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const twoItems = `{"template":{"function_id":"myfunc","method":"echo.wasm"},"arguments":[["a"],["b"]],"max_attempts":1}`

type whole struct {
	chunks
	Strands map[string]json.RawMessage
}

// TestABatchIsAnsweredInTheSameCall runs a batch while its request waits.
func TestABatchIsAnsweredInTheSameCall(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	strands := newFixture(t, rest.Options{BatchAnswer: rest.AnswerStrands})
	for _, c := range []struct {
		f       *fixture
		query   string
		strands bool
	}{{f, "?answer=chunks", false}, {f, "?answer=strands&wait=1m", true}, {strands, "", true}} {
		answered := make(chan whole)
		go func() {
			var w whole
			c.f.send("POST", submitPath+c.query, twoItems).Into(200, &w)
			answered <- w
		}()
		var id string
		require.Eventually(t, func() bool {
			list, err := c.f.head.store.List(t.Context(), true, "", 1)
			if err == nil && len(list) == 1 {
				id = list[0].ID
			}
			return id != ""
		}, time.Minute, time.Millisecond)
		c.f.run(id, 2, 1)
		w := <-answered
		require.Equal(t, []string{id, "206", "1 of 2 items failed for good"}, []string{w.RequestID, w.Code, w.Message})
		require.Equal(t, c.strands, len(w.Strands) == 1)
		require.Equal(t, c.strands, len(w.Chunks) == 0)
		var asked whole
		c.f.send("POST", resultPath+c.query, `{"id":"`+id+`"}`).Into(200, &asked)
		require.Equal(t, w, asked)
	}
	var made map[string]string
	strands.send("POST", submitPath+"?answer=id", twoItems).Into(200, &made)
	require.Len(t, made, 1)
}

// TestABatchThatIsNotOverInTimeIsAnsweredAsFarAsItIs waits too short, and until the
// server stops. Nothing is lost: the id leads to the rest.
func TestABatchThatIsNotOverInTimeIsAnsweredAsFarAsItIs(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	f := newFixture(t, rest.Options{Stack: stack.Options{Stopping: stopping}})
	var w whole
	f.send("POST", submitPath+"?answer=chunks&wait=1ms", twoItems, "Idempotency-Key", "k").Into(200, &w)
	require.Equal(t, "202", w.Code)
	require.Equal(t, "not started yet", w.Message)
	id := w.RequestID
	f.complete(id, f.assign(id, "w", 0, 1), map[int]batch.Result{0: {Stdout: "zero"}})
	f.send("POST", submitPath+"?answer=chunks&wait=0s", twoItems, "Idempotency-Key", "k").Into(200, &w)
	require.Equal(t, []string{id, "202", "running: 1 of 2 items are over"}, []string{w.RequestID, w.Code, w.Message})
	require.Len(t, w.Chunks, 1)
	close(stopping)
	f.send("POST", submitPath+"?answer=chunks", twoItems, "Idempotency-Key", "k").Into(200, &w)
	require.Equal(t, "202", w.Code)
	require.Equal(t, id, w.RequestID)
}

// blind is a store that makes and changes batches, and can't count their items.
type blind struct{ batch.Store }

func (blind) Progress(context.Context, string) (batch.Progress, error) {
	return nil, batch.ErrUnavailable
}

// TestWhatWasDoneIsSaidThoughItCantBeShown has the store fail once a request has changed something.
func TestWhatWasDoneIsSaidThoughItCantBeShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	f.head.store = blind{f.head.store}
	made := f.send("POST", submitPath+"?answer=chunks", twoItems)
	require.Equal(t, 503, made.Status)
	list, err := f.head.store.List(t.Context(), false, "", 2)
	require.NoError(t, err)
	require.Contains(t, string(made.Body), "batch "+list[0].ID+" was made")
	at := batchesPath + "/" + list[0].ID
	f.send("POST", at+":cancel", "").Problem(503, "store_unavailable", "was cancelled")
	f.send("POST", at+":retry", "").Problem(503, "store_unavailable", "2 items of batch "+list[0].ID+" run again")
}

func TestAnswersThatThereAreNot(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	f.send("POST", submitPath+"?answer=later", twoItems).Problem(400, "bad_request", "id, chunks or strands")
	f.send("POST", submitPath+"?wait=5s", twoItems).Problem(400, "bad_request", "answer=chunks")
	f.send("POST", submitPath+"?answer=chunks&wait=x", twoItems).Problem(400, "bad_request", "duration")
	f.send("POST", resultPath+"?answer=x", `{"id":"cb24c8cd-9c67-4bfc-8c87-2ce2ef4d8f10"}`).
		Problem(400, "bad_request", "answer")
	list, err := f.head.store.List(t.Context(), false, "", 1)
	require.NoError(t, err)
	require.Empty(t, list, "nothing was made")
	_, err = rest.ParseAnswer("strand")
	require.Error(t, err)
}
