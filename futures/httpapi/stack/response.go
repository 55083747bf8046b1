package stack

import (
	"encoding/json"
	"net/http"
	"time"
)

const (
	// pieceBytes is how much of an answer is written at a time.
	pieceBytes = 64 << 10
	// lingerTime is how long the unread rest of a body is drained, so that its
	// client sees the answer.
	lingerTime = 500 * time.Millisecond
)

// response records the status and size of an answer, cuts off a reader that
// does not take it, and never waits for the rest of a body.
type response struct {
	http.ResponseWriter
	request *http.Request
	state   *request
	control *http.ResponseController
	body    *body
	pace    pace
	status  int
	bytes   int64
	// refused is why the turn for what follows did not come. cut is set for an answer that lacks something.
	refused error
	cut     bool
}

func newResponse(w http.ResponseWriter, r *http.Request, q *request) *response {
	o := &response{
		ResponseWriter: w, request: r, state: q, control: http.NewResponseController(w),
		pace: pace{slack: q.stack.options.Limits.AnswerSlack},
	}
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		o.body = &body{
			ReadCloser: r.Body, control: o.control, request: q, context: r.Context(), held: 1,
			pace: pace{slack: q.stack.options.Limits.BodySlack},
		}
		r.Body = o.body
	}
	return o
}

// WriteHeader implements http.ResponseWriter. If the body was not read to its
// end, the connection closes after the answer has been sent.
func (o *response) WriteHeader(status int) {
	if o.status == 0 && status >= http.StatusOK {
		if o.body != nil && o.body.failed != nil {
			status = o.body.failed.Status
			for name, value := range o.body.failed.header {
				o.Header().Set(name, value)
			}
		}
		o.status = status
		if o.body != nil && !o.body.ended {
			o.Header().Set("Connection", "close")
			_ = o.control.EnableFullDuplex() // some connections don't support it
			o.body.linger()
		}
	}
	o.limit()
	o.ResponseWriter.WriteHeader(status)
}

// limit sets the deadline of the next write.
func (o *response) limit() {
	_ = o.control.SetWriteDeadline(o.pace.deadline(time.Now())) // some connections have no deadlines
}

// Write implements http.ResponseWriter. After one that fails the answer is cut off, whatever its handler makes of it.
// Where the turn for what follows does not come, the next one fails, so that a last one does not.
func (o *response) Write(b []byte) (n int, err error) {
	if o.status == 0 {
		o.WriteHeader(http.StatusOK)
	}
	if o.refused != nil {
		o.cut = true
		return 0, o.refused
	}
	o.state.pause() // the client may not read
	o.state.bound.hold()
	defer o.state.bound.resume()
	for first := true; err == nil && (first || n < len(b)); first = false {
		start, wrote := time.Now(), 0
		o.limit()
		wrote, err = o.ResponseWriter.Write(b[n:min(len(b), n+pieceBytes)])
		o.pace.did(wrote, start)
		n += wrote
	}
	o.bytes += int64(n)
	if o.cut = o.cut || err != nil; err == nil {
		o.refused = o.state.work(o.request.Context(), int64(n))
	}
	return n, err
}

// FlushError sends the bytes that were written so far.
func (o *response) FlushError() error {
	o.state.pause()
	o.state.bound.hold()
	defer o.state.bound.resume()
	start := time.Now()
	o.limit()
	err := o.control.Flush()
	o.pace.did(0, start)
	return err
}

// Unwrap lets http.ResponseController reach the writer below.
func (o *response) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// end gives an answer without a status one, so that the server does not wait
// for an unread body. A failed answer is cut off.
func (o *response) end(failed any) {
	switch {
	case o.status != 0:
	case failed == http.ErrAbortHandler:
		o.status = StatusClosed
	case failed != nil:
		o.status = http.StatusInternalServerError
	default:
		o.WriteHeader(http.StatusOK)
	}
}

// WriteJSON answers a request with a value.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // the client may have disconnected
	return nil
}
