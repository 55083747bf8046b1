package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/futura-run/futura/workers/objects"
)

// drainLimit is how much is read of a client that goes on sending what is refused,
// so that it can read why.
const drainLimit = 16 << 20

// put stores what a client sends.
func (c *link) put(ctx context.Context, r request) error {
	o := c.server.options
	if !o.Puts {
		return c.refuse(statusNoPuts)
	}
	if err := o.accepts(); err != nil {
		return c.refuse(statusOf(err))
	}
	if !c.waitForBuffer(ctx) {
		return c.refuse(statusBusy)
	}
	defer func() { <-c.server.buffers }()
	if r.first > objects.MaxSize {
		return c.refuse(statusFull)
	}
	parts := &partReader{from: c.Conn, timeout: o.PieceTimeout}
	ref, err := c.server.store.Put(ctx, parts, objects.PutOptions{Size: int64(r.first), Kept: func(ref objects.Ref) {
		if o.Kept != nil {
			o.Kept(Owner(r.hash), ref)
		}
	}})
	if err == nil {
		err = o.accepts()
	}
	switch {
	case parts.failed != nil:
		return parts.failed
	case err != nil:
		return errors.Join(err, c.refuse(statusOf(err)))
	}
	return c.say(reply{status: statusOK, value: uint64(ref.Size)}, ref.Hash[:])
}

// refuse says why, and ends the connection when the client has read it.
func (c *link) refuse(why status) error {
	if err := c.say(reply{status: why}); err != nil {
		return err
	}
	if half, ok := lowest(c.Conn).(interface{ CloseWrite() error }); ok {
		if err := half.CloseWrite(); err != nil {
			return err
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(c.server.options.PieceTimeout)); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, c, drainLimit)
	if err == nil {
		err = fmt.Errorf("%w: it goes on after a refusal", ErrMalformed)
	}
	return err
}

// partReader reads the parts of an object that a client sends.
type partReader struct {
	from    net.Conn
	timeout time.Duration
	left    uint64 // of the part
	ended   bool
	failed  error // of the connection
}

// Read implements io.Reader.
func (r *partReader) Read(p []byte) (n int, err error) {
	if r.failed != nil {
		return 0, r.failed
	}
	if r.left == 0 && !r.ended {
		if r.failed = r.next(); r.failed != nil {
			return 0, r.failed
		}
	}
	if r.ended {
		return 0, io.EOF
	}
	n, err = r.from.Read(p[:min(uint64(len(p)), r.left)])
	if r.left -= uint64(n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		r.failed = err
	}
	return n, err
}

// next reads the length of the next part.
func (r *partReader) next() error {
	if err := r.from.SetReadDeadline(time.Now().Add(r.timeout)); err != nil {
		return err
	}
	var b [replySize]byte
	if err := readFull(r.from, b[:]); err != nil {
		return err
	}
	part, err := decodeReply(&b)
	if err != nil {
		return err
	}
	if part.status != statusOK || part.value > objects.PieceSize {
		return fmt.Errorf("%w: a part of %d bytes", ErrMalformed, part.value)
	}
	r.left, r.ended = part.value, part.value == 0
	return nil
}

// Put stores what r has to say until its end in the store that is served at an
// address, and returns its name. about is how many bytes these are, 0 if it is not
// known: room for that is taken first. It returns ErrFull if there is no room, and
// nothing is kept then, nor after another error; it is not tried again, for r has
// been read. An end of ctx does not end a Read of r.
func (c *Client) Put(ctx context.Context, address string, r io.Reader, about int64) (objects.Ref, error) {
	return c.PutFor(ctx, address, Owner{}, r, about)
}

// PutFor is Put of what belongs to an owner.
func (c *Client) PutFor(ctx context.Context, address string, owner Owner, r io.Reader, about int64,
) (objects.Ref, error) {
	s, err := c.dialNew(ctx, address)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // what is under way ends
		var ref objects.Ref
		ref, err = s.put(owner, r, about)
		switch closed := stop(); {
		case !closed:
			err = errors.Join(ctx.Err(), err)
		case err != nil:
			_ = s.Close() // it may be closed already
		default:
			err = s.Close()
		}
		if err == nil {
			return ref, nil
		}
	}
	return objects.Ref{}, fmt.Errorf("objects: put: %w", sourceError(address, err))
}

// put sends an object. The answer can come before all of it is sent.
func (s *source) put(owner Owner, r io.Reader, about int64) (objects.Ref, error) {
	if err := s.ask(request{op: opPut, hash: objects.Hash(owner), first: uint64(max(0, about))}); err != nil {
		return objects.Ref{}, err
	}
	if err := s.SetReadDeadline(time.Time{}); err != nil {
		return objects.Ref{}, err
	}
	type answer struct {
		said reply
		hash objects.Hash
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		var a answer
		var b [replySize]byte
		if a.err = readFull(s, b[:]); a.err == nil {
			a.said, a.err = decodeReply(&b)
		}
		if a.err == nil {
			a.err = a.said.err()
		}
		if a.err == nil {
			a.err = readFull(s, a.hash[:])
		}
		if a.err != nil {
			_ = s.Close() // sending ends
		}
		answered <- a
	}()
	sent, err := s.send(r)
	var readFailed readError
	if errors.As(err, &readFailed) {
		_ = s.Close() // the server drops what it has
	} else {
		// A server that takes no more may have said why, or not answer at all.
		err = cmp.Or(err, s.SetReadDeadline(time.Now().Add(s.client.options.PieceTimeout)))
	}
	a := <-answered
	switch {
	case errors.As(err, &readFailed):
		return objects.Ref{}, readFailed.error
	case a.err != nil:
		return objects.Ref{}, a.err
	case err != nil:
		return objects.Ref{}, err
	}
	got := objects.Ref{Hash: a.hash, Size: int64(a.said.value)}
	if got != sent {
		return objects.Ref{}, fmt.Errorf("%w: %s was sent, %s was stored", objects.ErrDamaged, sent, got)
	}
	return sent, nil
}

// readError is an error of what is to be sent.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// send sends an object in parts of a piece, and returns its name.
func (s *source) send(r io.Reader) (objects.Ref, error) {
	own := pieceBuffers.Get().(*[]byte)
	defer pieceBuffers.Put(own)
	var pieces []objects.Hash
	var size int64
	for ended := false; !ended; {
		n, last, err := objects.ReadPiece(r, *own)
		if err != nil {
			return objects.Ref{}, readError{err}
		}
		ended = last
		if n > 0 {
			hashed := make(chan objects.Hash, 1)
			go func() { hashed <- objects.HashPiece((*own)[:n]) }()
			err := s.sendPart((*own)[:n])
			pieces = append(pieces, <-hashed)
			size += int64(n)
			if err != nil {
				return objects.Ref{}, err
			}
		}
	}
	return objects.RefOf(size, pieces), s.sendPart(nil)
}

func (s *source) sendPart(content []byte) error {
	if err := s.SetWriteDeadline(time.Now().Add(s.client.options.PieceTimeout)); err != nil {
		return err
	}
	var head [replySize]byte
	reply{status: statusOK, value: uint64(len(content))}.encode(&head)
	parts := net.Buffers{head[:], content}
	_, err := parts.WriteTo(s.Conn)
	return err
}
