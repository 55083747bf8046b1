package peer

import (
	"context"
	"errors"
	"sync"

	"github.com/futura-run/futura/workers/objects"
)

// listing is the verified list of the hashes of an object's pieces, which one connection
// gets while all get pieces.
type listing struct {
	mu     sync.Mutex
	begun  bool          // someone gets it
	done   chan struct{} // closed at the end of that
	pieces []objects.Hash
	err    error
}

// begin reports whether the caller is to get the list, and to call end.
func (l *listing) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun || l.pieces != nil {
		return false
	}
	l.begun, l.done = true, make(chan struct{})
	return true
}

func (l *listing) end(pieces []objects.Hash, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun, l.pieces, l.err = false, pieces, err
	close(l.done)
}

// wait returns the list once it is there, and listError if no source is left to get it from.
// begin was called before.
func (l *listing) wait() ([]objects.Hash, error) {
	for {
		l.mu.Lock()
		pieces, begun, done, err := l.pieces, l.begun, l.done, l.err
		l.mu.Unlock()
		if pieces != nil {
			return pieces, nil
		}
		if !begun {
			return nil, listError{err}
		}
		<-done
	}
}

// listError is why there is no list that a piece could be verified with.
type listError struct{ error }

func (e listError) Unwrap() error { return e.error }

// talk is what one goroutine gets of a transfer, over one connection at a time. What
// comes next is asked for while the last piece that was asked for arrives, so that the
// server is never without a request.
type talk struct {
	transfer *transfer
	buffer   func(piece int) []byte
	lists    bool   // it is to get the list
	asked    []span // what is left of what it took: two at most
}

// all gets pieces until none is missing.
func (k *talk) all(ctx context.Context, address string) error {
	t := k.transfer
	for {
		s, ok := t.take()
		if !ok {
			return nil
		}
		k.asked = append(k.asked, s)
		// A source with pieces to verify has made sure that the list is fetched.
		k.lists = k.lists || t.list != nil && t.list.begin()
		if err := t.client.with(ctx, address, k.over); err != nil {
			return err
		}
	}
}

// over gets what was taken over a connection, and what it takes on the way.
func (k *talk) over(c *source) (begun bool, err error) {
	t := k.transfer
	if k.lists {
		if err := c.ask(request{op: opList, hash: t.ref.Hash}); err != nil {
			return false, err
		}
	}
	for _, s := range k.asked {
		if err := c.askPieces(t.ref, s); err != nil {
			return false, err
		}
	}
	if k.lists {
		pieces, begun, err := c.readList(t.ref)
		if err != nil {
			return begun, err
		}
		k.lists = false
		t.list.end(pieces, nil)
	}
	for len(k.asked) > 0 {
		if err := k.piece(c); err != nil {
			return begun, err
		}
		begun = true
	}
	c.unread = false
	return begun, nil
}

// piece gets the next piece.
func (k *talk) piece(c *source) error {
	t, s := k.transfer, k.asked[0]
	if s.count == 1 && len(k.asked) == 1 {
		if next, ok := t.take(); ok {
			k.asked = append(k.asked, next)
			if err := c.askPieces(t.ref, next); err != nil {
				return err
			}
		}
	}
	content := k.buffer(s.first)
	if err := c.readPiece(content); err != nil {
		var said statusError
		c.unread = len(k.asked) > 1 || !errors.As(err, &said)
		return err
	}
	if err := t.accept(s.first, content); err != nil {
		return err
	}
	k.asked[0] = span{s.first + 1, s.count - 1}
	if s.count == 1 {
		k.asked = k.asked[1:]
	}
	return nil
}
