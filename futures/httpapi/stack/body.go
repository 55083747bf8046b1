package stack

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// body reads a request's body, enforces its pace, and takes the memory for it
// from the budget before it reads.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	request *request
	context context.Context
	pace    pace
	// held is how many bytes of memory each byte that is read takes.
	held   int64
	ended  bool
	failed *Problem
}

// Read implements io.Reader. Its errors are problems.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.failed != nil:
		return 0, b.failed
	case b.ended:
		return 0, io.EOF
	}
	p = p[:min(len(p), pieceBytes)]
	if err := b.request.take(b.context, b.held*int64(len(p))); err != nil {
		return 0, b.fail(ProblemOf(nil, err))
	}
	start := time.Now()
	limited := b.control.SetReadDeadline(b.pace.deadline(start)) == nil // some connections have no deadlines
	b.request.pause()                                                   // the client may not send
	b.request.bound.hold()
	n, err := b.ReadCloser.Read(p)
	b.request.bound.resume()
	b.pace.did(n, start)
	b.request.give(b.held * int64(len(p)-n))
	if failed := b.request.work(b.context, int64(n)); failed != nil {
		return n, b.fail(ProblemOf(nil, failed))
	}
	switch {
	case errors.Is(err, io.EOF):
		b.ended = true
		if limited {
			_ = b.control.SetReadDeadline(time.Time{}) // the next read is not the body's
		}
		if !b.request.holdConnection() {
			return n, b.fail(broken(net.ErrClosed))
		}
		return n, io.EOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, b.fail(NewProblem(http.StatusRequestTimeout, "timeout", err,
			"the body came too slowly: after %v at least %d bytes per second", b.pace.slack, paceRate))
	case err != nil:
		return n, b.fail(broken(err))
	default:
		return n, nil
	}
}

// broken returns the problem for a body that its client did not send to its end,
// or in another form than it declared.
func broken(err error) *Problem {
	var network net.Error
	switch {
	case errors.As(err, &network), errors.Is(err, net.ErrClosed):
		return NewProblem(StatusClosed, "client_gone", err, "the client has disconnected")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return NewProblem(http.StatusBadRequest, "bad_request", nil, "the body is cut off")
	default:
		return NewProblem(http.StatusBadRequest, "bad_request", nil, "the body can't be read: %v", err)
	}
}

func (b *body) fail(p *Problem) error {
	b.failed, b.request.failure = p, p
	return p
}

// Close implements io.Closer. It does not wait for the rest of the body.
func (b *body) Close() error { return nil }

// linger reads the rest of the body for a moment, once the answer is being
// sent.
func (b *body) linger() {
	_ = b.control.SetReadDeadline(time.Now().Add(lingerTime)) // not every connection has deadlines
}

// Body returns a request's body, decompressed and bounded by limit. Its errors
// are problems or those of gzip. The bytes that are read are taken from the
// budget.
func Body(r *http.Request, limit int64) (io.Reader, error) {
	var content io.Reader = r.Body
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	switch encoding {
	case "", "identity":
		return &bounded{from: content, left: limit, limit: limit}, nil
	case "gzip":
	default:
		return nil, NewProblem(http.StatusUnsupportedMediaType, "bad_media_type", nil,
			"Content-Encoding %.40q: use gzip or none", encoding)
	}
	if b, ok := r.Body.(*body); ok {
		b.held = 0 // the unpacked bytes are charged instead
	}
	unzipped, err := gzip.NewReader(&bounded{from: content, left: limit, limit: limit})
	if err != nil {
		var p *Problem
		if errors.As(err, &p) {
			return nil, p
		}
		return nil, BadRequest("the body is not gzip: %v", err)
	}
	return &bounded{from: unzipped, left: limit, limit: limit, charge: r.Context()}, nil
}

// BodyStream returns a request's body, bounded by limit, for a handler that passes it
// on as it comes: its bytes are not taken from the budget. Its errors are problems.
func BodyStream(r *http.Request, limit int64) (io.Reader, error) {
	if err := checkPlain(r); err != nil {
		return nil, err
	}
	if b, ok := r.Body.(*body); ok {
		b.held = 0
	}
	return &bounded{from: r.Body, left: limit, limit: limit}, nil
}

// bounded fails, rather than ends, at its limit.
type bounded struct {
	from        io.Reader
	left, limit int64
	// charge is the request whose budget the bytes are taken from, nil if its body
	// does that.
	charge context.Context
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.charge != nil {
		p = p[:min(len(p), pieceBytes)]
		if err := Reserve(b.charge, int64(len(p))); err != nil {
			return 0, err
		}
	}
	n, err := b.from.Read(p)
	if b.charge != nil {
		Return(b.charge, int64(len(p)-n))
		if failed := Work(b.charge, int64(n)); failed != nil {
			return n, failed
		}
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, TooLarge(b.limit)
	}
	return n, err
}
